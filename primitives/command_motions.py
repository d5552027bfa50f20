"""Commands carried out: each is a bounded motion, and ends with an honest result.

What moves the robot are the primitives of recovery programs; here they are bound to what a command
says, watched, kept inside the workspace and told as a result.
"""

from __future__ import annotations

from dataclasses import replace

from zetta.primitives.command_endings import Ending, refused
from zetta.primitives.command_equipment import Equipment, Memory
from zetta.primitives.command_limits import Boundary
from zetta.primitives.command_results import CommandResult, GraspEvidence
from zetta.primitives.command_steps import arm_steps, armless_steps
from zetta.primitives.command_strands import single, together
from zetta.primitives.commands import (
    ArmCommand,
    Both,
    Command,
    Gripper,
    Parsed,
    RunPolicy,
    RunSkill,
)
from zetta.primitives.motions import Arm, Steps
from zetta.primitives.motions_frames import angle_between, matrix_of
from zetta.runtime.core import ArmState, Array, Look, Proprio, Sense
from zetta.runtime.errors import ConfigError


class Executor:
    """Carries out commands in one environment, for one episode.

    Frames are those of `command_frames`. A command begins at the live pose, so one that failed
    does not spoil the next.
    """

    def __init__(self, equipment: Equipment) -> None:
        """Take what commands are carried out with.

        Raises:
            SpecMismatch: the actions are no poses in the world frame, or not of so many arms.
        """
        for index in range(len(equipment.arms)):
            Arm(equipment.action, index, equipment.control_hz, equipment.hand)
        self._equipment = equipment
        self._memory = Memory(equipment)
        self._boundary = Boundary(equipment.workspace, equipment.action, equipment.control_hz)
        self._held: tuple[Arm, Array, Array] | None = None
        """The arm that holds, and where."""

    def begin(self, proprio: Proprio) -> None:
        """Begin an episode: where the arms are now is home. Else the first command does that."""
        self._memory.begin(proprio)

    def others_drove(self) -> None:
        """Hear that a motion or a policy outside of commands has moved the robot.

        How the grippers are commanded is then taken from how they stand, as it was at the start.
        """
        self._memory.forget_grippers()

    @property
    def grasps(self) -> tuple[GraspEvidence, ...]:
        """What each arm holds, by all that is known; none before the episode has begun."""
        return tuple(limb.watch.evidence for limb in self._memory.limbs)

    def run(self, parsed: Parsed, most_ticks: int = 0) -> Steps[CommandResult]:
        """Carry out a command.

        Args:
            parsed: the command, and what was noticed while it was read.
            most_ticks: the command is interrupted after so many; 0 for its own bounds alone.

        Returns:
            What it came to. What cannot be done is refused in the result, not raised.
        """
        self._held = None
        sense = yield Look(())
        if not self._memory.limbs:
            self._memory.begin(sense.proprio)
        self._notice(sense)
        self._boundary.held_back.clear()
        result, ticks = yield from self._watched(self._steps(parsed.command, sense), most_ticks)
        if result is None:
            detail = f"it was interrupted after {ticks} ticks"
            text = self._equipment.say(parsed.command)
            result = CommandResult(text, False, "timeout", detail)
        return replace(result, ticks=ticks, notices=(*parsed.notices, *result.notices))

    def hold(self) -> Steps[None]:
        """Stay where the arms are for one tick, with the grippers as they are commanded.

        Held again, they stay where they were at first: holding the present pose drifts.
        """
        if self._held is None:
            arm = yield from self._memory.started(0)
            self._held = (arm, arm.position, arm.rotation)
        arm, position, rotation = self._held
        yield from arm.toward(position, rotation)
        self._memory.notice(arm.sense.proprio)

    def _watched(
        self, steps: Steps[CommandResult], most: int
    ) -> Steps[tuple[CommandResult | None, int]]:
        """Pass everything on; keep actions inside the workspace and notice what is felt."""
        memory, ticks = self._memory, 0
        try:
            wish = next(steps)
            while True:
                if not isinstance(wish, Look):
                    if most and ticks >= most:
                        return None, ticks
                    wish = self._boundary.bounded(wish)
                    memory.note_action(wish)
                    ticks += 1
                sense = yield wish
                self._notice(sense)
                wish = steps.send(sense)
        except StopIteration as stop:
            return stop.value, ticks
        finally:
            steps.close()

    def _notice(self, sense: Sense) -> None:
        self._memory.notice(sense.proprio)
        self._memory.heights = sense.heights or self._memory.heights
        self._boundary.feel(sense.proprio)

    # ------------------------------------------------------------------ one, or two at once

    def _steps(self, command: Command, sense: Sense) -> Steps[CommandResult]:
        if isinstance(command, Both):
            return self._both(command, sense)
        if isinstance(command, ArmCommand):
            return single(self._arm(command), sense)
        return single(self._armless(command), sense)

    def _armless(self, command: Command) -> Steps[CommandResult]:
        start = self._memory.now.arms[0]
        try:
            ending = yield from armless_steps(self._equipment, self._memory, command)
        except ConfigError as error:
            ending = refused(str(error))
        text = self._equipment.say(command)
        drove = isinstance(command, RunPolicy | RunSkill) and ending.stop != "refused"
        if drove and len(self._equipment.arms) == 1:
            return self._told(text, command, 0, start, ending)
        return CommandResult(text, ending.completed, ending.stop, ending.detail)

    def _arm(self, command: ArmCommand) -> Steps[CommandResult]:
        text = self._equipment.say(command)
        try:
            index = self._equipment.arm_number(command.arm)
        except ConfigError as error:
            return CommandResult(text, False, "refused", str(error))
        start = self._memory.now.arms[index]
        try:
            ending = yield from arm_steps(self._equipment, self._memory, command, index)
        except ConfigError as error:
            ending = refused(str(error))
        return self._told(text, command, index, start, ending)

    def _told(
        self, text: str, command: Command, index: int, start: ArmState, ending: Ending
    ) -> CommandResult:
        """Return as a result how a command ended that moved an arm."""
        now, watch = self._memory.now.arms[index], self._memory.limbs[index].watch
        stop, detail = ending.stop, ending.detail
        if stop == "contact" and not ending.completed and index in self._boundary.held_back:
            stop, detail = "limit", f"{detail}; the workspace ends there"
        gripped = watch.closing or isinstance(command, Gripper)
        return CommandResult(
            text,
            ending.completed,
            stop,
            detail,
            moved=_triple(now.ee_pos - start.ee_pos),
            turned=angle_between(matrix_of(start.ee_quat), matrix_of(now.ee_quat)),
            asked=None if ending.asked is None else _triple(ending.asked),
            error=ending.error,
            turn_error=ending.turn_error,
            grasp=watch.evidence if gripped else None,
            notices=ending.notices,
        )

    def _both(self, command: Both, sense: Sense) -> Steps[CommandResult]:
        """Carry out two arms' commands at once; the detail of the result names both."""
        text = self._equipment.say(command)
        parts = (command.first, command.second)
        try:
            numbers = [self._equipment.arm_number(part.arm) for part in parts]
        except ConfigError as error:
            return CommandResult(text, False, "refused", str(error))
        if numbers[0] == numbers[1]:
            detail = "both commands are for one arm; give each its own"
            return CommandResult(text, False, "refused", detail)
        steps = [(n, self._arm(part)) for n, part in zip(numbers, parts, strict=True)]
        results = yield from together(steps, sense, self._memory.arm, self._memory.bind)
        return self._joined(text, numbers, results)

    def _joined(self, text: str, numbers: list[int], results: list[CommandResult]) -> CommandResult:
        said, notices = [], []
        for number, result in zip(numbers, results, strict=True):
            name = self._equipment.arms[number]
            grip = "" if result.grasp is None else f", gripper {result.grasp.text}"
            mark = "ok" if result.completed else f"FAILED ({result.stop})"
            said.append(f"{name} {mark}: {result.detail}{grip}")
            notices += [f"{name}: {notice}" for notice in result.notices]
        failed = [result.stop for result in results if not result.completed]
        stop = failed[0] if failed else results[0].stop
        return CommandResult(text, not failed, stop, "; ".join(said), notices=tuple(notices))


def _triple(vector: Array) -> tuple[float, float, float]:
    x, y, z = (float(n) for n in vector)
    return x, y, z
