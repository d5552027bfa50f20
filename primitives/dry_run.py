"""The dry run: a turn's commands are checked together before anything moves.

The hand is followed in thought from command to command. Checked are the limits of each command,
the workspace, joint angles for points along each way and how far the arm is stretched. The first
command that fails comes back with the nearest one that would not; those before it are fine. Nothing
is known here of obstacles, of other arms, or of what a thing does when it is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from zetta.primitives.command_frames import (
    AHEAD,
    camera_of,
    pointing,
    turned_by,
    world_displacement,
)
from zetta.primitives.command_results import StopReason
from zetta.primitives.commands import (
    ArmCommand,
    BaseMove,
    BaseTurn,
    Both,
    Command,
    Done,
    Gripper,
    Home,
    Move,
    Parsed,
    Point,
    Rotate,
    RunPolicy,
    RunSkill,
    Wait,
)
from zetta.primitives.dry_run_limits import beyond_limits
from zetta.primitives.dry_run_nearest import nearest
from zetta.primitives.dry_run_reach import Blocked, DryArm, Pose, present, straight
from zetta.primitives.dry_run_things import Finder, ThingCommand, after_thing, moves_things
from zetta.runtime.core import Array, Camera, Proprio
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest

SHORTEST_PROBE = 0.01
"""A move until contact needs this much room, metres: where else it ends is not known before."""


@dataclass(frozen=True, slots=True)
class DryWorld:
    """What a turn is checked against."""

    arms: tuple[DryArm, ...]
    """In the order of `Proprio.arms`."""
    text: Callable[[Command], str]
    """Prints a command."""
    cameras: Mapping[str, Camera] = field(default_factory=dict)
    """Calibrations as the turn begins, in the order of the environment's cameras."""
    wrist_cameras: Collection[str] = ()
    """Those that move with a hand."""
    where: Finder | None = None
    """Where a thing is, by its phrase; None when nobody looked."""
    base: bool = False
    """Whether there is a mobile base."""
    policy: bool = False
    """Whether there is a policy that may be given the robot."""
    skills: Collection[str] = ()
    ahead: Array = field(default_factory=AHEAD.copy)
    """Horizontal unit vector straight ahead of the robot. Shape (3,)."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected after one command."""

    text: str
    poses: tuple[Pose | None, ...]
    """Of each arm; None where it cannot be known before."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first command that would fail."""

    index: int
    """Position in the turn, from 0."""
    text: str
    stop: StopReason
    sentence: str
    """What is wrong and what would be possible."""
    alternative: Command | None = None
    """The nearest command that passes; None where there is none."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """What checking a turn came to."""

    predictions: tuple[Prediction, ...]
    """One for each command that is fine, up to the first failure; these may be carried out."""
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    """What was not checked, and why."""

    @property
    def passed(self) -> bool:
        """Whether the whole turn may be carried out."""
        return self.failure is None


def check_turn(commands: Sequence[Parsed], start: Proprio, world: DryWorld) -> DryRun:
    """Check the commands of a turn, in order, before anything moves.

    Args:
        commands: what was asked.
        start: what the robot feels now.
        world: what it is checked against.

    Raises:
        SpecMismatch: the robot feels another number of arms.
    """
    if len(start.arms) != len(world.arms):
        raise SpecMismatch(
            f"got {len(start.arms)} arms felt and {len(world.arms)} to check; give each its DryArm"
        )
    turn = _Turn(world, start)
    predictions: list[Prediction] = []
    for index, parsed in enumerate(commands):
        before = turn.poses.copy()
        blocked = turn.check(parsed.command)
        text = world.text(parsed.command)
        if blocked is not None:
            turn.poses = before
            failure = _failure(turn, index, parsed.command, text, blocked)
            return DryRun(tuple(predictions), failure, tuple(turn.notes))
        predictions.append(Prediction(text, tuple(turn.poses)))
    return DryRun(tuple(predictions), None, tuple(turn.notes))


def _failure(turn: _Turn, index: int, command: Command, text: str, blocked: Blocked) -> Failure:
    notes, poses = list(turn.notes), turn.poses.copy()

    def passes(other: Command) -> bool:
        turn.poses = poses.copy()
        return turn.check(other) is None

    alternative = nearest(command, turn.farthest, passes) if blocked.stop != "refused" else None
    turn.notes, turn.poses = notes, poses
    sentence = f"`{text}` {blocked.why}"
    if isinstance(alternative, Move | Rotate | Both):
        sentence += f"; the arm reaches at most `{turn.world.text(alternative)}`"
    elif alternative is not None:
        sentence += f"; `{turn.world.text(alternative)}` can be done"
    elif isinstance(command, Move | Rotate | Point | Both) and blocked.stop != "refused":
        sentence += "; from there the arm cannot go that way at all"
    return Failure(index, text, blocked.stop, sentence, alternative)


class _Turn:
    """A turn as it is followed in thought.

    Attributes:
        world: what it is checked against.
        poses: where the hands are expected now, by arm.
        notes: what was not checked.
        farthest: share of the last way refused at which it was refused.
    """

    def __init__(self, world: DryWorld, start: Proprio) -> None:
        self.world = world
        found = [present(a, s) for a, s in zip(world.arms, start.arms, strict=True)]
        self._start, self.poses = found, list[Pose | None](found)
        self.notes = list[str]()
        self.farthest = 1.0
        self._disturbed = False
        """Whether an earlier command may have moved things: who is not seen may yet appear."""
        for arm, pose in zip(world.arms, found, strict=True):
            if pose.joints is None:
                boxed = "limits and workspace" if arm.workspace is not None else "limits"
                self._note(f"{arm.name}: {boxed} only were checked, no model of its joints fits")

    def check(self, command: Command) -> Blocked | None:
        """Follow one command; return why it is refused, or None."""
        beyond = beyond_limits(command)
        if beyond is not None:
            return beyond
        match command:
            case Both(first, second):
                return self._both(first, second)
            case RunPolicy():
                if not self.world.policy:
                    return Blocked("refused", "needs a policy, and none is loaded")
                self._lose("the policy", disturbed=True)
            case RunSkill(name):
                if name not in self.world.skills:
                    said = suggest(name, self.world.skills) if self.world.skills else "none is"
                    return Blocked("refused", f"names a skill that is not loaded; {said}")
                self._lose(f"the skill {name}", disturbed=True)
            case BaseMove() | BaseTurn():
                if not self.world.base:
                    return Blocked("refused", "needs a mobile base, and this robot has none")
                self._lose("the way of the base", disturbed=False)
            case Wait() | Done():
                pass
            case _:
                return self._of_arm(command)
        return None

    def _both(self, first: ArmCommand, second: ArmCommand) -> Blocked | None:
        indices = [self._index(c.arm) for c in (first, second)]
        for index in indices:
            if isinstance(index, Blocked):
                return index
        if indices[0] == indices[1]:
            return Blocked("refused", "asks two things of one arm at once; name both arms")
        return self._of_arm(first) or self._of_arm(second)

    def _index(self, name: str) -> int | Blocked:
        names = [arm.name for arm in self.world.arms]
        if name in names:
            return names.index(name)
        if not name and len(names) == 1:
            return 0
        if not name:
            return Blocked("refused", f"does not say which arm; name one of {', '.join(names)}")
        return Blocked("refused", f"names an arm that is not there; {suggest(name, names)}")

    def _of_arm(self, command: ArmCommand) -> Blocked | None:
        index = self._index(command.arm)
        if isinstance(index, Blocked):
            return index
        match command:
            case Gripper():
                return None
            case Move() | Rotate() | Point():
                return self._shift(index, command)
            case Home():
                arm = self.world.arms[index]
                self.poses[index] = present(arm, arm.home)
                return None
            case _:
                return self._thing(index, command)

    def _shift(self, index: int, command: Move | Rotate | Point) -> Blocked | None:
        """Follow a move or a turn whose end is known when its beginning is."""
        try:
            camera = None if isinstance(command, Point) else self._camera(command)
        except ConfigError as error:
            return Blocked("refused", f"is not understood: {error}")
        start, arm = self.poses[index], self.world.arms[index]
        if start is None:
            return None
        if camera is None and not isinstance(command, Point) and command.frame == "camera":
            self._forget(index, "where the camera will be")
            return None
        position, rotation = start.position, start.rotation
        match command:
            case Move():
                position = position + world_displacement(command, rotation, camera)
            case Rotate():
                rotation = turned_by(command, rotation, camera)
            case Point(direction):
                rotation = pointing(direction, rotation, self.world.ahead)
        probing = isinstance(command, Move) and command.until_contact
        if probing:
            position = start.position + _shortened(position - start.position)
        way = straight(arm, start, position, rotation)
        if way.blocked is not None:
            self.farthest = way.refused_at
            return way.blocked
        self.poses[index] = way.end
        if probing:
            self._forget(index, "where contact will be")
        return None

    def _thing(self, index: int, command: ThingCommand) -> Blocked | None:
        after = after_thing(command, self.world.arms[index], self.poses[index], self.world.where)
        if isinstance(after, Blocked):
            if after.stop != "not found" or not self._disturbed:
                return after
            after = None
        self._disturbed = self._disturbed or moves_things(command)
        if after is None:
            self._forget(index, f"where `{self.world.text(command)}` will end")
        else:
            self.poses[index] = after
        return None

    def _camera(self, command: Move | Rotate) -> Camera | None:
        """Return the camera of a command's frame where it will be by then; None if nobody knows.

        Raises:
            ConfigError: there is no such camera.
        """
        camera = camera_of(command, self.world.cameras)
        if camera is None or camera.name not in self.world.wrist_cameras:
            return camera
        near = [np.linalg.norm(camera.T_world_cam[:3, 3] - h.position) for h in self._start]
        hand = int(np.argmin(near))
        now = self.poses[hand]
        if now is None:
            return None
        moved = _matrix(now) @ np.linalg.inv(_matrix(self._start[hand]))
        return replace(camera, T_world_cam=moved @ camera.T_world_cam)

    def _lose(self, what: str, disturbed: bool) -> None:
        for index in range(len(self.poses)):
            self._forget(index, f"where {what} ends")
        self._disturbed = self._disturbed or disturbed

    def _forget(self, index: int, why: str) -> None:
        name = self.world.arms[index].name
        self.poses[index] = None
        self._note(f"{name}: what comes later was checked for limits only, {why} is not known")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _shortened(way: Array) -> Array:
    return np.asarray(way * min(1.0, SHORTEST_PROBE / max(float(np.linalg.norm(way)), 1e-9)))


def _matrix(pose: Pose) -> Array:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation, pose.position
    return matrix
