"""Privileged reading of a live RoboTwin world: objects, names, places, and how to draw it again.

Everything here is simulator truth, in the world frame, metres; no policy or critic sees it. What a
task of RoboTwin plays with are its attributes of the type `Actor`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zetta.runtime.core import Array, Landmark, Truth, read_only
from zetta.sims.robotwin.tasks import RobotwinTask
from zetta.sims.sapien_chain import matrix


class RobotwinWorld:
    """One world; a new one comes with each scene."""

    def __init__(self, task: Any, own: RobotwinTask) -> None:
        """Note what is in it."""
        self._task, self._own = task, own
        self._actors = {
            name: value
            for name, value in sorted(vars(task).items())
            if type(value).__name__ == "Actor"
        }
        entities = (task.robot.left_entity, task.robot.right_entity)
        # One model may hold both arms.
        self._bodies = entities[:1] if entities[0] == entities[1] else entities

    def truth(self, solved: bool | None = None) -> Truth:
        """Return where everything is, and whether the goal holds; `solved` None asks RoboTwin."""
        holds = bool(self._task.check_success()) if solved is None else solved
        return Truth(
            objects={name: read_only(_pose(actor)) for name, actor in self._actors.items()},
            predicates={f"solved {self._own.name}": holds},
        )

    def landmarks(self) -> tuple[Landmark, ...]:
        """Return every thing that instructions have a name for."""
        found = []
        for attribute, names in self._own.things.items():
            actor = self._actors[attribute]
            place = matrix(actor.get_pose())
            extent = 2.0 * np.asarray(actor.config["scale"], np.float64)  # of half sizes
            yaw = float(np.arctan2(place[1, 0], place[0, 0]))
            found.append(
                Landmark(names[0], names[1:], read_only(place[:3, 3]), read_only(extent), yaw)
            )
        return tuple(found)

    def pose(self) -> Array:
        """Return the joints of the robot and the places of loose things. Shape (N,)."""
        parts = [body.get_qpos() for body in self._bodies]
        parts += [_pose(actor) for actor in self._actors.values()]
        return read_only(np.concatenate(parts))

    def show(self, pose: Array) -> None:
        """Put everything where a pose of this task says."""
        import sapien

        at = 0
        for body in self._bodies:
            count = len(body.get_qpos())
            body.set_qpos(pose[at : at + count].astype(np.float32))
            at += count
        for actor in self._actors.values():
            place, turn = pose[at : at + 3], np.roll(pose[at + 3 : at + 7], 1)  # xyzw -> wxyz
            actor.actor.set_pose(sapien.Pose(place, turn))
            at += 7


def _pose(actor: Any) -> Array:
    pose = actor.get_pose()
    return np.concatenate([pose.p, np.roll(pose.q, -1)]).astype(np.float64)  # wxyz -> xyzw
