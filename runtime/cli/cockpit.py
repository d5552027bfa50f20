"""What a drive needs of one episode: grammar, dry run, motions, pictures and evidence, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from zetta.primitives.agent.cockpit import Refusal, View
from zetta.primitives.agent.observation import Progress, compose
from zetta.primitives.agent.verifier import Verification, Verifier
from zetta.primitives.agent.wording import names_of
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_errands import thing_phrase
from zetta.primitives.command_grammar import parse_command
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import (
    Both,
    Command,
    GoAbove,
    Home,
    Move,
    Parsed,
    Point,
    Rotate,
    Wait,
)
from zetta.primitives.dry_run import DryWorld, check_turn
from zetta.primitives.dry_run_reach import DryArm
from zetta.primitives.localize.table import Table, declared_table, table_in
from zetta.primitives.motions import Steps
from zetta.primitives.overlays import Overlays
from zetta.primitives.roles import Errand
from zetta.runtime.cli.dry_arms import dry_arms
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Env, Estimate, Proprio

FREE: Final = (Rotate, Point, Home, GoAbove, Wait)
"""Motions through free space, whose end is known before they begin."""


class EpisodeCockpit:
    """The cockpit of one episode."""

    def __init__(
        self,
        env: Env,
        sight: Sight,
        equipment: Equipment,
        overlays: Overlays,
        ticks_limit: int,
    ) -> None:
        """Join the parts.

        Args:
            env: the world.
            sight: finds things.
            equipment: what commands are carried out with.
            overlays: what is drawn into the pictures.
            ticks_limit: told to agents; 0 for no limit.
        """
        self._env, self._sight, self._equipment = env, sight, equipment
        self._overlays, self._ticks_limit = overlays, ticks_limit
        self._executor = Executor(equipment)
        self._locators = [sight.locator(errand) for errand in equipment.errands]
        self._verifier = Verifier(
            equipment.errands, lambda k: self._locators[k](), equipment.hand.opening
        )
        self._table: Table | None = None
        self._start: Proprio | None = None
        self._dry_arms: tuple[DryArm, ...] = ()
        self._last: dict[str, Estimate] = {}
        """Where things were when they were last seen, by name: hands and loads hide them."""
        self._names = {
            name: (k, role)
            for k, errand in enumerate(equipment.errands)
            for role, name in names_of(errand).items()
        }

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        return self._equipment.arms

    def begin(self, proprio: Proprio) -> None:
        """Note where the arms and the things are before anything moves."""
        self._executor.begin(proprio)
        seen = self._verifier.begin()
        self._last = {
            name: seen[number].estimates[role]
            for name, (number, role) in self._names.items()
            if role in seen[number].estimates
        }
        self._start = proprio
        self._table = table_in(self._sight.observed())
        self._dry_arms = dry_arms(self._env, proprio)

    def read(self, line: str) -> Parsed:
        """Understand a line of text.

        Raises:
            ConfigError: it is no command.
        """
        return parse_command(line, self.arms)

    def text(self, command: Parsed) -> str:
        """Return a command as text."""
        return self._equipment.say(command.command)

    def check(self, commands: Sequence[Parsed], proprio: Proprio) -> Refusal | None:
        """Check the commands of a turn together, before anything moves."""
        failure = check_turn(commands, proprio, self._dry_world(commands)).failure
        return None if failure is None else Refusal(failure.index, failure.sentence)

    def _dry_world(self, commands: Sequence[Parsed]) -> DryWorld:
        """Return what commands are checked against; nothing is rendered that none speaks of."""
        equipment, start = self._equipment, self._start
        assert start is not None  # begin came first
        cameras = self._env.spec.cameras
        spoken_of = any(_speaks_of_camera(parsed.command) for parsed in commands)
        return DryWorld(
            arms=self._dry_arms,
            text=equipment.say,
            cameras=self._env.observe([c.name for c in cameras]).cameras if spoken_of else {},
            wrist_cameras=[c.name for c in cameras if c.mount == "wrist"],
            where=self._where(),
            base=start.base is not None,
            policy=equipment.policy is not None,
            skills=equipment.skill_names,
        )

    def _where(self) -> Callable[[str], Estimate | None]:
        """Return what tells where a thing is, or was when last seen; each is looked for once."""

        @cache
        def where(name: str) -> Estimate | None:
            seen = self._look_for(name)
            if seen is not None:
                self._last[name] = seen
            return self._last.get(name)

        return where

    def _look_for(self, name: str) -> Estimate | None:
        if name in self._names:
            number, role = self._names[name]
            return self._locators[number]().estimates.get(role)
        errand = Errand("pick", object=thing_phrase(name))
        return self._sight.locator(errand)().estimates.get("object")

    def predictable(self, command: Parsed) -> bool:
        """Say whether the end of a command is known before it begins."""
        free = isinstance(command.command, FREE)
        return free or (isinstance(command.command, Move) and not command.command.until_contact)

    def run(self, command: Parsed) -> Steps[CommandResult]:
        """Carry out one command."""
        return self._executor.run(command)

    def hold(self) -> Steps[None]:
        """Stay where the arms are for one tick."""
        return self._executor.hold()

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the cameras."""
        return tuple(camera.name for camera in self._env.spec.cameras)

    def view(self, pictures: bool, proprio: Proprio) -> View:
        """Return what an agent is shown; without pictures nothing is rendered."""
        return self.look(self.cameras if pictures else (), None, proprio)

    def look(self, cameras: Sequence[str], overlays: Overlays | None, proprio: Proprio) -> View:
        """Return what these cameras see; None draws what the drive was told to draw."""
        pictures = bool(cameras)
        observation = self._env.observe(cameras, depth=pictures)
        table = self._table or declared_table(0.0, proprio.arms[0].ee_pos)
        shown, text = compose(
            observation,
            self.arms,
            table,
            self._things() if pictures else self._last,
            overlays or self._overlays,
            self._progress(proprio),
        )
        return View(text, shown)

    def verify(self) -> Verification:
        """Look whether the instruction was carried out."""
        return self._verifier.verify(self._env.observe().proprio)

    def _things(self) -> Mapping[str, Estimate]:
        """Return what the instruction names and the cameras see, by the name to be read."""
        found: dict[str, Estimate] = {}
        for errand, locate in zip(self._equipment.errands, self._locators, strict=True):
            seen = locate().estimates
            found |= {name: seen[r] for r, name in names_of(errand).items() if r in seen}
        return found

    def _progress(self, proprio: Proprio) -> Progress:
        grasps = dict(zip(self.arms, self._executor.grasps, strict=False))
        ticks = round(proprio.t * self._env.spec.control_hz)
        start = () if self._start is None else self._start.arms
        home = {name: arm.ee_pos for name, arm in zip(self.arms, start, strict=False)}
        return Progress(grasps, home, ticks, self._ticks_limit)


def _speaks_of_camera(command: Command) -> bool:
    if isinstance(command, Both):
        return _speaks_of_camera(command.first) or _speaks_of_camera(command.second)
    return isinstance(command, Move | Rotate) and command.frame == "camera"
