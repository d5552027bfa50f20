"""`SKILL.md`: the front matter of a skill package, and the text below it for people."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, TypeAlias, cast, get_args

import yaml

from zetta.primitives.roles_records import VERBS
from zetta.runtime.errors import ScreenError, suggest
from zetta.runtime.signals import ROLES

MadeBy: TypeAlias = Literal["hand", "search", "llm", "episode"]

NEEDED: Final = (
    "name", "version", "description", "applies", "roles", "max_ticks", "provenance",
)  # fmt: skip
OPTIONAL: Final = ("uses", "excludes", "verbs", "license", "level")
EXCLUDABLE: Final = (*ROLES, "steps")
"""What `excludes` may name: roles, and `steps` for instructions of several errands."""
NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
VERSION: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
TICKS_MOST: Final = 600
HEAD_MOST: Final = 16_384
"""Bytes of the front matter."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a skill comes from."""

    author: str
    made_by: MadeBy
    date: datetime.date


@dataclass(frozen=True, slots=True)
class SkillPage:
    """The front matter of a skill."""

    name: str
    version: str
    description: str
    applies: str
    """When it applies, in words."""
    roles: tuple[str, ...]
    """Roles that the instruction must bind; the skill is left out where it does not."""
    uses: tuple[str, ...]
    """Roles that it looks at where the instruction binds them, and can do without."""
    excludes: tuple[str, ...]
    """The skill is left out where the instruction binds one of these roles; `steps` stands for an
    instruction of several errands."""
    verbs: tuple[str, ...]
    """What the instruction must ask to be done with what its roles name, one of these; any if
    there are none."""
    max_ticks: int
    provenance: Provenance
    license: str
    level: str
    """What the page says about the sensing level; empty when it says nothing."""
    lines: Mapping[str, int]
    """Line of each field in the file."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field as written: text, a list of texts or a mapping of texts."""

    value: str | tuple[str, ...] | dict[str, _Field]
    line: int


def read_page(text: str, path: Path) -> SkillPage:
    """Read the front matter of a `SKILL.md`.

    Args:
        text: the whole file.
        path: where it lies, for messages; its folder bears the skill's name.

    Raises:
        ScreenError: no front matter, no YAML, or a field that is missing, unknown or wrong; the
            message begins with file and line.
    """
    fields = _fields(text, path)
    page = _Page(path, fields)
    page.check_names(NEEDED, OPTIONAL)
    name = page.matching("name", NAME, "lower-case words joined by hyphens, such as pick-up-again")
    if name != path.parent.name:
        page.refuse("name", f"the skill is named {name!r} and its folder {path.parent.name!r}")
    return SkillPage(
        name=name,
        version=page.matching("version", VERSION, "three numbers, such as 1.0.0"),
        description=page.text("description"),
        applies=page.text("applies"),
        roles=page.choices("roles", ROLES),
        uses=page.choices("uses", ROLES) if "uses" in fields else (),
        excludes=page.choices("excludes", EXCLUDABLE) if "excludes" in fields else (),
        verbs=page.choices("verbs", VERBS) if "verbs" in fields else (),
        max_ticks=page.ticks("max_ticks"),
        provenance=page.provenance("provenance"),
        license=page.text("license") if "license" in fields else "",
        level=page.text("level") if "level" in fields else "",
        lines={key: field.line for key, field in fields.items()},
    )


@dataclass(frozen=True, slots=True)
class _Page:
    """The fields of one page, and how to read them."""

    path: Path
    fields: Mapping[str, _Field]

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise a sentence that begins with the field's line."""
        line = self.fields[key].line if key in self.fields else 1
        raise ScreenError(f"{self.path}:{line}: {reason}")

    def check_names(self, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
        """Refuse unknown fields, then missing ones."""
        for key in self.fields:
            if key not in needed and key not in optional:
                self.refuse(key, f"unknown field {key!r}; {suggest(key, (*needed, *optional))}")
        for key in needed:
            if key not in self.fields:
                self.refuse(key, f"the field {key!r} is missing")

    def text(self, key: str) -> str:
        """Return a field that is text."""
        value = self.fields[key].value
        if not isinstance(value, str) or not value.strip():
            self.refuse(key, f"{key} is empty or no text; expected a sentence or a word")
        return value.strip()

    def matching(self, key: str, pattern: re.Pattern[str], expected: str) -> str:
        """Return a text of a given shape."""
        value = self.text(key)
        if not pattern.fullmatch(value):
            self.refuse(key, f"{key} is {value!r}; expected {expected}")
        return value

    def choices(self, key: str, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return a list whose entries are known words."""
        value = self.fields[key].value
        if not isinstance(value, tuple):
            self.refuse(key, f"{key} is no list; write [{known[0]}], or [] for none")
        for word in value:
            if word not in known:
                self.refuse(key, f"{key} names {word!r}; {suggest(word, known)}")
        if len(set(value)) != len(value):
            self.refuse(key, f"{key} names one thing twice")
        return value

    def ticks(self, key: str) -> int:
        """Return a whole number of ticks."""
        value = self.text(key)
        if not re.fullmatch(r"[0-9]{1,4}", value) or not 1 <= int(value) <= TICKS_MOST:
            self.refuse(key, f"{key} is {value!r}; expected a whole number, 1 to {TICKS_MOST}")
        return int(value)

    def provenance(self, key: str) -> Provenance:
        """Return who made it, how and when."""
        value = self.fields[key].value
        if not isinstance(value, dict):
            self.refuse(key, f"{key} holds the lines author, made_by and date")
        part = _Page(self.path, value)
        for name in ("author", "made_by", "date"):
            if name not in value:
                self.refuse(key, f"{key} lacks the line {name!r}")
        part.check_names(("author", "made_by", "date"))
        made_by = part.text("made_by")
        if made_by not in get_args(MadeBy):
            part.refuse("made_by", f"made_by is {made_by!r}; {suggest(made_by, get_args(MadeBy))}")
        try:
            date = datetime.date.fromisoformat(part.text("date"))
        except ValueError:
            part.refuse("date", f"date is {part.text('date')!r}; expected a day as 2026-01-31")
        return Provenance(part.text("author"), cast(MadeBy, made_by), date)


def _fields(text: str, path: Path) -> dict[str, _Field]:
    """Return the fields between the two `---` lines; values stay as they are written."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise ScreenError(f"{path}:1: the first line is not ---; front matter stands between two")
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        raise ScreenError(f"{path}:1: the front matter does not end; a second --- line is missing")
    head = "\n".join(lines[1:end])
    if len(head.encode()) > HEAD_MOST:
        raise ScreenError(f"{path}:1: the front matter is larger than {HEAD_MOST:,} bytes")
    try:
        node = yaml.compose(head, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line if error.problem_mark else 0) + 2
        raise ScreenError(f"{path}:{line}: this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError):
        raise ScreenError(f"{path}:2: this is no YAML that front matter may hold") from None
    if not isinstance(node, yaml.MappingNode):
        raise ScreenError(f"{path}:2: the front matter holds no fields, such as name: regrasp")
    return _mapping(node, path, 0)


def _mapping(node: yaml.MappingNode, path: Path, depth: int) -> dict[str, _Field]:
    fields: dict[str, _Field] = {}
    for key, value in node.value:
        line = key.start_mark.line + 2  # counted from 0, and the --- line stands above
        if not isinstance(key, yaml.ScalarNode):
            raise ScreenError(f"{path}:{line}: a field's name is one word")
        if key.value in fields:
            raise ScreenError(f"{path}:{line}: the field {key.value!r} stands here a second time")
        fields[key.value] = _Field(_value(value, path, line, depth), line)
    return fields


def _value(
    node: yaml.Node, path: Path, line: int, depth: int
) -> str | tuple[str, ...] | dict[str, _Field]:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(
        isinstance(entry, yaml.ScalarNode) for entry in node.value
    ):
        return tuple(str(entry.value) for entry in node.value)
    if isinstance(node, yaml.MappingNode) and depth == 0:
        return _mapping(node, path, 1)
    raise ScreenError(f"{path}:{line}: a field holds a word, a list of words or lines of words")
