"""Demonstrations: episodes that worked, as an agent is shown them.

A demonstration is a folder with `demo.json` and the JPEG pictures that it names. The shape is the
published one of RoboDawn (arXiv 2609.22966), so that its demonstrations can be read too; fields
that are not known here are left alone. Nothing of the files is run, and no name leaves its folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.core import Init, Scene
from zetta.runtime.errors import ConfigError

FILE: Final = "demo.json"
BYTES_MOST: Final = 4_000_000
FRAMES_MOST: Final = 400
TEXT_MOST: Final = 4000
"""Characters of one text field."""
Kind: TypeAlias = Literal["task", "primer"]
KINDS: Final[tuple[Kind, ...]] = ("task", "primer")
Grasps: TypeAlias = tuple[tuple[str, str], ...]
"""Arm and the thing that it grasped."""


@dataclass(frozen=True, slots=True)
class SceneKey:
    """Which start a demonstration comes from, so that it is never shown to itself."""

    suite: str = ""
    """Empty where it is not told."""
    task: str = ""
    """Number or name in the suite."""
    seed: int | None = None
    layout: str = ""
    """Number of the initial state that ships with the task, or empty for a sampled one."""
    name: str = ""
    """Another name of the task, where it has one."""

    @classmethod
    def of(cls, scene: Scene, name: str = "") -> SceneKey:
        """Return the key of a scene, whose task may have a name beside its number."""
        layout = str(scene.layout) if isinstance(scene.layout, Init) else ""
        return cls(scene.task.suite, str(scene.task.index), scene.seed, layout, name)

    def is_same(self, other: SceneKey) -> bool:
        """Tell whether both may be the same start; what is not told counts as equal.

        >>> SceneKey("libero_goal", "3", 7).is_same(SceneKey("", "3", 7))
        True
        >>> SceneKey("libero_goal", "3", 0, "5").is_same(SceneKey("libero_goal", "3", 0, "6"))
        False
        """
        if not {self.task, self.name} & {other.task, other.name} - {""}:
            return False
        if self.suite and other.suite and self.suite != other.suite:
            return False
        if self.layout or other.layout:
            return self.layout == other.layout
        return self.seed is None or other.seed is None or self.seed == other.seed


@dataclass(frozen=True, slots=True)
class Frame:
    """One turn of a demonstration."""

    turn: int
    """From 1."""
    label: str = ""
    images: tuple[str, ...] = ()
    """File names in the demonstration's folder."""
    state: str = ""
    plan: str = ""
    commands: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Commands that failed, with the reason where it is known."""
    effect: str = ""
    scene: str = ""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at the same task that did not work, to be shown beside the one that did."""

    commands: tuple[str, ...]
    failed: tuple[str, ...]
    """What failed, command and reason."""
    ended: str = ""
    """How it ended."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An episode that worked."""

    folder: Path
    task: str
    instruction: str
    frames: tuple[Frame, ...]
    kind: Kind = "task"
    scene: SceneKey = SceneKey()
    arm_note: str = ""
    grasps: Grasps = ()
    attempt: FailedAttempt | None = None


def read_demonstration(folder: Path) -> Demonstration:
    """Read the demonstration in a folder.

    Raises:
        ConfigError: there is none, or it is damaged; the message names file and field.
    """
    path = folder / FILE
    try:
        if path.stat().st_size > BYTES_MOST:
            raise ConfigError(f"{path} is longer than {BYTES_MOST:,} bytes; no demonstration is")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read the demonstration {path}: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path} holds {_kind(content)}; expected an object")
    return _demonstration(_Fields(content, str(path)), folder)


def read_library(folder: Path) -> tuple[Demonstration, ...]:
    """Read every demonstration under a folder, ordered by its path.

    Raises:
        ConfigError: there is none, or one is damaged.
    """
    found = sorted(folder.rglob(FILE))
    if not found:
        raise ConfigError(f"there is no {FILE} under {folder}; expected folders of demonstrations")
    return tuple(read_demonstration(path.parent) for path in found)


# --------------------------------------------------------------------------- fields


@dataclass(frozen=True, slots=True)
class _Fields:
    """An object of the file, read field by field."""

    content: Mapping[str, object]
    where: str

    def text(self, name: str, needed: bool = False) -> str:
        value = self.content.get(name)
        if value is None and not needed:
            return ""
        if not isinstance(value, str) or (needed and not value.strip()):
            raise ConfigError(f"{self.where}: {name} is {_kind(value)}; expected a text")
        return _clean(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ConfigError(f"{self.where}: {name} is {_kind(value)}; expected a list of texts")
        # A failed command may be an object of command and reason.
        return tuple(_clean(one) if isinstance(one, str) else self._row(name, one) for one in value)

    def _row(self, name: str, row: object) -> str:
        values = list(row.values()) if isinstance(row, dict) else []
        if values and all(isinstance(value, str | int | float) for value in values):
            return _clean(": ".join(map(str, values)))
        raise ConfigError(f"{self.where}: {name} holds {_kind(row)}; expected texts")

    def whole(self, name: str) -> int:
        value = self.content.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(f"{self.where}: {name} is {_kind(value)}; expected a whole number")
        return value

    def fields(self, name: str) -> _Fields:
        value = self.content.get(name)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise ConfigError(f"{self.where}: {name} is {_kind(value)}; expected an object")
        return _Fields(value, f"{self.where}: {name}")

    def rows(self, name: str) -> Iterator[_Fields]:
        value = self.content.get(name)
        if not isinstance(value, list) or not value:
            raise ConfigError(f"{self.where}: {name} is {_kind(value)}; expected a list of frames")
        if len(value) > FRAMES_MOST:
            raise ConfigError(
                f"{self.where}: got {len(value)} {name}; expected {FRAMES_MOST} at most"
            )
        for place, row in enumerate(value):
            if not isinstance(row, dict):
                raise ConfigError(
                    f"{self.where}: {name}[{place}] is {_kind(row)}; expected an object"
                )
            yield _Fields(row, f"{self.where}: {name}[{place}]")


def _clean(text: str) -> str:
    """Return not too much of a text, and nothing that cannot be sent, such as half a character."""
    return text[:TEXT_MOST].encode("utf-8", "replace").decode("utf-8")


def _demonstration(top: _Fields, folder: Path) -> Demonstration:
    kind = top.text("kind") or "task"
    if kind not in KINDS:
        raise ConfigError(f"{top.where}: kind is {kind!r}; expected {' or '.join(KINDS)}")
    grasps = top.fields("grasps")
    return Demonstration(
        folder=folder,
        task=top.text("task", needed=True),
        instruction=top.text("instruction", needed=True),
        frames=tuple(_frame(row, folder) for row in top.rows("frames")),
        kind=kind,
        scene=_scene(top),
        arm_note=top.text("arm_note"),
        grasps=tuple((arm, grasps.fields(arm).text("object")) for arm in grasps.content),
        attempt=_attempt(top),
    )


def _frame(row: _Fields, folder: Path) -> Frame:
    images = row.texts("images")
    for name in images:
        if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
            raise ConfigError(f"{row.where}: the image {name!r} is no plain file name")
        if not (folder / name).is_file():
            raise ConfigError(f"{row.where}: the image {name!r} is not in {folder}")
    return Frame(
        row.whole("turn"), row.text("label"), images, row.text("state"), row.text("plan"),
        row.texts("commands"), row.texts("failed"), row.text("effect"), row.text("scene"),
    )  # fmt: skip


def _scene(top: _Fields) -> SceneKey:
    source = top.fields("source")
    seed = source.content.get("seed")
    return SceneKey(
        suite=source.text("suite"),
        task=source.text("task") or top.text("task"),
        seed=None if seed is None else source.whole("seed"),
        layout=source.text("layout"),
        name=source.text("task_name") or top.text("task"),
    )


def _attempt(top: _Fields) -> FailedAttempt | None:
    if top.content.get("failed_attempt") is None:
        return None
    attempt = top.fields("failed_attempt")
    return FailedAttempt(attempt.texts("commands"), attempt.texts("failed"), attempt.text("ended"))


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text" if value.strip() else "an empty text"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "an object"
