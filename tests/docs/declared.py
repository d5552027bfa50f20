"""Prints the tables of `docs/conventions.md` that are declared in code.

`python -m tests.docs.declared docs/conventions.md` writes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from zetta.runtime import registry
from zetta.runtime.core import ActionSpec, CameraSpec
from zetta.runtime.foreign.conventions import Convention
from zetta.runtime.foreign.robots import CONVENTIONS

BEGIN: Final = "<!-- declared in code -->"
END: Final = "<!-- end of what is declared -->"
POLICIES: Final = (
    "zetta/tiny", "zetta/tiny-shuffled", "toy/reach", "twin/reach", "robosuite/reach",
)  # fmt: skip
TURNED: Final = {
    "none": "", "mirror": ", left-right mirrored", "flip": ", upside down", "rotate": ", turned",
}  # fmt: skip
LAID: Final = {"HWC": "", "CHW": ", CHW"}


def tables() -> str:
    """Return the tables as Markdown."""
    return "\n".join(
        [
            "### Simulators",
            "",
            *_table(("simulator", "rate", "action", "1.0 is", "gripper", "pictures"), _worlds()),
            "",
            "### Policies that come with zetta",
            "",
            *_table(("policy", "rate", "action", "rows, used", "pictures", "profile"), _policies()),
            "",
            "### Servers and clients of others",
            "",
            *_table(
                ("convention", "rate", "action", "gripper", "rows, used", "pictures"),
                _foreign(),
            ),
        ]
    )


def with_tables(document: str) -> str:
    """Return a document with the tables between its two marks.

    Raises:
        ValueError: it lacks the marks.
    """
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"the document lacks the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _worlds() -> Iterable[Sequence[str]]:
    for name, rate, action, cameras in _declared():
        yield (
            f"`{name}`", f"{rate:g} Hz", _action(action), _unit(action), _gripper(action),
            _pictures(cameras),
        )  # fmt: skip


def _declared() -> Iterable[tuple[str, float, ActionSpec, tuple[CameraSpec, ...]]]:
    """Yield what each simulator says of itself; none of them is started, but for the toy."""
    libero = import_module("zetta.sims.libero.env")
    yield "libero", libero.CONTROL_HZ, libero.ACTION, _squares(libero)
    toy = import_module("zetta.sims.toy").ToySimulator().make("toy_pick", 0).spec
    yield "toy", toy.control_hz, toy.action, toy.cameras
    twin = import_module("zetta.hw_drivers.twin.setups").twin_setup().spec({})
    yield "twin", twin.control_hz, twin.action, twin.cameras
    robosuite = import_module("zetta.sims.robosuite.env")
    one = import_module("zetta.sims.robosuite.arms").action_spec(("arm",))
    size = robosuite.PICTURE_SIZE
    pictures = (CameraSpec("agentview", size, size), CameraSpec("wrist", size, size, "wrist"))
    yield "robosuite", robosuite.CONTROL_HZ, one, pictures
    robocasa = import_module("zetta.sims.robocasa.env")
    yield "robocasa", robocasa.CONTROL_HZ, robocasa.ACTION, _squares(robocasa)
    robotwin = import_module("zetta.sims.robotwin.arms")
    tasks = import_module("zetta.sims.robotwin.tasks")
    seen = import_module("zetta.sims.robotwin.pictures").camera_specs()
    arms = object.__new__(robotwin.Arms)  # what it declares needs no robot
    yield "robotwin", tasks.CONTROL_HZ, arms.spec("rate"), seen
    yield "robotwin…_ee", tasks.WAYPOINT_HZ, arms.spec("ee"), seen


def _squares(module: Any) -> tuple[CameraSpec, ...]:
    size = module.PICTURE_SIZE
    return tuple(
        CameraSpec(name, size, size, "wrist" if name == "wrist" else "world")
        for name in module.CAMERAS
    )


def _policies() -> Iterable[Sequence[str]]:
    for name in POLICIES:
        made = registry.policy(name)
        assert made is not None
        spec = made.spec
        yield (
            f"`{name}`", f"{spec.control_hz:g} Hz", _action(spec.action),
            f"{spec.horizon}, {spec.replan_steps}", _pictures(spec.cameras),
            spec.render_profile or "any",
        )  # fmt: skip
        made.close()


def _foreign() -> Iterable[Sequence[str]]:
    for told in CONVENTIONS:
        sent = (
            f"{p.path[-1]} {p.size[0]} x {p.size[1]}{TURNED[p.turn]}{LAID[p.layout]}"
            for p in told.pictures
        )
        yield (
            f"`{told.protocol}…@{told.name}`", f"{told.control_hz:g} Hz", _action(told.action),
            _sent_gripper(told),
            f"{told.horizon}, {told.replan_steps}", "; ".join(sent),
        )  # fmt: skip


def _action(action: ActionSpec) -> str:
    framed = f", {action.frame}" if action.kind.endswith("pose") else ""
    return f"`{action.kind}` {action.size}{framed}"


def _unit(action: ActionSpec) -> str:
    """Say what the first translation and the first rotation are in SI units."""
    if action.kind != "delta_pose":
        return "1 m, 1 rad, absolute"
    return f"{action.scale[0]:g} m, {action.scale[3]:g} rad"


def _gripper(action: ActionSpec) -> str:
    return f"{action.gripper_open:g} opens, {action.gripper_close:g} closes"


def _sent_gripper(told: Convention) -> str:
    """Say what travels for an open and for a closed gripper."""
    action = told.action
    if not told.switches:
        return _gripper(action)
    switch = told.switches[0]
    opens, closes = switch.low, switch.high
    if action.gripper_open > action.gripper_close:
        opens, closes = closes, opens
    return f"{opens:g} opens, {closes:g} closes"


def _pictures(cameras: Iterable[CameraSpec]) -> str:
    return "; ".join(f"{c.name} {c.height} x {c.width}" for c in cameras) or "none"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
