"""Demonstrations as messages before the first turn: one of ours, one line of the model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from zetta.primitives.agent.demonstrations import Demonstration, FailedAttempt, Frame
from zetta.primitives.agent.prompt import Message, Part
from zetta.runtime.prompt_pictures import PictureLimits, compressed, read_picture

INTRODUCTION: Final = (
    "EXAMPLES. The following episodes worked, in other scenes than yours. Copy their strategy: the "
    "order of the steps, the checks, what was done after a failure. Do not copy their numbers: "
    "your things stand elsewhere, so take every distance from your own state and pictures."
)
CLOSING: Final = "END OF THE EXAMPLES. Your own task follows."
ACKNOWLEDGED: Final = "I will copy the strategy of the examples and take all numbers from my scene."


@dataclass(frozen=True, slots=True)
class ShownLimits:
    """How much of the demonstrations is shown."""

    frames: int = 24
    """Of one demonstration."""
    pictures: int = 24
    """Of all together; they are sent again in each turn."""
    size: int = 384
    """Longest side of a picture, pixels: smaller than the ones of the turn."""


def demonstration_messages(
    chosen: Sequence[Demonstration], limits: ShownLimits | None = None
) -> tuple[Message, ...]:
    """Return what stands before every turn; nothing where no demonstration is chosen."""
    if not chosen:
        return ()
    limits = limits or ShownLimits()
    share = limits.pictures // len(chosen)
    parts: list[Part] = [INTRODUCTION]
    for number, demonstration in enumerate(chosen, start=1):
        parts += _told(demonstration, number, share, limits)
    parts.append(CLOSING)
    return (
        Message("user", tuple(_joined(parts)), stable=True),
        Message("model", (ACKNOWLEDGED,)),
    )


def _told(shown: Demonstration, number: int, pictures: int, limits: ShownLimits) -> list[Part]:
    head = f"EXAMPLE {number}" + (" (how the commands work)" if shown.kind == "primer" else "")
    parts: list[Part] = [f"{head}: {shown.instruction}"]
    parts += [shown.arm_note] if shown.arm_note else []
    if shown.attempt is not None:
        parts += [_wrong(shown.attempt), "WHAT WORKED:"]
    frames = _spread(shown.frames, limits.frames)
    pictured = {frame.turn for frame in _spread([f for f in frames if f.images], pictures)}
    for frame in frames:
        parts.append(_frame_text(frame))
        jpeg = _picture(shown, frame, limits) if frame.turn in pictured else None
        parts += [] if jpeg is None else [jpeg]
    return parts


def _wrong(attempt: FailedAttempt) -> str:
    lines = ["WHAT WENT WRONG in an earlier attempt at this task:"]
    lines += [f"commands: {'; '.join(attempt.commands)}"] if attempt.commands else []
    lines += [f"failed: {one}" for one in attempt.failed]
    lines += [f"it ended: {attempt.ended}"] if attempt.ended else []
    return "\n".join(lines)


def _frame_text(frame: Frame) -> str:
    lines = [f"[{frame.label or f'turn {frame.turn}'}]"]
    for name, text in (("scene", frame.scene), ("state", frame.state), ("plan", frame.plan)):
        lines += [f"{name}: {text}"] if text else []
    lines += [f"commands: {'; '.join(frame.commands)}"] if frame.commands else []
    lines += [f"failed: {'; '.join(frame.failed)}"] if frame.failed else []
    lines += [f"effect: {frame.effect}"] if frame.effect else []
    return "\n".join(lines)


def _picture(shown: Demonstration, frame: Frame, limits: ShownLimits) -> bytes | None:
    picture = read_picture(shown.folder / frame.images[0])
    small = PictureLimits(width=limits.size, height=limits.size)
    return None if picture is None else compressed(picture, small)


def _spread(frames: Sequence[Frame], most: int) -> list[Frame]:
    """Return at most so many frames, evenly spread, the first and the last among them."""
    if len(frames) <= most:
        return list(frames)
    if most <= 0:
        return []
    picks = np.unique(np.linspace(0, len(frames) - 1, most).round().astype(int))
    return [frames[k] for k in picks]


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Join texts that follow one another: fewer parts, the same words."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, str) and isinstance(last, str):
            joined[-1] = f"{last}\n\n{part}"
        else:
            joined.append(part)
    return joined
