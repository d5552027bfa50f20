"""Who drives now: the arbiters that need neither critics nor skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from zetta.runtime.core import (
    Abort,
    Continue,
    Motion,
    Outcome,
    Proprio,
    Recovery,
    Ruling,
    Scene,
    Start,
    Verdict,
)
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.skill_arbiter import ArbiterState


class PolicyOnly:
    """Leaves the policy in charge from the first tick to the last."""

    def begin(self, scene: Scene) -> None:
        """Need nothing."""

    def rule(
        self, index: int, proprio: Proprio, signals: Mapping[str, float], driving: str
    ) -> tuple[Ruling, tuple[Verdict, ...]]:
        """Continue."""
        return Continue(), ()

    def motion_ended(self, source: str, outcome: Outcome) -> None:
        """Need nothing: this arbiter starts no motion."""

    def recoveries(self) -> tuple[Recovery, ...]:
        """Return nothing: there are no skills."""
        return ()

    def state(self) -> ArbiterState:
        """Return the state of an arbiter that has done nothing yet."""
        return ArbiterState()

    def restore(self, state: ArbiterState) -> None:
        """Need nothing.

        Raises:
            SpecMismatch: it is the state of an arbiter with critics.
        """
        if state.monitor:
            raise SpecMismatch(
                "the snapshot was taken under a bundle and would go on without one; restore it "
                "with the same bundle"
            )


class MotionOnly:
    """Starts one motion at the first tick and ends the episode when it ends.

    Attributes:
        source: who the ticks are attributed to, for example `oracle:expert`.
    """

    def __init__(self, motion: Callable[[], Motion], source: str) -> None:
        """`motion` is called once for each episode, after the scene has settled."""
        self.source = source
        self._make = motion
        self._motion: Motion | None = None
        self._outcome = Outcome(False, "never started")

    def begin(self, scene: Scene) -> None:
        """Make the motion now, so that what it cannot do is said before the first tick."""
        self._motion = self._make()
        self._outcome = Outcome(False, "interrupted")

    def rule(
        self, index: int, proprio: Proprio, signals: Mapping[str, float], driving: str
    ) -> tuple[Ruling, tuple[Verdict, ...]]:
        """Start the motion once, let it run, and abort when something else would drive."""
        if self._motion is not None:
            motion, self._motion = self._motion, None
            return Start(motion, self.source), ()
        if driving == self.source:
            return Continue(), ()
        return Abort(f"{self.source} ended: {self._outcome.reason or 'no reason given'}"), ()

    def motion_ended(self, source: str, outcome: Outcome) -> None:
        """Keep the outcome: it is the reason why the episode ends."""
        self._outcome = outcome

    def recoveries(self) -> tuple[Recovery, ...]:
        """Return nothing: the motion is no recovery."""
        return ()
