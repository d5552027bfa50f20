"""A localizer that looks in a thread, so that the ticks go on and the robot is held meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from zetta.runtime.core import Env, Estimate, HeightGrid, Localizer, Observation, Sensing
from zetta.runtime.drivers import Found
from zetta.runtime.thinking import DEADLINE_S, Thinker, ThinkingThread, Thought


class LooksAside:
    """Any localizer, asked in a thread of its own.

    Pictures are taken by whoever asks: an environment serves one thread.
    """

    def __init__(
        self, localizer: Localizer, thinker: Thinker | None = None, deadline_s: float = DEADLINE_S
    ) -> None:
        """Wrap `localizer`.

        Args:
            localizer: who looks; it is used by the one thread.
            thinker: where it looks; a thread of its own by default.
            deadline_s: how long a look may take.
        """
        self.level: Sensing = localizer.level
        self.cameras = localizer.cameras
        self._localizer, self._deadline_s = localizer, deadline_s
        self._thinker = thinker or ThinkingThread("zetta-localizer")
        self._look: Thought[Found] | None = None

    def begin(self, observation: Observation, roles: Sequence[str]) -> None:
        """Begin to look; a look that is still under way is forgotten."""
        if self._look is not None:
            self._look.drop()
        self._look = self._begun(observation, roles)

    def _begun(self, observation: Observation, roles: Sequence[str]) -> Thought[Found]:
        localizer, wanted = self._localizer, tuple(roles)

        def look() -> Found:
            found = localizer.locate(observation, wanted)
            return Found(found, localizer.heights(observation))

        what = f"the localizer has been looking for {', '.join(wanted)}"
        return Thought(self._thinker, look, what, self._deadline_s)

    def found(self, within_s: float | None) -> Found | None:
        """Return what came of the look, or None where it takes longer.

        Raises:
            Timeout: it takes far too long.
            ZettaError: whatever the localizer said in its thread.
        """
        assert self._look is not None  # begin came first
        return self._look.result(within_s)

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        """Return an estimate for each role that was found, waiting for it."""
        found = self._begun(observation, roles).result()
        assert found is not None  # it was waited for
        return found.estimates

    def heights(self, observation: Observation) -> HeightGrid | None:
        """Return what stands where, or None when `observation` holds no depth."""
        found = self._begun(observation, ()).result()
        assert found is not None  # it was waited for
        return found.heights

    def glances(
        self, env: Env, roles: Callable[[], Sequence[str]]
    ) -> Callable[[], Mapping[str, Estimate]]:
        """Return a scheduled look that holds no tick up: it gives what the one before it found.

        The first one is waited for; nothing moves yet. What is not found yet comes with a later
        one. Estimates tell when they were seen, so their age is right.

        Args:
            env: where the pictures come from.
            roles: what is looked for.
        """
        under_way: list[Thought[Found]] = []

        def glance() -> Mapping[str, Estimate]:
            if not under_way:
                under_way.append(self._begun(env.observe(self.cameras, depth=True), roles()))
                first = under_way[0].result()
                assert first is not None  # it was waited for
                return first.estimates
            found = under_way[0].result(0.0)
            if found is not None:
                under_way[0] = self._begun(env.observe(self.cameras, depth=True), roles())
            return {} if found is None else found.estimates

        return glance

    def close(self) -> None:
        """End the thread."""
        self._thinker.close()
