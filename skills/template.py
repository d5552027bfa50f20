"""What `zetta skills new` writes: a small skill that passes its own checks, to be changed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError
from zetta.skills.package_files import CRITIC, EVIDENCE, PAGE, PARAMETERS, RECOVERY, REPLAY
from zetta.skills.package_page import NAME
from zetta.skills.rehearsals import Rehearsal, Thing
from zetta.skills.replay import window_text

_PAGE: Final = """---
name: {name}
version: 0.1.0
description: Say in one sentence what goes wrong and what the skill does about it.
applies: say when it applies, such as "the task moves an object"
roles: []
max_ticks: 60
provenance:
  author: your name
  made_by: hand
  date: {date}
---

# {name}

Say what it looks for, what it must not be confused with, and what it does. This one fires when the
hand is told to move and does not, and raises the hand.
"""
_CRITIC: Final = '''"""The hand is told to move and does not."""

WINDOW_S = 2.0
SKILL = "{name}"
REFRACTORY_S = 1.0


def check(w, p):
    if now(w.stalled_for) < p.stall:
        return ok()
    return recover("the hand is told to move and does not")
'''
_RECOVERY: Final = '''"""Rise."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.stalled_for) < p.stall
'''
_PARAMETERS: Final = """[stall]
default = 1.0
low = 0.5
high = 3.0
unit = "s"
doc = "How long the hand must have been stuck."

[rise]
default = 0.08
low = 0.02
high = 0.20
unit = "m"
doc = "How far to rise."
"""
SIGNALS: Final = ("policy_drives", "stalled_for")


def write_template(name: str, folder: Path) -> Path:
    """Write a new skill package into `folder` and return its path.

    Raises:
        ConfigError: the name is no skill name, or the package exists.
    """
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"a skill cannot be named {name!r}; use lower-case words joined by hyphens, such as "
            "pick-up-again"
        )
    package = folder / name
    try:
        package.mkdir(parents=True)
        for path, text in _texts(name).items():
            (package / path).parent.mkdir(exist_ok=True)
            (package / path).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise ConfigError(f"{package} exists already; choose another name or --out") from None
    except OSError as error:
        raise ConfigError(f"cannot write {package}: {error.strerror}") from None
    return package


def _texts(name: str) -> Mapping[str, str]:
    today = datetime.date.today().isoformat()
    return {
        PAGE: _PAGE.format(name=name, date=today),
        CRITIC: _CRITIC.format(name=name),
        RECOVERY: _RECOVERY,
        PARAMETERS: _PARAMETERS,
        EVIDENCE: '{"records": []}\n',
        f"{REPLAY}/fires.json": _stuck(),
        f"{REPLAY}/silent.json": _free(),
    }


def _stuck() -> str:
    rehearsal = Rehearsal({"object": Thing(0.1, 0.0)})
    rehearsal.to("object", 0.0, 1.0)
    rehearsal.wait(2.0, asked=(0.0, 0.0, -0.01))
    return window_text(rehearsal.window("fires", "fires", SIGNALS, "the hand presses on an edge"))


def _free() -> str:
    rehearsal = Rehearsal({"object": Thing(0.1, 0.0)})
    rehearsal.to("object", 0.0, 1.0)
    rehearsal.wait(0.5)
    rehearsal.move(0.0, 0.0, 0.3, 1.0)
    return window_text(rehearsal.window("silent", "silent", SIGNALS, "the hand goes and comes"))
