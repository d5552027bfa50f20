"""A policy slower than a tick runs ahead: it thinks in a thread while its last chunk is used.

The overlap of two chunks is settled by time alone. A chunk belongs to the moment of its
observation, its row k to the k-th tick after it. When a chunk arrives, the rows of ticks that have
passed are dropped (`drivers.rows_passed`) and the newest chunk holds from the present tick on;
nothing is blended. When the last chunk is spent before the next one has come, the loop waits: the
tick is late and is counted, for a command that nobody predicted would be worse.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Final, Protocol, TypeAlias

from zetta.runtime.core import ActionChunk, Observation, Policy, PolicySpec
from zetta.runtime.drivers import rows_passed
from zetta.runtime.errors import SpecMismatch, Timeout

DEADLINE_S: Final = 60.0
"""An inference that takes longer has failed."""

Work: TypeAlias = Callable[[], ActionChunk]


class Thinker(Protocol):
    """Does one piece of work after the other, somewhere else."""

    def submit(self, work: Work) -> Future[ActionChunk]:
        """Begin `work`; the future ends with what it returns or raises."""
        ...

    def close(self) -> None:
        """Take no more work."""
        ...


class RunsAhead:
    """Any policy, asked at every tick and answering at once.

    An inference begins at most every `replan_steps` ticks, and not before the one before it has
    ended. The wrapped policy is used by one thread at a time.

    Attributes:
        waits: how often in this episode the loop had to wait, the first chunk left out.
    """

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
        self._policy, self._spec, self._deadline_s = policy, spec, deadline_s
        self._thinker = thinker or ThinkingThread()
        self._running: Future[ActionChunk] | None = None
        self._seen_at = 0.0
        """Time of the observation that is being thought about, or was at last."""
        self._chunk: ActionChunk | None = None
        self._decided: bool | None = None

    @property
    def spec(self) -> PolicySpec:
        """What the wrapped policy needs and emits."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; what is being inferred for the last one is waited for and dropped.

        Raises:
            Timeout: it does not end.
            ConfigError: whatever the policy says to the instruction.
        """
        self._drop()
        self._chunk, self._decided, self.waits = None, None, 0
        self._policy.reset(instruction, seed)

    def looks(self, t: float) -> bool:
        """Say whether an inference begins at `t`, for which pictures are needed.

        Raises:
            ZettaError: whatever the policy said in its thread.
        """
        if self._running is not None and self._running.done():
            self._adopt()
        passed = rows_passed(self._seen_at, t, self._spec.control_hz)
        if self._running is not None:
            # What was seen too long ago will be of no use when it has been thought about.
            self._decided = passed >= self._spec.horizon
        else:
            self._decided = self._chunk is None or passed >= self._spec.replan_steps
        return self._decided

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the newest chunk there is, and begin another one when it is time.

        Raises:
            Timeout: an inference does not end.
            ZettaError: whatever the policy said in its thread.
        """
        t = observation.proprio.t
        due = self.looks(t) if self._decided is None else self._decided
        self._decided = None
        if due:
            self._drop()
            self._seen_at = t
            self._running = self._thinker.submit(lambda: self._policy.infer(observation))
        if self._chunk is None:
            return self._adopt()
        spent = rows_passed(self._chunk.t_obs, t, self._spec.control_hz) >= self._spec.horizon
        if spent and self._running is not None:
            self.waits += 1
            return self._adopt()
        return self._chunk

    def close(self) -> None:
        """End the thread and close the wrapped policy."""
        self._thinker.close()
        self._policy.close()

    def _adopt(self) -> ActionChunk:
        """Take the chunk that is being inferred, waiting for it where necessary."""
        running = self._running
        if running is None:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        self._let_end(running)
        chunk = self._chunk = running.result()
        return chunk

    def _drop(self) -> None:
        """Forget what is being inferred; an error too, for the next inference will meet it again.

        It is waited for, because the policy serves one thread at a time.
        """
        running = self._running
        if running is not None and not running.cancel():
            self._let_end(running)
        self._running = None

    def _let_end(self, running: Future[ActionChunk]) -> None:
        try:
            running.exception(self._deadline_s)
        except TimeoutError:
            raise Timeout(
                f"policy {self._spec.name!r} has been thinking for {self._deadline_s:g} s about "
                "one chunk; use a faster device, or another policy"
            ) from None
        self._running = None


class ThinkingThread:
    """One thread that never holds up the end of the program, whatever it waits for."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Future[ActionChunk], Work] | None] = SimpleQueue()
        threading.Thread(target=self._think, name="zetta-policy", daemon=True).start()

    def submit(self, work: Work) -> Future[ActionChunk]:
        """Begin `work`."""
        future: Future[ActionChunk] = Future()
        self._work.put((future, work))
        return future

    def close(self) -> None:
        """Take no more work; the thread ends with what it does now."""
        self._work.put(None)

    def _think(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except Exception as error:  # the thread's boundary: whoever waits hears it
                future.set_exception(error)
