"""A policy slower than a tick thinks in a thread, while its last chunk is used or the robot holds.

`RunsAhead` thinks while its last chunk is used. The overlap of two chunks is settled by time alone.
A chunk belongs to the moment of its observation, its row k to the k-th tick after it. When a chunk
arrives, the rows of ticks that have passed are dropped (`drivers.rows_passed`) and the newest chunk
holds from the present tick on; nothing is blended. `InTurn` thinks when its last chunk is spent.

While there is no row for the present tick, the answer is None and the loop holds the robot. Rows
are for ticks in which it moves, so while it is held none passes.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

from zetta.runtime.core import ActionChunk, Observation, Policy, PolicySpec
from zetta.runtime.drivers import LinkedPolicy, rows_passed
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.thinking import DEADLINE_S, END_WITHIN_S, Thinker, ThinkingThread, Thought


class _Inferences:
    """The inferences of one policy in a thread, one at a time.

    Everything that the policy is asked is asked there: it serves one thread.

    Attributes:
        seen_at: time of the observation that is or was last thought about, seconds, moved on by
            the time for which the robot has been held since.
    """

    def __init__(self, policy: Policy, thinker: Thinker | None, deadline_s: float) -> None:
        self.seen_at = 0.0
        self._policy, self._deadline_s = policy, deadline_s
        self._thinker = thinker or ThinkingThread()
        self._running: Thought[ActionChunk] | None = None
        self._begin: tuple[str, int] | None = None
        """What the policy is reset with before the next inference; None once a chunk came."""
        self._begun = False
        self._held_s = 0.0

    @property
    def running(self) -> bool:
        """Whether a chunk is being thought about, or waits to be taken."""
        return self._running is not None

    @property
    def ready(self) -> bool:
        """Whether a chunk, or an error, waits to be taken."""
        return self._running is not None and self._running.ready

    def reset(self, instruction: str, seed: int) -> None:
        """Begin anew with the next inference; what runs is forgotten."""
        self.drop()
        self._begin, self._begun = (instruction, seed), True

    def begin(self, observation: Observation) -> None:
        """Think about `observation`, after what has been begun.

        Raises:
            SpecMismatch: there was no reset.
        """
        if not self._begun:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        self.drop()
        policy, begin = self._policy, self._begin

        def infer() -> ActionChunk:
            if begin is not None:
                policy.reset(*begin)
            return policy.infer(observation)

        self.seen_at, self._held_s = observation.proprio.t, 0.0
        what = f"policy {policy.spec.name!r} has been thinking"
        self._running = Thought(self._thinker, infer, what, self._deadline_s)

    def stood_still(self, seconds: float) -> None:
        """Note that the robot was held: what is thought about is as good as it was."""
        self.seen_at += seconds
        self._held_s += seconds

    def take(self, within_s: float | None) -> ActionChunk | None:
        """Return the chunk that is thought about, or None if that takes longer.

        Raises:
            Timeout: it takes far too long.
            ZettaError: whatever the policy said in its thread.
        """
        assert self._running is not None  # begin came first
        try:
            chunk = self._running.result(within_s)
        except BaseException:
            self._running = None
            raise
        if chunk is None:
            return None
        self._running, self._begin = None, None
        return replace(chunk, t_obs=chunk.t_obs + self._held_s) if self._held_s else chunk

    def lost(self) -> bool:
        """Say whether the policy's server went away."""
        return isinstance(self._policy, LinkedPolicy) and self._policy.lost()

    def drop(self) -> None:
        """Forget what is being inferred; an error too, which the next inference will meet again."""
        if self._running is not None:
            self._running.drop()
        self._running = None

    def close(self) -> None:
        """Close the policy in its thread, which ends."""
        self.drop()
        closed = self._thinker.submit(self._policy.close)
        self._thinker.close()
        with contextlib.suppress(TimeoutError):  # it hangs; the thread does not outlive the program
            closed.exception(END_WITHIN_S)


class InTurn:
    """Any policy, asked for a chunk when the last one is spent; the loop need not wait for it.

    Attributes:
        every_tick: it is not asked while rows are left.
    """

    every_tick = False

    def __init__(
        self, policy: Policy, thinker: Thinker | None = None, deadline_s: float = DEADLINE_S
    ) -> None:
        """Wrap `policy`, which is closed together with this one.

        Args:
            policy: who thinks.
            thinker: where it thinks; a thread of its own by default.
            deadline_s: how long an inference may take.
        """
        self._spec = policy.spec
        self._inferences = _Inferences(policy, thinker, deadline_s)
        self._held_at: float | None = None

    @property
    def spec(self) -> PolicySpec:
        """What the wrapped policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode with the next inference."""
        self._held_at = None
        self._inferences.reset(instruction, seed)

    def lost(self) -> bool:
        """Say whether the policy's server went away."""
        return self._inferences.lost()

    def looks(self, t: float) -> bool:
        """Say whether an inference begins at `t`, for which pictures are needed."""
        return not self._inferences.running

    def answer(self, observation: Observation, within_s: float | None) -> ActionChunk | None:
        """Return the next chunk, or None while it is thought about.

        Raises:
            Timeout: an inference does not end.
            ZettaError: whatever the policy said in its thread.
        """
        t = observation.proprio.t
        if not self._inferences.running:
            self._inferences.begin(observation)
        elif self._held_at is not None:
            self._inferences.stood_still(t - self._held_at)
        chunk = self._inferences.take(within_s)
        self._held_at = t if chunk is None else None
        return chunk

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next chunk, waiting for it.

        Raises:
            Timeout: an inference does not end.
            ZettaError: whatever the policy said in its thread.
        """
        chunk = self.answer(observation, None)
        assert chunk is not None  # it was waited for
        return chunk

    def close(self) -> None:
        """End the thread and close the wrapped policy."""
        self._inferences.close()


class RunsAhead:
    """Any policy, asked at every tick and answering at once.

    An inference begins at most every `replan_steps` ticks, and not before the one before it has
    ended.

    Attributes:
        every_tick: it is asked while rows are left, too.
        waits: at how many ticks of this episode there was no row, those before the first chunk
            left out.
    """

    every_tick = True

    def __init__(
        self, policy: Policy, thinker: Thinker | None = None, deadline_s: float = DEADLINE_S
    ) -> None:
        """Wrap `policy`.

        Args:
            policy: is closed together with this one.
            thinker: where it thinks; a thread of its own by default.
            deadline_s: how long an inference may take.

        Raises:
            SpecMismatch: its chunks hold no row for the time in which it thinks.
        """
        spec = policy.spec
        if spec.horizon <= spec.replan_steps:
            raise SpecMismatch(
                f"policy {spec.name!r} uses {spec.replan_steps} of the {spec.horizon} rows of a "
                "chunk, so none is left to act by while it thinks; run it with --inference sync"
            )
        self.waits = 0
        self._spec = spec
        self._inferences = _Inferences(policy, thinker, deadline_s)
        self._chunk: ActionChunk | None = None
        self._decided: bool | None = None
        self._held_at: float | None = None

    @property
    def spec(self) -> PolicySpec:
        """What the wrapped policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode with the next inference; what is being inferred is dropped."""
        self._inferences.reset(instruction, seed)
        self._chunk, self._decided, self._held_at, self.waits = None, None, None, 0

    def lost(self) -> bool:
        """Say whether the policy's server went away; its last chunk is not used any more then."""
        lost = self._inferences.lost()
        if lost:
            self._chunk = None
        return lost

    def looks(self, t: float) -> bool:
        """Say whether an inference begins at `t`, for which pictures are needed.

        Raises:
            ZettaError: whatever the policy said in its thread.
        """
        thoughts = self._inferences
        if self._held_at is not None:
            thoughts.stood_still(t - self._held_at)
            self._held_at = None
        if thoughts.ready:
            self._chunk = thoughts.take(0.0)
        passed = rows_passed(thoughts.seen_at, t, self._spec.control_hz)
        if thoughts.running:
            # What was seen too long ago will be of no use when it has been thought about.
            self._decided = passed >= self._spec.horizon
        else:
            self._decided = self._chunk is None or passed >= self._spec.replan_steps
        return self._decided

    def answer(self, observation: Observation, within_s: float | None) -> ActionChunk | None:
        """Return the newest chunk there is, and begin another one when it is time.

        None says that there is no row for this tick.

        Raises:
            Timeout: an inference does not end.
            ZettaError: whatever the policy said in its thread.
        """
        t = observation.proprio.t
        due = self.looks(t) if self._decided is None else self._decided
        self._decided = None
        if due:
            self._inferences.begin(observation)
        if self._spent(t) and self._inferences.running:
            chunk = self._inferences.take(within_s)
            if chunk is None:
                self.waits += self._chunk is not None
                self._held_at = t
                return None
            self._chunk = chunk
        return self._chunk

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the newest chunk there is, waiting for one if need be.

        Raises:
            Timeout: an inference does not end.
            ZettaError: whatever the policy said in its thread.
        """
        chunk = self.answer(observation, None)
        assert chunk is not None  # it was waited for
        return chunk

    def close(self) -> None:
        """End the thread and close the wrapped policy."""
        self._inferences.close()

    def _spent(self, t: float) -> bool:
        """Say whether there is no row for the tick at `t`."""
        if self._chunk is None:
            return True
        return rows_passed(self._chunk.t_obs, t, self._spec.control_hz) >= self._spec.horizon
