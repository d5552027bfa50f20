"""What every door for foreign clients shares: the engine behind it, and who may come in.

A door speaks somebody else's protocol on one side and an `Engine` on the other. Foreign protocols
know no sessions, so a `Visitor` makes one of each connection: it resets the policy when the
instruction changes, and keeps the time that these protocols do not carry.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from zetta.runtime.core import ActionChunk, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, Timeout, suggest
from zetta.runtime.foreign import translate
from zetta.runtime.foreign.addresses import bracketed
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.translate import Form
from zetta.runtime.policy_server.ahead import Ahead
from zetta.runtime.transport import is_loopback

START_S: Final = 10.0
ERROR_CHARACTERS: Final = 300


class Engine(Protocol):
    """Runs one policy for many sessions."""

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        ...

    def open(self, robot: str, priority: int = 0) -> int:
        """Begin a session and return its number."""
        ...

    def reset(self, session: int, instruction: str, seed: int) -> Future[None]:
        """Begin an episode of a session."""
        ...

    def infer(
        self, session: int, observation: Observation, deadline_s: float | None
    ) -> Future[ActionChunk]:
        """Ask the policy."""
        ...

    def close(self, session: int) -> None:
        """End a session."""
        ...


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a door listens, and who may come in.

    Raises:
        ConfigError: others can reach the address and no key is set, or a bound is not positive.
    """

    host: str = "127.0.0.1"
    port: int = 0
    """0 takes a free one."""
    key: str = field(default="", repr=False)
    deadline_s: float = 30.0
    """An inference that takes longer is answered with an error."""
    max_visitors: int = 16

    def __post_init__(self) -> None:
        if not self.key and not is_loopback(self.host):
            raise ConfigError(
                f"a server on {self.host} can be reached by others and has no key; give it one, "
                "or bind 127.0.0.1"
            )
        if not 0 <= self.port < 65536 or self.max_visitors < 1 or not 0 < self.deadline_s < 1e6:
            raise ConfigError(
                f"port {self.port}, {self.max_visitors} visitors and {self.deadline_s} s do not "
                "make a server; expected a port below 65536, and the others above 0"
            )

    def url(self, scheme: str, port: int, name: str) -> str:
        """Return the name under which our own client on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"{scheme}://{bracketed(host)}:{port}@{name}"

    def admits(self, key: object) -> bool:
        """Say whether `key` opens this door; the comparison takes as long for any of its length."""
        if not self.key:
            return True
        return isinstance(key, str) and hmac.compare_digest(key.encode(), self.key.encode())


class Visitor:
    """One foreign client: a session of the engine, and what its protocol leaves out."""

    def __init__(self, engine: Engine, convention: Convention, name: str) -> None:
        self._engine, self._convention = engine, convention
        self._ahead = Ahead(engine.spec.action, convention)
        self._session = engine.open(name)
        self._instruction = ""
        self._seed = 0
        self._episodes = 0
        self._served = 0
        self._closed = False

    def begin_anew(self, seed: object = None) -> None:
        """Let the next request begin an episode; without a seed it is the number of the episode.

        Raises:
            SpecMismatch: the seed is no seed.
        """
        self._seed = self._episodes if seed is None else _checked_seed(seed)
        self._instruction = ""

    def take_seed(self, seed: object) -> None:
        """Begin an episode when a request comes with another seed than the last.

        Raises:
            SpecMismatch: it is no seed.
        """
        if _checked_seed(seed) != self._seed:
            self.begin_anew(seed)

    async def ask(self, asked: object, form: Form, deadline_s: float) -> Any:
        """Return the answer to a foreign request.

        Raises:
            SpecMismatch: it does not fit the convention.
            InfraError: the policy gave no rows that could be sent.
            Timeout: the policy took too long.
            ZettaError: whatever the policy raises.
        """
        spec = self._engine.spec
        t = self._served * self._convention.replan_steps / self._convention.control_hz
        seen = translate.observation(asked, t, self._convention, form)
        if seen.instruction != self._instruction:
            if self._instruction:
                self.begin_anew()
            seen = replace(seen, proprio=replace(seen.proprio, t=0.0))
            self._served = 0
            self._episodes += 1
            await _within(
                self._engine.reset(self._session, seen.instruction, self._seed), deadline_s
            )
            self._instruction = seen.instruction
        chunk = await _within(self._engine.infer(self._session, seen, deadline_s), deadline_s)
        self._served += 1
        if chunk.actions.ndim != 2 or chunk.actions.shape[1] != spec.action.size:
            raise InfraError(
                f"the policy gave a chunk of shape {chunk.actions.shape}, expected rows of "
                f"{spec.action.size}"
            )
        rows = self._ahead.rows(chunk.actions, seen.proprio)
        if not np.isfinite(rows).all():
            raise InfraError("the policy gave numbers that are not finite; nothing is sent")
        return translate.answer(rows, self._convention, form)

    def close(self) -> None:
        """End the session; calling it again does nothing."""
        if not self._closed:
            self._closed = True
            self._engine.close(self._session)


def _checked_seed(seed: object) -> int:
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise SpecMismatch(f"got the seed {seed!r:.40}, expected an integer from 0 below 2**63")
    return seed


async def _within(future: Future[Any], deadline_s: float) -> Any:
    try:
        return await asyncio.wait_for(asyncio.wrap_future(future), deadline_s)
    except TimeoutError:
        raise Timeout(f"the policy gave no answer within {deadline_s:g} s") from None


def check_convention(spec: PolicySpec, convention: Convention) -> None:
    """Refuse a policy that clients of `convention` cannot feed or follow.

    Raises:
        ConfigError: it needs depth or a camera that they do not send.
        SpecMismatch: its actions cannot become theirs.
    """
    name = f"policy {spec.name!r}"
    if spec.depth:
        raise ConfigError(f"{name} needs depth, and {convention.protocol} clients send none")
    offered = {camera.name: camera for camera in convention.cameras}
    for wanted in spec.cameras:
        if wanted.name not in offered:
            raise ConfigError(
                f"{name} needs the camera {wanted.name!r}, which the {convention.protocol} "
                f"convention {convention.name!r} has not; {suggest(wanted.name, offered)}"
            )
        camera = offered[wanted.name]
        if (wanted.height, wanted.width) != (camera.height, camera.width):
            raise ConfigError(
                f"{name} needs {wanted.name!r} at {wanted.height}x{wanted.width} pixels and the "
                f"convention gives {camera.height}x{camera.width}"
            )
    if spec.control_hz != convention.control_hz:
        raise ConfigError(
            f"{name} acts at {spec.control_hz:g} Hz and clients of {convention.name!r} at "
            f"{convention.control_hz:g} Hz"
        )
    Ahead(spec.action, convention)


def short(error: BaseException) -> str:
    """Return what a client is told of an error: one line, no traceback."""
    return f"{' '.join(str(error).split()) or type(error).__name__:.{ERROR_CHARACTERS}}"


class Answers:
    """The requests that are being answered, and a count of what came; for the loop's thread."""

    def __init__(self) -> None:
        self.requests = self.malformed = self.late = 0
        self._running = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    def __enter__(self) -> None:
        self.requests += 1
        self._running += 1
        self._quiet.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._quiet.set()

    def count(self, error: BaseException) -> None:
        """Count why a request was refused."""
        self.malformed += isinstance(error, SpecMismatch)
        self.late += isinstance(error, Timeout)

    async def finished(self, within_s: float) -> None:
        """Wait until nothing is being answered, or the time is over."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), within_s)


class LoopThread:
    """An event loop in a thread of its own, so that serving blocks nobody."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def call(self, make: Callable[[], Any], wait_s: float = START_S) -> Any:
        """Run a coroutine function in the loop and return its result.

        Raises:
            InfraError: it did not end in time.
        """
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return future.result(wait_s)
        except TimeoutError:
            future.cancel()
            raise InfraError(f"{self._thread.name} did not answer within {wait_s:g} s") from None

    def stop(self) -> None:
        """End the loop and its thread; calling it again does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
