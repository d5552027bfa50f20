"""An episode that worked becomes a demonstration: key turns, captions, small pictures."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
from PIL import Image as Pillow

from zetta.primitives.agent.demonstrations import (
    FILE,
    Demonstration,
    FailedAttempt,
    SceneKey,
    read_demonstration,
)
from zetta.primitives.agent.records import Answer, Picture
from zetta.primitives.command_results import CommandResult
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.prompt_pictures import PictureLimits, compressed

PICTURED_MOST: Final = 12
"""Turns with a picture."""
FRAMES_MOST: Final = 48
PICTURE: Final = PictureLimits(width=640, height=640, bytes=200_000)
KEY_WORDS: Final = frozenset(
    {"gripper", "pick", "place", "home", "point", "open", "close", "turn", "push", "grasp"}
    | {"policy", "skill", "both"}
)
"""A turn with a command of one of these words is told in any case: there things change hands."""


Jpegs: TypeAlias = tuple[tuple[str, bytes], ...]
"""Views by name, each a small JPEG."""


@dataclass(frozen=True, slots=True)
class DrivenTurn:
    """One turn of a drive: what was shown, decided, and what came of it."""

    state: str
    answer: Answer
    results: tuple[CommandResult, ...] = ()
    """Of the answer's own commands."""
    pictures: Jpegs = ()
    refusals: tuple[str, ...] = ()
    """What was wrong with the answer, where its commands were not begun."""

    @classmethod
    def of(
        cls,
        state: str,
        pictures: Sequence[Picture],
        answer: Answer,
        results: Sequence[CommandResult],
        refusals: Sequence[str] = (),
    ) -> DrivenTurn:
        """Keep a turn as soon as it is over; its pictures are made small at once."""
        return cls(state, answer, tuple(results), small_pictures(pictures), tuple(refusals))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a demonstration comes from."""

    instruction: str
    scene: SceneKey
    success: bool
    evidence: str
    """What says that it worked, such as `the task's own checker`."""
    agent: str
    """Who drove."""
    versions: tuple[tuple[str, str], ...] = ()
    """Of the simulator and whatever else is worth knowing; ours is added."""
    ended: Jpegs = ()
    """Pictures of the end, where there are any."""


def small_pictures(pictures: Sequence[Picture]) -> Jpegs:
    """Return pictures as they are kept in a demonstration."""
    made = [(p.name, compressed(Pillow.fromarray(p.image), PICTURE)) for p in pictures]
    return tuple((name, jpeg) for name, jpeg in made if jpeg is not None)


def write_demonstration(
    folder: Path,
    turns: Sequence[DrivenTurn],
    origin: Origin,
    attempt: FailedAttempt | None = None,
) -> Demonstration:
    """Write an episode that worked as a demonstration and return it as it is read again.

    Args:
        folder: is made; must not exist.
        turns: of the episode, all of them.
        origin: where it comes from.
        attempt: one at the same task that failed.

    Raises:
        ConfigError: the episode is no verified success, has no turns, or the folder exists.
        InfraError: it cannot be written.
    """
    if not origin.success or not origin.evidence.strip():
        raise ConfigError("only a verified success becomes a demonstration; this is none")
    if not origin.instruction.strip() or not (origin.scene.name or origin.scene.task):
        raise ConfigError("a demonstration needs its instruction and its task's name or number")
    if not turns:
        raise ConfigError("the episode has no turns, so it demonstrates nothing")
    if folder.exists():
        raise ConfigError(f"{folder} exists; name a new folder for the demonstration")
    place = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        place.mkdir(parents=True)
        frames = _frames(place, turns, origin)
        content = {**_head(turns, origin, attempt), "frames": frames}
        (place / FILE).write_text(
            json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        place.rename(folder)
    except OSError as error:
        shutil.rmtree(place, ignore_errors=True)
        raise InfraError(f"cannot write the demonstration {folder}: {error}") from error
    return read_demonstration(folder)


def failed_attempt(turns: Sequence[DrivenTurn], ended: str) -> FailedAttempt:
    """Return an episode that failed as what is shown beside one that worked."""
    results = [result for driven in turns for result in driven.results]
    return FailedAttempt(
        commands=tuple(result.text for result in results)[:FRAMES_MOST],
        failed=tuple(text for driven in turns for text in _failures(driven))[:FRAMES_MOST],
        ended=ended,
    )


def key_turns(turns: Sequence[DrivenTurn], most: int = PICTURED_MOST) -> list[int]:
    """Return the places of the turns that are told, in order.

    The first, the last, and every turn in which something changes hands; gaps are filled evenly
    until there are `most`.
    """
    last = len(turns) - 1
    keys = {0, last} | {k for k, driven in enumerate(turns) if _is_key(driven)}
    while len(keys) < min(most, len(turns)):
        ordered = sorted(keys)
        start, end = max(itertools.pairwise(ordered), key=lambda gap: gap[1] - gap[0])
        keys.add((start + end) // 2)
    return sorted(keys)


def _is_key(driven: DrivenTurn) -> bool:
    return any(KEY_WORDS & set(re.findall(r"[a-z]+", c.lower())) for c in driven.answer.commands)


def _spread(places: Sequence[int], most: int) -> list[int]:
    if len(places) <= most:
        return list(places)
    return [places[k] for k in np.unique(np.linspace(0, len(places) - 1, most).round().astype(int))]


# --------------------------------------------------------------------------- what is written


def _head(
    turns: Sequence[DrivenTurn], origin: Origin, attempt: FailedAttempt | None
) -> dict[str, object]:
    scene, instruction = origin.scene, origin.instruction
    commands = sum(len(driven.results) for driven in turns)
    source = {
        "suite": scene.suite, "task": scene.task, "seed": scene.seed, "layout": scene.layout,
        "task_name": scene.name,
        "instruction": instruction, "turns": len(turns), "commands": commands, "success": True,
        "evidence": origin.evidence, "agent": origin.agent,
        "versions": {**dict(origin.versions), "zetta": _version()},
    }  # fmt: skip
    head: dict[str, object] = {
        "task": scene.name or scene.task, "instruction": instruction, "kind": "task",
        "source": source, "arm_note": "", "grasps": {},
    }  # fmt: skip
    if attempt is not None:
        head["failed_attempt"] = asdict(attempt)
    return head


def _frames(place: Path, turns: Sequence[DrivenTurn], origin: Origin) -> list[dict[str, object]]:
    told = _spread(key_turns(turns), FRAMES_MOST)
    room = PICTURED_MOST - (1 if origin.ended else 0)
    pictured = set(_spread([k for k in told if turns[k].pictures], room))
    frames = []
    for k in told:
        driven = turns[k]
        images = _write_images(place, k + 1, driven.pictures) if k in pictured else []
        frames.append(_frame(k + 1, driven, images))
    if origin.ended:
        number = len(turns) + 1
        images = _write_images(place, number, origin.ended)
        frames.append(_end(number, images, origin.evidence))
    return frames


def _frame(number: int, driven: DrivenTurn, images: list[str]) -> dict[str, object]:
    answer, results = driven.answer, driven.results
    commands = [result.text for result in results] or list(answer.commands)
    return {
        "turn": number, "label": f"turn {number}: {_caption(commands)}", "images": images,
        "state": driven.state, "plan": answer.plan, "commands": commands,
        "failed": _failures(driven),
        "effect": _effect(results), "scene": answer.scene,
    }  # fmt: skip


def _end(number: int, images: list[str], evidence: str) -> dict[str, object]:
    return {
        "turn": number, "label": f"the end ({evidence})", "images": images, "state": "",
        "plan": "", "commands": [], "failed": [], "effect": "", "scene": "",
    }  # fmt: skip


def _caption(commands: Sequence[str]) -> str:
    """Return a turn in a few words: the command that changes most, and how many there were."""
    keys = [c for c in commands if KEY_WORDS & set(re.findall(r"[a-z]+", c.lower()))]
    shown = (keys or list(commands))[:2]
    return ", ".join(shown) or "no command"


def _effect(results: Sequence[CommandResult]) -> str:
    """Return what came of each command, shortly."""
    return "; ".join(_came(result) for result in results)


def _came(result: CommandResult) -> str:
    words = f"{result.text}: {'ok' if result.completed else f'FAILED ({result.stop})'}"
    if result.moved is not None:
        x, y, z = (100.0 * value for value in result.moved)
        words += f", moved by ({x:+.1f}, {y:+.1f}, {z:+.1f}) cm"
    return words if result.grasp is None else f"{words}, gripper {result.grasp.text}"


def _failures(driven: DrivenTurn) -> list[str]:
    failed = [f"{r.text}: {r.stop}: {r.detail}" for r in driven.results if not r.completed]
    return [*failed, *driven.refusals]


def _write_images(place: Path, number: int, pictures: Jpegs) -> list[str]:
    names = []
    for view, jpeg in pictures:
        name = f"frame{number:03d}_{re.sub(r'[^A-Za-z0-9_-]+', '-', view) or 'view'}.jpg"
        (place / name).write_bytes(jpeg)
        names.append(name)
    return names


def _version() -> str:
    try:
        return version("zetta")
    except PackageNotFoundError:
        return "unknown"
