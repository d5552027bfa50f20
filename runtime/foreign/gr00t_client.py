"""A policy that a GR00T server runs, of either generation: ZMQ, one question at a time.

A REQ socket that timed out can neither send nor receive again, and a late answer would be taken
for the next one; so after every failure the socket is thrown away and a new one made.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import Any, Final

import zmq

from zetta.runtime.core import ActionChunk, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, Timeout
from zetta.runtime.foreign import gr00t_codec, translate
from zetta.runtime.foreign.addresses import Address, bracketed, parse
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.exchange import kept, last_line, reached
from zetta.runtime.foreign.gr00t_codec import Generation, Modality
from zetta.runtime.foreign.limits import MAX_MESSAGE_BYTES
from zetta.runtime.foreign.translate import Form

PING_S: Final = 5.0
_SILENT = object()
"""No data goes with a request, which is not the same as empty data."""


class Gr00tPolicy:
    """A policy behind a GR00T server.

    Raises:
        ConnectionLost: nothing listens there.
        Timeout: nothing answered within the bounds of the address.
        SpecMismatch: what listens there is no GR00T server, or one of another robot.
        ConfigError: the token is refused.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.latency_s = float("nan")
        """Of the last answer."""
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._instruction = ""
        self._answered = False
        try:
            self._greet()
            self.modalities, self.generation = self._described()
            horizon = _check(self.modalities, address.convention, self._where)
        except BaseException:
            self.close()
            raise
        described = repr((address.convention, self.generation, self.modalities))
        digest = hashlib.sha256(described.encode()).hexdigest()
        self._spec = address.spec(digest, horizon)

    @property
    def spec(self) -> PolicySpec:
        """What this policy needs and emits."""
        return self._spec

    @property
    def form(self) -> Form:
        """How keys are written for this server."""
        if self.generation == "n1.5":
            return "n1.5"
        return "n1.6-flat" if self.address.options.flat else "n1.6"

    @property
    def described(self) -> Mapping[str, Any]:
        """What the server said of itself."""
        return {
            "generation": self.generation,
            **{
                name: {"keys": list(m.keys), "delta_indices": list(m.delta_indices)}
                for name, m in self.modalities.items()
            },
        }

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; servers since N1.6 are told, older ones get a connection of its own.

        Raises:
            ConfigError: the instruction is empty.
            InfraError: the server does not take it.
        """
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        self._instruction = instruction
        if self.generation == "n1.5":
            self._drop()
        else:
            self.call("reset", {"options": {"seed": seed}})

    def infer(self, observation: Observation) -> ActionChunk:
        """Ask the server for the next rows.

        Raises:
            SpecMismatch: `reset` was not called, the observation lacks something, or the answer
                does not fit the convention.
            Timeout: no answer came in time.
            InfraError: the server reports an error of its own.
        """
        if not self._instruction:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        rows = translate.rows(self.ask(observation), self.address.convention, self.form)
        return ActionChunk(kept(rows, self._spec), observation.proprio.t)

    def ask(self, observation: Observation) -> Any:
        """Return the server's whole answer, untranslated.

        Raises:
            InfraError: as in `infer`.
        """
        convention = self.address.convention
        return self.ask_raw(
            translate.request(observation, self._instruction, convention, self.form)
        )

    def ask_raw(self, asked: Mapping[str, Any]) -> Any:
        """Return the answer to an observation that is written already.

        Raises:
            InfraError: as in `infer`.
        """
        data = asked if self.form == "n1.5" else {"observation": dict(asked), "options": None}
        options = self.address.options
        began = time.monotonic()
        answer = self.call(
            "get_action", data, options.deadline_s if self._answered else options.first_s
        )
        self.latency_s = time.monotonic() - began
        self._answered = True
        return answer

    def call(self, endpoint: str, data: object = _SILENT, wait_s: float | None = None) -> Any:
        """Return what an endpoint answers.

        Raises:
            Timeout: no answer came in time.
            SpecMismatch: the answer is no message of this protocol.
            ConfigError: the token is refused.
            InfraError: the server reports an error.
        """
        return self._opened(self._exchange(endpoint, data, wait_s))

    def close(self) -> None:
        """Hang up; calling it again does nothing."""
        self._drop()
        self._context.term()

    # ------------------------------------------------------------------ the connection

    @property
    def _where(self) -> str:
        return f"{self.address.host}:{self.address.port}"

    def _greet(self) -> None:
        ends = time.monotonic() + self.address.options.connect_s
        # ZMQ would wait for ever for a port that refuses, and never say so.
        reached(self.address.host, self.address.port, ends).close()
        answer = self.call("ping", wait_s=max(1.0, min(PING_S, ends - time.monotonic())))
        if not isinstance(answer, dict):
            raise SpecMismatch(f"{self._where} answers a ping with {answer!r:.60}, expected a map")

    def _described(self) -> tuple[Mapping[str, Modality], Generation]:
        """Return the server's modalities and its generation."""
        message = self._exchange("get_modality_config")
        generation = gr00t_codec.modality_generation(message)
        answer = self._opened(message)
        if not isinstance(answer, dict):
            raise SpecMismatch(f"{self._where} describes itself by {answer!r:.60}, expected a map")
        modalities = {k: m for k, m in answer.items() if isinstance(m, Modality)}
        return modalities, generation or self._generation_by_reset()

    def _generation_by_reset(self) -> Generation:
        """Tell the generation of a server that describes no modality: the older has no reset."""
        try:
            self.call("reset", {"options": None})
        except InfraError as error:
            if "Unknown endpoint" in str(error):
                return "n1.5"
            raise
        return "n1.6"

    def _exchange(
        self, endpoint: str, data: object = _SILENT, wait_s: float | None = None
    ) -> bytes:
        request: dict[str, Any] = {"endpoint": endpoint}
        if data is not _SILENT:
            request["data"] = data
        if self.address.key:
            request["api_token"] = self.address.key
        wait = self.address.options.deadline_s if wait_s is None else wait_s
        line = self._line(wait)
        whole = False
        try:
            line.send(gr00t_codec.encode(request))
            answer = line.recv()
            whole = True
        except zmq.Again:
            raise Timeout(
                f"the policy server at {self._where} gave no answer to {endpoint!r} within "
                f"{wait:g} s; its socket was closed so that a late answer is not taken for the next"
            ) from None
        finally:
            if not whole:
                self._drop()
        return answer

    def _opened(self, message: bytes) -> Any:
        if message == b"ERROR":
            raise InfraError(f"the policy server at {self._where} failed and gives no reason")
        answer = gr00t_codec.decode(message)
        if isinstance(answer, dict) and "error" in answer:
            said = last_line(str(answer["error"]))
            if "nauthorized" in said:
                raise ConfigError(f"{self._where} refuses the token; give it with key_file=FILE")
            raise InfraError(f"the policy server at {self._where} failed: {said}")
        return answer

    def _line(self, wait_s: float) -> zmq.Socket[bytes]:
        if self._socket is None:
            self._socket = self._context.socket(zmq.REQ)
            self._socket.setsockopt(zmq.LINGER, 0)
            self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES)
            self._socket.setsockopt(zmq.IPV6, int(":" in self.address.host))
            self._socket.connect(f"tcp://{bracketed(self.address.host)}:{self.address.port}")
        for option in (zmq.RCVTIMEO, zmq.SNDTIMEO):
            self._socket.setsockopt(option, max(1, int(wait_s * 1000)))
        return self._socket

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def _check(modalities: Mapping[str, Modality], convention: Convention, where: str) -> int:
    """Return the server's horizon, 0 when it does not say.

    Raises:
        SpecMismatch: it wants pictures or states that the convention has not, or a history.
    """
    paths = [p.path for p in convention.pictures] + [s.path for s in convention.states]
    for group in ("video", "state"):
        modality = modalities.get(group)
        if modality is None:
            continue
        ours = {path[-1] for path in paths if path[0] == group}
        missing = [key for key in modality.keys if key not in ours]
        if missing:
            raise SpecMismatch(
                f"the server at {where} wants {group} {', '.join(missing)}, which the convention "
                f"{convention.name!r} does not hold (it has {', '.join(sorted(ours))})"
            )
        if len(modality.delta_indices) != 1:
            raise SpecMismatch(
                f"the server at {where} wants {group} of the ticks {list(modality.delta_indices)}; "
                "only the present one is sent"
            )
    action = modalities.get("action")
    if action is None:
        return 0
    missing = [part.key for part in convention.rows if part.key not in action.keys]
    if missing:
        raise SpecMismatch(
            f"the server at {where} gives actions {', '.join(action.keys)}; the convention "
            f"{convention.name!r} also needs {', '.join(missing)}"
        )
    return len(action.delta_indices)


def load(name: str) -> Gr00tPolicy:
    """Connect to the server that `name` addresses.

    Raises:
        ConfigError: the name is no address, or the token is refused.
        InfraError: the server cannot be reached.
        SpecMismatch: it is no GR00T server, or one of another robot.
    """
    return Gr00tPolicy(parse(name, "gr00t"))
