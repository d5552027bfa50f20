"""Distils what an agent did in a success into a draft of a skill.

What is kept are the commands of the attempt that succeeded: those after the last one that failed.
They say how to go on and not when, so the trigger is a critic that is chosen, and the gate judges
the draft as it judges every other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.primitives.command_grammar import parse_command
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import Command
from zetta.primitives.roles import Roles, parse_instruction
from zetta.runtime.errors import ConfigError, suggest
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.critic_templates import TEMPLATES, CriticTemplate
from zetta.skills.evolve.distilled_steps import VERBS_OF, Step, steps_of
from zetta.skills.evolve.recovery_programs import SEEN
from zetta.skills.evolve.skill_texts import Page, package_files

AUTHOR: Final = "distilled from an agent's episode"
TICKS_LEAST, TICKS_MOST = 60, 300
"""Of a recovery, whatever the agent took."""
_SLACK: Final = 2.0
"""A recovery may take so many times the ticks that the agent took: it begins elsewhere."""
_NAMED_MOST: Final = 4
"""Primitives in the name of a skill."""
_CRITICS: Final[Mapping[str, CriticTemplate]] = {template.name: template for template in TEMPLATES}
SHIFTED: Final = Parameter(
    "shifted", 0.06, 0.03, 0.13, "m", "A thing this far from its first place has been moved."
)
WITHIN: Final = Parameter(
    "within", 0.12, 0.05, 0.25, "m", "Horizontal distance within which the hand is at the knob."
)


@dataclass(frozen=True, slots=True)
class Success:
    """What an agent did in an episode that succeeded."""

    instruction: str
    arms: tuple[str, ...]
    """Names of the robot's arms; a recovery moves the first."""
    results: tuple[CommandResult, ...]
    """What came of all commands, in order."""


def distilled(success: Success, name: str = "", critic: str = "") -> Draft:
    """Return a draft of a skill that does what the agent did.

    Args:
        success: the episode.
        name: of the skill; by default one that lists its primitives.
        critic: name of the template of the trigger; by default one that fits how the recovery
            begins.

    Raises:
        ConfigError: nothing is left of the commands, one has no counterpart in the recovery
            language, the instruction is not understood, or the critic is unknown or does not fit.
    """
    roles = parse_instruction(success.instruction)
    attempt = successful_attempt(success.results)
    arms = success.arms
    commands = [_command(result, arms) for result in attempt]
    steps = steps_of(commands, roles, arms[0] if len(arms) > 1 else "")
    if not steps:
        raise ConfigError(
            "no command was completed after the last one that failed, so there is nothing to keep"
        )
    program = _Program(steps, _holds(attempt))
    template = _template(critic or program.critic, roles, chosen=bool(critic))
    name = name or program.name
    page = _page(name, program, template, sum(result.ticks for result in attempt))
    files = package_files(
        page, template.text(name), program.text, [*template.parameters, *program.parameters]
    )
    return Draft(
        name, files, f"{template.doc} What an agent did in a success may help: {program.told}."
    )


def successful_attempt(results: Sequence[CommandResult]) -> tuple[CommandResult, ...]:
    """Return the results behind the last failed one.

    A last command that was interrupted counts as completed: success ended the episode within it.
    """
    last = len(results) - 1
    failed = [
        k
        for k, result in enumerate(results)
        if not result.completed and not (k == last and result.stop == "interrupted")
    ]
    return tuple(results[failed[-1] + 1 :] if failed else results)


def _holds(attempt: Sequence[CommandResult]) -> bool:
    """Say whether the evidence says in the end that something is held."""
    evidence = [result.grasp.grip for result in attempt if result.grasp is not None]
    return evidence[-1:] == ["held"]


def _command(result: CommandResult, arms: Sequence[str]) -> Command:
    return parse_command(result.text, arms).command


def _template(name: str, roles: Roles, chosen: bool) -> CriticTemplate:
    if name not in _CRITICS:
        hint = suggest(name, _CRITICS)
        known = hint if hint.startswith("did") else "known: " + ", ".join(sorted(_CRITICS))
        raise ConfigError(f"there is no template of a critic {name!r}; {known}")
    template = _CRITICS[name]
    missing = [role for role in template.roles if role not in roles.phrases]
    if missing and chosen:
        raise ConfigError(
            f"the critic {name!r} watches the {missing[0]}, which {roles.instruction!r} does not "
            "name; choose another one"
        )
    return _CRITICS["stalled"] if missing else template


def _page(name: str, program: _Program, template: CriticTemplate, ticks: int) -> Page:
    most = min(max(10 * math.ceil(_SLACK * ticks / 10.0), TICKS_LEAST), TICKS_MOST)
    roles = tuple(dict.fromkeys((*template.roles, *program.roles)))
    return Page(
        name=name,
        description=f"{template.doc} Then do as in a success: {program.told}.",
        applies=f"{template.doc[0].lower()}{template.doc[1:-1]}",
        roles=roles,
        verbs=program.verbs,
        max_ticks=most,
        text=f"{template.doc} The recovery repeats what an agent did in one episode that "
        f"succeeded, after the last command that failed, in {ticks} ticks. That episode shows how "
        "to go on, once, and not when: the trigger was chosen and not learnt, its numbers are "
        "those of its template, and nothing is known of its worth until it has been measured.",
        author=AUTHOR,
        made_by="episode",
    )


class _Program:
    """A recovery made of steps: how it begins, what it does, how it leaves the hand."""

    def __init__(self, steps: Sequence[Step], holds: bool) -> None:
        """Take the steps, at least one, and whether something is held behind the last."""
        self.steps, self._holds = tuple(steps), holds
        self.roles = tuple(dict.fromkeys(step.role for step in steps if step.role is not None))
        self.verbs = next((VERBS_OF[s.primitive] for s in steps if s.primitive in VERBS_OF), ())
        self.told = ", ".join(step.primitive.replace("_", " ") for step in steps)

    @property
    def name(self) -> str:
        """Return a name that lists its primitives."""
        parts = dict.fromkeys(step.primitive.replace("_", "-") for step in self.steps)
        return "-".join(("repeat", *list(parts)[:_NAMED_MOST]))

    @property
    def critic(self) -> str:
        """Return the template that fits how it begins."""
        if self._begins_holding:
            return "holds-on"
        return "closed-on-nothing" if "object" in self.roles else "stalled"

    @property
    def _grips(self) -> tuple[Step, ...]:
        """Return what the gripper takes part in."""
        return tuple(step for step in self.steps if step.primitive in _LEAVES)

    @property
    def _begins_holding(self) -> bool:
        """Whether something must be in the hand when it starts."""
        return bool(self._grips) and self._grips[0].primitive == "place"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the numbers it reads."""
        return tuple(each for each in (SEEN, SHIFTED, WITHIN) if f"p.{each.name}" in self.text)

    @property
    def text(self) -> str:
        """Return `recovery.py`."""
        body = "".join(map(_statements, self.steps[:-1])) + _statement(self.steps[-1])
        return (
            f'"""Repeat what an agent did in a success: {self.told}."""\n\n\n'
            f"def precondition(w, p):\n    return {self._precondition}\n\n\n"
            f"def recover(robot, w, p):\n{body}\n\n"
            f"def reentry(w, p):\n    return {self._reentry}\n"
        )

    @property
    def _precondition(self) -> str:
        if self._begins_holding:
            terms = [_HELD]
        elif self._grips:
            terms = ["now(w.holding) < 0.5"]
        else:
            terms = ["now(w.policy_drives) > 0.5"]
        if self.roles:
            terms.append(f"now(w.{self.roles[0]}_confidence) >= p.seen")
        return " and ".join(terms)

    @property
    def _reentry(self) -> str:
        """Return what is seen where the last step that matters has come to what it should."""
        if not self._grips:
            return "True"
        last = self._grips[-1].primitive
        return _HELD if last == "close" and self._holds else _LEAVES[last]


_OPEN: Final = "now(w.holding) < 0.5 and now(w.closed_for) < 0.01"
_HELD: Final = "now(w.holding) > 0.5"
_LEAVES: Final[Mapping[str, str]] = {
    "open": _OPEN,
    "close": "now(w.closed_for) > 0.0",
    "descend": _OPEN,
    "grasp": _HELD,
    "place": _OPEN,
    "pull": "now(w.part_moved) > p.shifted",
    "press": "now(w.part_moved) > p.shifted",
    "turn": "now(w.part_offset) < p.within",
    "push": "now(w.object_moved) > p.shifted",
}
"""What holds when a primitive has done what it should; those that leave the gripper alone lack."""


def _statement(step: Step) -> str:
    return f"    yield from {step.call}\n"


def _statements(step: Step) -> str:
    """Return a step with more behind it: what comes after a grasp needs the thing in the hand."""
    if step.primitive != "grasp":
        return _statement(step)
    return f"    taken = yield from {step.call}\n    if not taken:\n        return\n"
