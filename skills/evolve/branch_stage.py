"""Branch replay of a generation: which recovery helps in the failures at hand, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from zetta.primitives.roles import roles_or_none
from zetta.skills.evolve.authors import ProgramTrial
from zetta.skills.evolve.branch_support import Support, supports
from zetta.skills.evolve.branches import FRESH_SAMPLE, UNCHANGED, Change, Continuation
from zetta.skills.evolve.candidates import write_package
from zetta.skills.evolve.gate_run import policy_seed
from zetta.skills.evolve.generation_records import Branched, Cost, Developed, Diagnosed
from zetta.skills.evolve.recovery_programs import PROGRAMS, RecoveryProgram, program_package
from zetta.skills.evolve.worlds import BranchWish, World
from zetta.skills.package import SkillPackage, load_skill

CONTROLS: Final[Mapping[str, Change]] = {"unchanged": UNCHANGED, "fresh sample": FRESH_SAMPLE}
EARLIEST: Final = 0.05
"""A change comes at this share of the step budget at the earliest; before, nothing was seen."""
UNKNOWN: Final = 0.4
"""Where it is not known when a failure diverged, this share of what a success takes is tried."""
SPREAD: Final = (0.25, 0.7, 0.35, 1.0, 0.55)
"""Other moments, as shares of what a success takes: how much does the moment matter?"""
NO_SUCCESS: Final = 0.3
"""What a success takes where there was none, as a share of the step budget."""


def branch_out(
    world: World,
    failures: Sequence[Developed],
    successes: Sequence[Developed],
    found: Diagnosed,
    most: int,
    folder: Path,
    seeds: int = 1,
) -> Branched:
    """Continue failures from two moments each: where they diverged, and at another time.

    Args:
        world: runs continuations.
        failures: of the half that authors see.
        successes: of that half; how long they took says when it is early and when late.
        found: the diagnosis.
        most: continuations.
        folder: gets the recovery programs as skills.
        seeds: continuations of each change, with different policy seeds; more than one says more
            only of a policy that draws.
    """
    packages = write_programs(folder)
    typical = median([each.ticks for each in successes]) if successes else None
    points = _points(
        world, failures, typical, found, most // (seeds * (len(packages) + len(CONTROLS)))
    )
    wishes = list[tuple[str, BranchWish]]()
    for episode, at in points:
        roles = roles_or_none(world.read(episode).header.instruction)
        fitting = [name for name, package in packages.items() if package.fits(roles)]
        changes = {**CONTROLS, **{name: Change("recovery", name) for name in fitting}}
        wishes += [
            (
                name,
                BranchWish(episode, at, change, _seed(episode, at, draw)),
            )
            for name, change in changes.items()
            for draw in range(seeds)
        ]
    runs = world.branch([wish for _, wish in wishes], folder)
    trials = tuple(
        ProgramTrial(
            name, wish.episode.name, wish.at, _most(world, wish.episode),
            tuple(runs[k : k + seeds]),
        )
        for k, (name, wish) in enumerate(wishes)
        if k % seeds == 0
    )  # fmt: skip
    support = {name: _support(name, trials) for name in packages if _runs(name, trials)}
    good = tuple(name for name, said in support.items() if said.finding == "supported")
    return Branched(trials, support, good, Cost())


def _seed(episode: Developed, at: int, draw: int) -> int:
    name = f"branch/{episode.trial.scene}/{at}"
    return policy_seed(f"{name}/{draw}" if draw else name)


def write_programs(folder: Path) -> dict[str, SkillPackage]:
    """Write every recovery program as a skill that never fires, and return them by name."""
    for program in PROGRAMS.values():
        if not (folder / program.name).exists():
            _write(folder / program.name, program)
    return {name: load_skill(folder / name) for name in PROGRAMS}


def _write(path: Path, program: RecoveryProgram) -> None:
    files = program_package(program, program.name)
    write_package(path, {name: text.encode() for name, text in files.items()}, None)


def _points(
    world: World,
    failures: Sequence[Developed],
    typical: float | None,
    found: Diagnosed,
    most: int,
) -> list[tuple[Developed, int]]:
    known = {} if found.diagnosis is None else {f.episode: f for f in found.diagnosis.failures}
    chosen = failures[: max(1, most // 2)]
    points = []
    for place, episode in enumerate(chosen):
        budget, last = _most(world, episode), episode.ticks - 2
        failure = known.get(episode.name)
        diverged = None if failure is None else failure.divergence
        taken = NO_SUCCESS * budget if typical is None else typical
        first = round(UNKNOWN * taken) if diverged is None else diverged
        other = round(SPREAD[place % len(SPREAD)] * taken)
        earliest = round(EARLIEST * budget)
        own = {min(last, max(earliest, tick)) for tick in (first, other)}
        points += [(episode, tick) for tick in sorted(own)]
    return points[:most]


def _support(program: str, trials: Sequence[ProgramTrial]) -> Support:
    points = {(t.episode, t.at) for t in trials if t.program == program}
    wanted = (program, *CONTROLS)
    runs = [
        r for t in trials if t.program in wanted and (t.episode, t.at) in points for r in t.runs
    ]
    return supports(runs)


def _runs(program: str, trials: Sequence[ProgramTrial]) -> list[Continuation]:
    return [run for trial in trials if trial.program == program for run in trial.runs]


def _most(world: World, episode: Developed) -> int:
    return world.read(episode).header.scene.task.max_steps
