"""What a drive needs of one episode: grammar, dry run, motions, pictures and evidence, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from zetta.primitives.agent.cockpit import Refusal, View
from zetta.primitives.agent.observation import Progress, compose
from zetta.primitives.agent.verifier import Verification, Verifier
from zetta.primitives.agent.wording import said
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_grammar import parse_command
from zetta.primitives.command_motions import Executor
from zetta.primitives.command_results import CommandResult
from zetta.primitives.commands import GoAbove, Home, Move, Parsed, Point, Rotate, Wait
from zetta.primitives.localize.table import Table, declared_table, seen_table
from zetta.primitives.motions import Arm, Steps
from zetta.primitives.overlays import Overlays
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Array, Env, Estimate, Proprio

FREE: Final = (Rotate, Point, Home, GoAbove, Wait)
"""Motions through free space, whose end is known before they begin."""

DryRun = Callable[[Sequence[Parsed], Proprio], Refusal | None]


class EpisodeCockpit:
    """The cockpit of one episode."""

    def __init__(
        self,
        env: Env,
        sight: Sight,
        equipment: Equipment,
        dry_run: DryRun,
        overlays: Overlays,
        ticks_limit: int,
    ) -> None:
        """Join the parts.

        Args:
            env: the world.
            sight: finds things.
            equipment: what commands are carried out with.
            dry_run: checks the commands of a turn together.
            overlays: what is drawn into the pictures.
            ticks_limit: told to agents; 0 for no limit.
        """
        self._env, self._sight, self._equipment = env, sight, equipment
        self._dry_run, self._overlays, self._ticks_limit = dry_run, overlays, ticks_limit
        self._executor = Executor(equipment)
        self._locators = [sight.locator(errand) for errand in equipment.errands]
        self._verifier = Verifier(
            equipment.errands, lambda k: self._locators[k](), equipment.hand.opening
        )
        self._table: Table | None = None
        self._home: Mapping[str, Array] = {}
        self._held: tuple[Arm, Array, Array] | None = None
        """The arm that holds while an agent thinks, and where: holding the present pose drifts."""

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms."""
        return self._equipment.arms

    def begin(self, proprio: Proprio) -> None:
        """Note where the arms and the things are before anything moves."""
        self._executor.begin(proprio)
        self._verifier.begin()
        self._home = {n: a.ee_pos for n, a in zip(self.arms, proprio.arms, strict=True)}

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
        return self._dry_run(commands, proprio)

    def predictable(self, command: Parsed) -> bool:
        """Say whether the end of a command is known before it begins."""
        free = isinstance(command.command, FREE)
        return free or (isinstance(command.command, Move) and not command.command.until_contact)

    def run(self, command: Parsed) -> Steps[CommandResult]:
        """Carry out one command."""
        self._held = None
        return self._executor.run(command)

    def hold(self) -> Steps[None]:
        """Stay where the arms were when the agent began to think, for one tick."""
        if self._held is None:
            arm = self._executor.arm(0)
            yield from arm.start()
            self._held = (arm, arm.position, arm.rotation)
        arm, position, rotation = self._held
        yield from arm.start()
        yield from arm.toward(position, rotation)

    def view(self, pictures: bool, proprio: Proprio) -> View:
        """Return what an agent is shown; without pictures nothing is rendered."""
        cameras = [camera.name for camera in self._env.spec.cameras] if pictures else []
        observation = self._env.observe(cameras, depth=pictures)
        if pictures and self._table is None:
            self._table = seen_table(self._sight.heights(observation))
        table = self._table or declared_table(0.0, proprio.arms[0].ee_pos)
        shown, text = compose(
            observation,
            self.arms,
            table,
            self._things() if pictures else {},
            self._overlays,
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
            found |= {said(p): seen[role] for role, p in errand.phrases.items() if role in seen}
        return found

    def _progress(self, proprio: Proprio) -> Progress:
        grasps = dict(zip(self.arms, self._executor.grasps, strict=False))
        ticks = round(proprio.t * self._env.spec.control_hz)
        return Progress(grasps, self._home, ticks, self._ticks_limit)
