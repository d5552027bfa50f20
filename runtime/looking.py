"""A localizer that looks in a thread, so that the ticks go on and the robot is held meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zetta.runtime.core import Estimate, HeightGrid, Localizer, Observation, Sensing
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
        localizer, wanted = self._localizer, tuple(roles)

        def look() -> Found:
            found = localizer.locate(observation, wanted)
            return Found(found, localizer.heights(observation))

        if self._look is not None:
            self._look.drop()
        what = f"the localizer has been looking for {', '.join(wanted)}"
        self._look = Thought(self._thinker, look, what, self._deadline_s)

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
        return self._thinker.submit(lambda: self._localizer.locate(observation, roles)).result()

    def heights(self, observation: Observation) -> HeightGrid | None:
        """Return what stands where, or None when `observation` holds no depth."""
        return self._thinker.submit(lambda: self._localizer.heights(observation)).result()

    def close(self) -> None:
        """End the thread."""
        self._thinker.close()
