"""A policy that an openpi server runs: one websocket, one question at a time.

The protocol has no request ids and no reset. So whatever goes wrong after a question was sent, the
connection is closed: a late answer must never be taken for the next one. A reset opens a new
connection, which is the only fresh start that this protocol has.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from zetta.runtime.core import ActionChunk, Observation, PolicySpec
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
)
from zetta.runtime.foreign import openpi_codec, translate
from zetta.runtime.foreign.addresses import Address, bracketed, parse
from zetta.runtime.foreign.exchange import RETRY_S, kept, last_line, reached
from zetta.runtime.foreign.limits import MAX_MESSAGE_BYTES
from zetta.runtime.foreign.translate import Form

_QUIET: Final = logging.getLogger(__name__)


class OpenpiPolicy:
    """A policy behind an openpi server.

    Raises:
        ConnectionLost: nothing listens there, or it hung up.
        Timeout: nothing answered within the bounds of the address.
        SpecMismatch: what listens there speaks another protocol.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.latency_s = float("nan")
        """Of the last answer."""
        self._stack = ExitStack()
        self._socket: ClientConnection | None = None
        self._instruction = ""
        self._seed = 0
        self._answered = False
        self.metadata = self._connected()
        """What the server said of itself."""
        digest = hashlib.sha256(repr((address.convention, self.metadata)).encode()).hexdigest()
        self._spec = address.spec(digest)

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    @property
    def form(self) -> Form:
        """How keys are written for this server."""
        return "openpi"

    @property
    def described(self) -> Mapping[str, Any]:
        """What the server said of itself."""
        return self.metadata

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode on a connection of its own.

        The seed reaches servers that say in their metadata that they take one; upstream ones draw
        from a generator of their own.

        Raises:
            ConfigError: the instruction is empty.
        """
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self._instruction, self._seed = instruction, seed
        self._drop()

    def infer(self, observation: Observation) -> ActionChunk:
        """Ask the server for the next rows.

        Raises:
            SpecMismatch: `reset` was not called, the observation lacks something, or the answer
                does not fit the convention.
            Timeout: no answer came in time.
            ConnectionLost: the server hung up.
            InfraError: the server reports an error of its own.
        """
        if not self._instruction:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        answer = self.ask(observation)
        rows = translate.rows(answer, self.address.convention, "openpi")
        return ActionChunk(kept(rows, self._spec), observation.proprio.t)

    def ask(self, observation: Observation) -> Any:
        """Return the server's whole answer, untranslated.

        Raises:
            InfraError: as in `infer`.
        """
        asked = translate.request(observation, self._instruction, self.address.convention, "openpi")
        if takes_seed(self.metadata):
            asked["seed"] = self._seed
        return self.ask_raw(asked)

    def ask_raw(self, asked: Mapping[str, Any]) -> Any:
        """Return the answer to a request that is written already.

        Raises:
            InfraError: as in `infer`.
        """
        message = openpi_codec.encode(asked)
        if self._socket is None and not self._same_server():
            self._drop()
            raise SpecMismatch(
                f"the server at {self._where} is not the one from before: it describes itself "
                "differently; start over"
            )
        began = time.monotonic()
        options = self.address.options
        wait = options.deadline_s if self._answered else options.first_s
        answer = self._exchange(message, wait)
        self.latency_s = time.monotonic() - began
        self._answered = True
        return answer

    def close(self) -> None:
        """Hang up; calling it again does nothing."""
        self._drop()

    # ------------------------------------------------------------------ the connection

    @property
    def _where(self) -> str:
        return f"{self.address.host}:{self.address.port}"

    def _same_server(self) -> bool:
        """Connect anew and say whether the server describes itself as before."""
        now = self._connected()
        # As bytes: metadata may hold arrays, which do not compare to one truth.
        return openpi_codec.encode(now) == openpi_codec.encode(self.metadata)

    def _exchange(self, message: bytes, wait_s: float) -> Any:
        assert self._socket is not None
        whole = False
        try:
            self._socket.send(message)
            answer = self._socket.recv(timeout=wait_s)
            decoded = self._decoded(answer)
            whole = True
        except TimeoutError:
            raise Timeout(
                f"the policy server at {self._where} gave no answer within {wait_s:g} s; its "
                "connection was closed so that a late answer is not taken for the next"
            ) from None
        except ConnectionClosed as error:
            raise ConnectionLost(
                f"the policy server at {self._where} hung up ({error}); look at its log"
            ) from error
        finally:
            if not whole:
                self._drop()
        return decoded

    def _decoded(self, answer: str | bytes) -> Any:
        if isinstance(answer, str):
            raise InfraError(f"the policy server at {self._where} failed: {last_line(answer)}")
        return openpi_codec.decode(answer)

    def _connected(self) -> dict[str, Any]:
        """Open the connection and return what the server says first."""
        ends = time.monotonic() + self.address.options.connect_s
        tcp = reached(self.address.host, self.address.port, ends)
        key = self.address.key
        try:
            # With a socket of our own no proxy comes between, whatever the environment says.
            self._socket = self._stack.enter_context(
                connect(
                    f"ws://{bracketed(self.address.host)}:{self.address.port}",
                    sock=tcp,
                    compression=None,
                    max_size=MAX_MESSAGE_BYTES,
                    open_timeout=max(RETRY_S, ends - time.monotonic()),
                    # A server that computes does not answer pings; the deadline is enough.
                    ping_interval=None,
                    close_timeout=1.0,
                    additional_headers={"Authorization": f"Api-Key {key}"} if key else None,
                    logger=_QUIET,
                )
            )
            first = self._socket.recv(timeout=max(RETRY_S, ends - time.monotonic()))
            metadata = self._decoded(first)
        except BaseException as error:
            self._drop()
            tcp.close()
            raise self._explained(error) from error
        if not isinstance(metadata, dict):
            self._drop()
            raise SpecMismatch(f"{self._where} began with {metadata!r:.60}; an openpi server "
                               "begins with a map that describes it")  # fmt: skip
        return metadata

    def _explained(self, error: BaseException) -> BaseException:
        where = self._where
        if isinstance(error, InvalidStatus):
            code = error.response.status_code
            if code in (401, 403):
                return ConfigError(f"{where} refuses the key ({code}); give it with key_file=FILE")
            return SpecMismatch(
                f"{where} answers {code} and opens no websocket; is the port right?"
            )
        if isinstance(error, InvalidHandshake | InvalidMessage):
            return SpecMismatch(f"{where} is no websocket server ({error}); is the port right?")
        if isinstance(error, TimeoutError):
            return Timeout(
                f"{where} takes connections but did not say what it serves within "
                f"{self.address.options.connect_s:g} s; is it an openpi server?"
            )
        if isinstance(error, ConnectionClosed | OSError):
            return ConnectionLost(f"{where} hung up at once ({error}); look at its log")
        return error

    def _drop(self) -> None:
        self._socket = None
        self._stack.close()


def takes_seed(metadata: Mapping[str, Any]) -> bool:
    """Say whether a server told that it draws from a seed that comes with the request."""
    described = metadata.get("zetta")
    return isinstance(described, dict) and described.get("seed") is True


def load(name: str) -> OpenpiPolicy:
    """Connect to the server that `name` addresses.

    Raises:
        ConfigError: the name is no address, or the key is refused.
        InfraError: the server cannot be reached.
        SpecMismatch: it speaks another protocol.
    """
    return OpenpiPolicy(parse(name, "openpi"))
