"""How true the dry run is: random commands, checked first and then carried out all the same."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_grammar import command_text
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import TURNS, Command, Frame, Move, Parsed, Rotate
from zetta.primitives.dry_run import DryWorld, check_turn
from zetta.primitives.grasps import hand_of
from zetta.primitives.motions import Steps
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess
from zetta.runtime.cli.dry_arms import dry_arms
from zetta.runtime.core import Env, Init, Look, Scene, Sense, Simulator, Step
from zetta.runtime.drivers import ActionCheck
from zetta.runtime.errors import ConfigError
from zetta.runtime.workspace import BoundedEnv

IN_A_ROW: Final = 6
"""Commands between two resets: each begins where the one before has ended."""
FURTHEST_M: Final = 0.20
"""Along each axis of a move."""
TURN_STEP_DEG, TURN_STEPS_MOST = 15, 6
MOVES: Final = 0.65
"""Share of moves among the commands; the rest are turns."""
CLOSE_M: Final = 0.02
CLOSE_RAD: Final = math.radians(10.0)
COUNTED: Final = ("accepted", "unreachable", "limit")

Verdict: TypeAlias = str
"""`accepted`, or why the dry run refuses."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One command, and what came of it."""

    command: str
    verdict: Verdict
    stop: str
    """Why it stopped when it was carried out."""
    error: float | None
    """Distance from where the hand should be, metres; None where it was refused."""
    turn_error: float | None
    """Angle left, radians."""

    @property
    def arrived(self) -> bool:
        """Whether the hand came to where it was told to."""
        if self.error is None or self.turn_error is None:
            return False
        return self.error < CLOSE_M and self.turn_error < CLOSE_RAD


def dry_run_figures(sim: str, suite: str, tasks: Sequence[int], scenes: int) -> list[Figure]:
    """Try random commands in the first `scenes` layouts of each task, each task in a process."""
    attempts: list[Attempt] = []
    for task in tasks:
        with ArmProcess(ArmPlace(sim, suite, task, "fast")) as process:
            attempts += [Attempt(**each) for each in process.ask("dry run", scenes=scenes)]
    return list(figures_of(suite, attempts))


def figures_of(suite: str, attempts: Sequence[Attempt]) -> Iterator[Figure]:
    """Yield how many commands got each verdict, and the share of them that arrived."""
    for verdict in COUNTED:
        yield from _figures_about(
            f"{suite}_{verdict}", [a for a in attempts if a.verdict == verdict]
        )
    free = [a for a in attempts if a.verdict == "accepted" and a.stop != "contact"]
    yield from _figures_about(f"{suite}_accepted_met_nothing", free)


def _figures_about(name: str, attempts: Sequence[Attempt]) -> Iterator[Figure]:
    yield Figure(name, float(len(attempts)), "commands")
    if attempts:
        share = sum(a.arrived for a in attempts) / len(attempts)
        yield Figure(f"{name}_arrived", share, "")


# --------------------------------------------------------------------------- in the child


def try_commands(
    simulator: Simulator, env: Env, place: ArmPlace, request: Mapping[str, Any]
) -> list[dict[str, object]]:
    """Check and carry out commands and return what `Attempt` holds, as plain values.

    Raises:
        ConfigError: the environment has several arms, or tells neither reach nor workspace.
    """
    if len(env.spec.arms) != 1 or not isinstance(env, BoundedEnv):
        raise ConfigError(
            f"got {env.spec.name} with the arms {', '.join(env.spec.arms)}; the dry run is "
            "measured with one arm whose workspace the environment tells"
        )
    task = simulator.task(place.suite, place.task)
    found: list[Attempt] = []
    for index in range(request["scenes"]):
        step = env.reset(Scene(task, Init(index)))
        rng = np.random.default_rng([zlib.crc32(place.suite.encode()), place.task, index])
        found += _Trial(env, step).attempts(rng)
    return [asdict(attempt) for attempt in found]


class _Trial:
    """Commands in a row, in a scene that was just reset."""

    def __init__(self, env: Env, step: Step) -> None:
        assert isinstance(env, BoundedEnv)
        self._env, self._step = env, step
        spec = env.spec
        self._check = ActionCheck(spec.action, "the commands of the benchmark")
        self._world = DryWorld(dry_arms(env, step.proprio), text=command_text)
        hand, box = hand_of(spec), env.workspace(0)
        self._executor = Executor(
            Equipment(
                spec.action, spec.arms, spec.control_hz, _blind, hand, workspace=box,
                say=command_text,
            )
        )  # fmt: skip
        self._executor.begin(step.proprio)

    def attempts(self, rng: np.random.Generator) -> Iterator[Attempt]:
        """Yield what came of each command."""
        for _ in range(IN_A_ROW):
            command = random_command(rng)
            failure = check_turn([Parsed(command)], self._step.proprio, self._world).failure
            verdict = "accepted" if failure is None else failure.stop
            result = self._carried_out(self._executor.run(Parsed(command)))
            yield Attempt(
                command_text(command), verdict, result.stop, result.error, result.turn_error
            )

    def _carried_out(self, steps: Steps[CommandResult]) -> CommandResult:
        wanted = next(steps)
        while True:
            if not isinstance(wanted, Look):
                self._step = self._env.step(self._check(wanted))
            try:
                wanted = steps.send(Sense(self._step.proprio, {}))
            except StopIteration as over:
                result: CommandResult = over.value
                return result


def random_command(rng: np.random.Generator) -> Command:
    """Return a move or a turn from anywhere in what commands allow."""
    frame: Frame = "gripper" if rng.random() < 0.25 else "world"
    if rng.random() < MOVES:
        way = np.round(rng.uniform(-FURTHEST_M, FURTHEST_M, 3), 3)
        if rng.random() < 0.4:
            way *= np.arange(3) == rng.integers(3)
        x, y, z = (float(metres) for metres in way)
        return Move((x, y, z), frame)
    steps = int(rng.integers(1, TURN_STEPS_MOST + 1)) * int(rng.choice((-1, 1)))
    return Rotate(TURNS[rng.integers(3)], math.radians(TURN_STEP_DEG * steps), frame)


def _blind(*_: object) -> NoReturn:
    raise ConfigError("these commands name no thing")
