"""A fault of the toy whose moment matters, and the skill that is known to mend it.

A thing slips out of the hand once, after it has been held for a time of its own, and the policy's
camera repeats an old picture: the policy, and a fresh sample of it, reach for where the thing was.
A recovery that comes before the slip is undone by it, so random moments do not help as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.skills.evolve.recovery_programs import find_program
from zetta.skills.evolve.skill_texts import Page, critic_text, package_files

FAULT: Final = "camera_frozen_at=12;slip_after=6;slip_spread=10"
POLICY: Final = "toy/reach-exact"
"""Makes no errors of its own: what fails was planted."""
NAME: Final = "slipped"
_BODY: Final = """    if not once(w.holding > 0.5):
        return ok()
    if now(w.object_to_receptacle) < p.delivered:
        return ok()
    if now(w.closed_for) > 0.5 and delta(w.gripper_opening, 0.2) < -p.shrink:
        if now(w.holding) > 0.5:
            return recover("the fingers close on what was held")
    if held(w.holding < 0.5, p.gone_for) and now(w.closed_for) > 0.2:
        return recover("what was held is held no longer")
    return ok()
"""
_NUMBERS: Final = (
    Parameter("delivered", 0.06, 0.03, 0.20, "m", "An object this near is where it belongs."),
    Parameter("shrink", 0.008, 0.004, 0.02, "m", "The fingers close so much in a fifth of a s."),
    Parameter("gone_for", 0.15, 0.05, 1.0, "s", "How long nothing must have been held."),
)


def write_fix(folder: Path) -> Path:
    """Write the skill that mends the fault into a new folder below `folder` and return it."""
    program = find_program("fetch")
    page = Page(
        name=NAME,
        description="What was held has slipped out of the hand; fetch it.",
        applies="the task moves an object",
        roles=program.roles,
        uses=program.uses,
        max_ticks=program.max_ticks,
        text="Known to mend a fault that is planted in the toy.",
        author="the Zetta project",
        made_by="hand",
    )
    critic = critic_text("What was held has slipped out of the hand.", NAME, _BODY, 1.5)
    files = package_files(page, critic, program.text, (*_NUMBERS, *program.parameters))
    path = folder / NAME
    path.mkdir(parents=True)
    for name, text in files.items():
        (path / name).write_text(text, encoding="utf-8")
    return path
