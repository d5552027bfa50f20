"""Ask a foreign policy server a few made-up questions, and say what does not fit its convention.

Some faults show from outside: rows of the wrong length, a gripper in another range, a state that
the server refuses. Others cannot: a server that is fed mirrored pictures answers as readily as one
that is not. Those are called what they are, unknown, unless the server describes itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np

from zetta.runtime.core import (
    ActionChunk,
    ArmState,
    Array,
    Image,
    Observation,
    PolicySpec,
    Proprio,
    read_only,
)
from zetta.runtime.errors import InfraError, SpecMismatch
from zetta.runtime.foreign import translate
from zetta.runtime.foreign.addresses import Address
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.translate import Form

INSTRUCTION: Final = "pick up the red cube and place it on the plate"
CALLS: Final = 5
"""Answers that the latency is taken from, the first one apart."""
REACH: Final = 1.5
"""Commands in [-1, 1] beyond this were not made for that range."""
PUSH_M: Final = 0.1
"""How far the hand is moved to see whether the state matters."""

State: TypeAlias = Literal["ok", "unknown", "suspect", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One convention, and what was seen of it."""

    name: str
    state: State
    sentence: str


@dataclass(frozen=True, slots=True)
class Part:
    """One array of a request or an answer."""

    key: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a server said of itself, and how it answered."""

    described: Mapping[str, Any]
    asked: tuple[Part, ...]
    answered: tuple[Part, ...]
    first_s: float
    median_s: float
    findings: tuple[Finding, ...]

    @property
    def fits(self) -> bool:
        """Nothing was found wrong."""
        return all(finding.state != "wrong" for finding in self.findings)


class ForeignPolicy(Protocol):
    """What both clients offer for looking closer."""

    address: Address
    latency_s: float

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        ...

    @property
    def form(self) -> Form:
        """How keys are written for this server."""
        ...

    @property
    def described(self) -> Mapping[str, Any]:
        """What the server said of itself."""
        ...

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode."""
        ...

    def infer(self, observation: Observation) -> ActionChunk:
        """Ask for rows."""
        ...

    def ask(self, observation: Observation) -> Any:
        """Ask for the whole answer."""
        ...


def inspect(policy: ForeignPolicy) -> Inspection:
    """Ask `policy` about made-up scenes.

    Raises:
        Timeout: it gave no answer in time.
        ConnectionLost: it hung up.
    """
    convention, form = policy.address.convention, policy.form
    seen = resting(convention)
    asked = tuple(_parts(translate.request(seen, INSTRUCTION, convention, form)))
    policy.reset(INSTRUCTION, 0)
    try:
        answer = policy.ask(seen)
    except (SpecMismatch, InfraError) as error:
        if type(error) not in (SpecMismatch, InfraError):
            raise
        found = (_refusal(error, convention), *_described(policy.described, convention))
        return Inspection(policy.described, asked, (), float("nan"), float("nan"), found)
    first_s = policy.latency_s
    answered = tuple(_parts(answer))
    found = (*_described(policy.described, convention), *_of_rows(policy, answer))
    waits = []
    try:
        for _ in range(CALLS):
            policy.ask(seen)
            waits.append(policy.latency_s)
        if not any(f.state == "wrong" and f.name == "action dims" for f in found):
            found += _of_senses(policy, seen)
    except SpecMismatch as error:
        found += (Finding("answers", "wrong", f"it answers once and then not: {error}"),)
    median_s = float(np.median(waits)) if waits else float("nan")
    return Inspection(policy.described, asked, answered, first_s, median_s, found)


def resting(convention: Convention, push_m: float = 0.0) -> Observation:
    """Return a made-up scene: arms at rest, open hands, a picture that is not symmetrical."""
    quat = read_only([1.0, 0.0, 0.0, 0.0])
    joints = (0.0, -0.16, 0.0, -2.44, 0.0, 2.23, 0.79)[: convention.joints]
    arm = ArmState(
        ee_pos=read_only([-0.2 + push_m, push_m, 1.17]),
        ee_quat=quat,
        joint_pos=read_only(np.array(joints) + push_m),
        gripper_opening=convention.stroke_m,
    )
    mobile = any(part.sense.startswith("base") for s in convention.states for part in s.parts)
    base = read_only([0.0, 0.0, 0.0]) if mobile else None
    images = {c.name: _picture(c.height, c.width) for c in convention.cameras}
    return Observation(Proprio(0.0, (arm,) * convention.arms, base), INSTRUCTION, images)


def _picture(height: int, width: int) -> Image:
    across, down = np.meshgrid(np.linspace(0, 200, width), np.linspace(40, 120, height))
    picture = np.stack([across, down, 255.0 - across], axis=-1)
    picture[height // 2 : height * 3 // 4, : width // 4] = (220, 30, 30)
    return read_only(picture, np.uint8)


# --------------------------------------------------------------------------- what it says


def _described(described: Mapping[str, Any], convention: Convention) -> tuple[Finding, ...]:
    """Compare what a server of our own kind says of itself with the convention."""
    told = described.get("zetta")
    if not isinstance(told, Mapping):
        return ()
    found = []
    other = f"choose the server's convention, {told.get('convention')!s:.40}"
    turns = {"/".join(p.path): p.turn for p in convention.pictures}
    theirs = told.get("pictures")
    if theirs != turns:
        found.append(
            Finding(
                "image orientation", "wrong",
                f"the server expects pictures turned as {theirs}, and this convention turns them "
                f"as {turns}; {other}",
            )
        )  # fmt: skip
    sizes = {"/".join(s.path): convention.state_size(s) for s in convention.states}
    if told.get("state") != sizes:
        found.append(
            Finding(
                "state", "wrong",
                f"the server expects states of {told.get('state')} numbers, this convention sends "
                f"{sizes}; {other}",
            )
        )  # fmt: skip
    gripper = [convention.action.gripper_open, convention.action.gripper_close]
    if told.get("gripper") != gripper:
        found.append(
            Finding(
                "gripper sign", "wrong",
                f"the server opens and closes with {told.get('gripper')}, this convention with "
                f"{gripper}",
            )
        )  # fmt: skip
    return tuple(found)


def _refusal(error: Exception, convention: Convention) -> Finding:
    """Say which convention an error of the server speaks of."""
    said = str(error)
    lower = said.lower()
    prompt = convention.prompt[-1].lower()
    if any(word in lower for word in ("image", "video", "camera", "rgb")):
        name, hint = "pictures", "it may expect other keys, sizes or channels first"
    elif any(word in lower for word in ("state", "proprio", "joint", "gripper")):
        name, hint = "state", "it may expect another length or order"
    elif prompt in lower or "prompt" in lower or "language" in lower:
        name, hint = "instruction", "it may expect it under another key"
    elif "shape" in lower or "dimension" in lower or "broadcast" in lower:
        name, hint = "state", "a length differs, most likely that of the state"
    else:
        name, hint = "request", "look at the server's log"
    return Finding(name, "wrong", f"{said}; {hint}")


# --------------------------------------------------------------------------- what it answers


def _of_rows(policy: ForeignPolicy, answer: object) -> tuple[Finding, ...]:
    convention, spec = policy.address.convention, policy.spec
    try:
        raw = translate.raw_rows(answer, convention, policy.form)
    except SpecMismatch as error:
        return (Finding("action dims", "wrong", f"{error}; is it a server of another robot?"),)
    size = convention.action.size
    found = [Finding("action dims", "ok", f"rows of {size} numbers")]
    if len(raw) < spec.replan_steps:
        found.append(
            Finding(
                "horizon", "wrong",
                f"chunks have {len(raw)} rows and {spec.replan_steps} are to be used before the "
                f"server is asked again; say replan_steps={len(raw)},horizon={len(raw)} or less",
            )
        )  # fmt: skip
    elif len(raw) < spec.horizon:
        found.append(
            Finding(
                "horizon", "wrong",
                f"chunks have {len(raw)} rows and {spec.horizon} are expected; say "
                f"horizon={len(raw)}",
            )
        )  # fmt: skip
    else:
        used = f"{len(raw)} rows, of which {spec.replan_steps} are used"
        found.append(Finding("horizon", "ok", used))
    return (*found, _scale(raw, convention), _gripper(raw, convention))


def _scale(raw: Array, convention: Convention) -> Finding:
    grippers = {i for i, name in enumerate(convention.action.names) if "gripper" in name}
    switched = {switch.index for switch in convention.switches}
    plain = [i for i in range(convention.action.size) if i not in grippers | switched]
    limit = REACH * np.array(convention.action.high)[plain]
    worst = int(np.argmax(np.abs(raw[:, plain]).max(axis=0) / limit))
    largest = float(np.abs(raw[:, plain[worst]]).max())
    name = convention.action.names[plain[worst]]
    if largest > limit[worst]:
        return Finding(
            "action scale", "wrong",
            f"{name} reaches {largest:.3g} where {limit[worst] / REACH:.3g} is the most; the "
            "statistics of another data set undo its normalisation, or its units differ",
        )  # fmt: skip
    return Finding("action scale", "ok", f"the largest command is {name} = {largest:.3g}")


def _gripper(raw: Array, convention: Convention) -> Finding:
    action = convention.action
    index = max(i for i, name in enumerate(action.names) if "gripper" in name)
    switch = next((s for s in convention.switches if s.index == index), None)
    opens_low = action.gripper_open < action.gripper_close
    low, high = action.low[index], action.high[index]
    wire_low, wire_high = (switch.low, switch.high) if switch else (low, high)
    opening, closing = (wire_low, wire_high) if opens_low else (wire_high, wire_low)
    column = raw[:, index]
    told = f"this convention opens with {opening:g} and closes with {closing:g}"
    bottom, top = min(opening, closing), max(opening, closing)
    span = top - bottom
    if column.min() < bottom - 0.25 * span or column.max() > top + 0.25 * span:
        return Finding(
            "gripper sign", "wrong",
            f"gripper commands run from {column.min():.3g} to {column.max():.3g}; {told}",
        )  # fmt: skip
    if bottom < 0 <= column.min() and column.max() <= 1 and _whole(column):
        return Finding(
            "gripper sign", "suspect",
            f"gripper commands are 0 or 1 only, as of a server that does not use -1; {told}",
        )  # fmt: skip
    if abs(float(column[0]) - closing) < abs(float(column[0]) - opening):
        return Finding(
            "gripper sign", "suspect",
            f"its first command ({column[0]:.3g}) closes an empty open hand; {told}, so the sign "
            "may be reversed",
        )  # fmt: skip
    return Finding("gripper sign", "ok", f"an empty hand is kept open; {told}")


def _whole(column: Array) -> bool:
    return bool((np.abs(column - np.round(column)) < 0.02).all()) and bool((column < 0.5).any())


def _of_senses(policy: ForeignPolicy, seen: Observation) -> tuple[Finding, ...]:
    """See whether the answer depends on pictures and state at all."""
    convention = policy.address.convention

    def rows(observation: Observation) -> Array:
        policy.reset(INSTRUCTION, 0)
        return translate.raw_rows(policy.ask(observation), convention, policy.form)

    base = rows(seen)
    noise = float(np.abs(rows(seen) - base).max())
    mirrored = {k: read_only(v[:, ::-1], np.uint8) for k, v in seen.images.items()}
    by_picture = float(np.abs(rows(replace(seen, images=mirrored)) - base).max())
    by_state = float(np.abs(rows(resting(convention, PUSH_M)) - base).max())
    floor = max(2.0 * noise, 1e-6)
    return _picture_finding(policy, by_picture > floor, noise), _state_finding(
        convention, by_state > floor, noise
    )


def _picture_finding(policy: ForeignPolicy, matters: bool, noise: float) -> Finding:
    name = "image orientation"
    turns = {p.turn for p in policy.address.convention.pictures}
    sent = " and ".join("as they are" if t == "none" else f"under the turn {t!r}" for t in turns)
    if not matters and noise < 1e-3:
        return Finding(
            name, "suspect",
            "mirrored pictures change nothing in the answer; the server may not look at them, or "
            "read them under other keys",
        )  # fmt: skip
    if isinstance(policy.described.get("zetta"), Mapping):
        return Finding(name, "ok", f"our upright pictures are sent {sent}, as the server says")
    return Finding(
        name, "unknown",
        f"our upright pictures are sent {sent}, as published clients do "
        f"({policy.address.convention.checked}); from outside nobody can tell what it was "
        "trained on",
    )  # fmt: skip


def _state_finding(convention: Convention, matters: bool, noise: float) -> Finding:
    sizes = ", ".join(f"{'/'.join(s.path)} {convention.state_size(s)}" for s in convention.states)
    if not matters and noise < 1e-3:
        return Finding(
            "state", "suspect",
            f"moving the hand by {PUSH_M:g} m changes nothing in the answer; the server may not "
            f"use the state, or read it under another key than {sizes}",
        )  # fmt: skip
    return Finding("state", "ok", f"accepted: {sizes}")


def _parts(value: object, key: str = "") -> list[Part]:
    if isinstance(value, Mapping):
        inner = [(f"{key}/{k}" if key else str(k), v) for k, v in value.items()]
        return [part for k, v in inner for part in _parts(v, k)]
    if isinstance(value, np.ndarray):
        return [Part(key, value.shape, str(value.dtype))]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return _parts(value[0], key)
    return [Part(key, (), type(value).__name__)]
