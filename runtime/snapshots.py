"""The copy of a running episode: what every part must remember so that it goes on bit-exactly.

A part that remembers something between two ticks returns it as one frozen record of plain values
(`Restorable`). The record is kept as msgpack, never pickled, so a snapshot may cross a socket or
lie on a disk, and no part can change it afterwards. What keeps no such record cannot be copied,
and says so when a snapshot is taken, not when it is restored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_type_hints, runtime_checkable

import numpy as np

from zetta.runtime.core import ActionChunk, Array, Policy, Scene, Step
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.wire import from_wire, pack, to_wire, unpack

FORMAT = 2
"""Raised when an older snapshot could be misread."""


@runtime_checkable
class Restorable(Protocol):
    """A part that can be copied between two ticks.

    The annotated return type of `state` is the record that `restore` takes.
    """

    def state(self) -> Any:
        """Return all that is remembered, as a frozen record of plain values."""
        ...

    def restore(self, state: Any) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it is the state of something else.
        """
        ...


@runtime_checkable
class ReseededPolicy(Policy, Protocol):
    """A policy that can be given other luck without forgetting what it was about to do."""

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; all else stays."""
        ...


@dataclass(frozen=True, slots=True)
class Stateless:
    """The state of a part that remembers nothing."""


@dataclass(frozen=True, slots=True)
class DriverState:
    """What lies between a policy and the loop."""

    seed: int
    handovers: int
    """How often the policy was reset; the next hand-back takes its seed from here."""
    inferences: int
    chunk: ActionChunk | None
    """The pending one."""
    used: int
    """Its row that comes next."""
    until: int
    """The row at which the policy is asked again."""
    policy: bytes
    """State of the policy itself."""


@dataclass(frozen=True, slots=True)
class EpisodeSnapshot:
    """A running episode between two ticks, while the policy drives."""

    scene: Scene
    instruction: str
    policy: str
    """Name and digest of what drives; another policy cannot go on."""
    tick: int
    """The tick that comes next."""
    env: bytes
    """The world, with its simulator's version and its model's hash."""
    driver: DriverState
    signals: bytes
    arbiter: bytes
    """Budgets, and the latches of its monitor."""
    localizer: bytes
    """Who is who from look to look; empty without one."""
    step: Step
    """What the last action led to."""
    last_action: Array | None
    sources: Mapping[str, int]
    interventions: int
    success_at_reset: bool
    scene_digest: str
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of its large parts."""
        parts = (self.env, self.driver.policy, self.signals, self.arbiter, self.localizer)
        return sum(len(part) for part in parts)

    def to_bytes(self) -> bytes:
        """Return the snapshot as msgpack."""
        return pack(to_wire(self))

    @classmethod
    def from_bytes(cls, packed: bytes) -> EpisodeSnapshot:
        """Undo `to_bytes`.

        Raises:
            SpecMismatch: it is no snapshot, or one of another version.
        """
        plain = unpack(packed)
        got = plain.get("format") if isinstance(plain, dict) else None
        if got != FORMAT:
            raise SpecMismatch(
                f"got {len(packed)} bytes of the format {got!r}, expected a snapshot of the "
                f"format {FORMAT}; take it anew with this version"
            )
        return from_wire(cls, plain)

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


def saved(part: object, what: str) -> bytes:
    """Return the state of a part.

    Raises:
        ConfigError: it cannot be copied.
    """
    if not isinstance(part, Restorable):
        raise ConfigError(
            f"the {what} {type(part).__name__} keeps no state that could be restored, so this "
            "episode cannot be copied; give it state() and restore(), or use another one"
        )
    return pack(to_wire(part.state()))


def restore(part: object, what: str, state: bytes) -> None:
    """Let a part continue from what `saved` returned.

    Raises:
        ConfigError: it cannot be restored.
        SpecMismatch: it is the state of something else.
    """
    if not isinstance(part, Restorable):
        raise ConfigError(f"the {what} {type(part).__name__} cannot be restored")
    kind = get_type_hints(type(part).state)["return"]
    try:
        record = from_wire(kind, unpack(state))
    except SpecMismatch as error:
        raise SpecMismatch(
            f"the snapshot does not fit the {what} {type(part).__name__} ({error}); restore it "
            "with the same policy, bundle and sensing level"
        ) from None
    part.restore(record)


def policy_identity(policy: Policy) -> str:
    """Return what must be equal for a policy to go on where one stopped."""
    return f"{policy.spec.name} {policy.spec.digest}".rstrip()


def generator_text(generator: np.random.Generator) -> str:
    """Return the state of a generator as JSON: its integers are longer than msgpack's."""
    return json.dumps(generator.bit_generator.state)


def generator_from(text: str) -> np.random.Generator:
    """Undo `generator_text`.

    Raises:
        SpecMismatch: it is no state of numpy's default generator.
    """
    generator = np.random.default_rng(0)
    try:
        generator.bit_generator.state = json.loads(text)
    except (ValueError, TypeError, KeyError) as error:
        raise SpecMismatch(f"got {text!r:.60}, expected the state of a PCG64: {error}") from None
    return generator
