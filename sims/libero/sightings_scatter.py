"""Scenes for training pictures: everything anywhere, stacked, held, opened, resized.

Nothing here is a layout of the benchmark: fixtures and objects are placed over the whole table.
"""

from __future__ import annotations

from typing import Any, Final

import mujoco
import numpy as np

from zetta.runtime.core import Array
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.landmarks import NamedWorld, phrases
from zetta.sims.libero.sightings_arm import FINGER_TRAVEL, Reach
from zetta.sims.libero.sightings_scale import Scaler, draw_factors

OBJECTS_X, OBJECTS_Y = (-0.34, 0.26), (-0.36, 0.36)
FIXTURES_X, FIXTURES_Y = (-0.45, 0.16), (-0.36, 0.36)
HOME_SHARE = 0.25
"""Share of pictures in which fixtures stand about where the suite has them."""
STACKED_SHARE = 0.45
"""Share of objects that are put on or into something, where there is anything of the kind."""
STACKED_SHARE_FLOOR = 0.2
TOPPLED_SHARE = 0.06
SCALED_SHARE = 0.35
SMALLEST, LARGEST = 0.8, 1.6
DRAWER_SHARE = 0.3
HELD_SHARE = 0.2
HOVER_SHARE = 0.3
SETTLE_STEPS = 120
"""Physics steps of 2 ms while things come to rest; the arm is held still."""
DROP = 0.004
CLEAR = 0.6
"""Metres above the table from which nothing is in the way of a downward ray."""
SUPPORTS: Final = ("plate", "cookie box", "ramekin", "black bowl", "basket", "frying pan", "book")
_RECEPTACLES: Final = ("basket", "plate", "cookie box", "ramekin", "black bowl", "frying pan")
_FAR = 5.0
_TRIES = 40


class Scatter:
    """Rearranges the scene of one environment for every picture."""

    def __init__(self, env: LiberoEnv) -> None:
        self._env = env
        self.world = NamedWorld(env.control)
        self._model: Any = env.control.env.sim.model._model
        self._live: Any = env.control.env.sim.data._data
        self._home = env.pose()
        self._scaler = Scaler(env, self.world)
        self._reach = Reach(self.world, env.control)
        self._kinds = {
            thing: phrases(self.world.category(thing))[0]
            for thing in (*self.world.movables, *self.world.fixtures)
        }
        self._table = self.world.table_height
        self._on_floor = self._table < 0.5

    def arrange(self, rng: np.random.Generator) -> None:
        """Draw a new scene and a new arm pose."""
        self._env.show(self._home)
        # Nothing of the last scene may linger, or a continued job would draw other pictures.
        for field in (self._live.qvel, self._live.qacc_warmstart, self._live.ctrl):
            field[:] = 0.0
        factors = draw_factors(self.world.movables, SCALED_SHARE, SMALLEST, LARGEST, rng)
        self._scaler.scale(factors)
        self._forget_shapes()
        self._move_fixtures(rng)
        self._move_joints(rng)
        self._place_objects(rng)
        self._settle()
        self._pose_arm(rng)
        # Also lights the burner of a stove that is on.
        self._env.show(self._env.pose())

    # ------------------------------------------------------------------ fixtures

    def _move_fixtures(self, rng: np.random.Generator) -> None:
        home = rng.random() < HOME_SHARE
        placed: list[tuple[Array, float]] = []
        names = list(self.world.fixtures)
        rng.shuffle(names)
        for name in names:
            body = self.world.body(name)
            radius = self._radius(name) * 0.8
            nominal = np.array(self._model.body_pos[body][:2])
            for _ in range(_TRIES):
                spot = _uniform(rng, FIXTURES_X, FIXTURES_Y)
                if home:
                    spot = nominal + rng.uniform(-0.04, 0.04, 2)
                if all(np.linalg.norm(spot - other) > radius + r for other, r in placed):
                    break
            placed.append((spot, radius))
            self._model.body_pos[body][:2] = spot
            about_home = home or rng.random() < 0.5
            yaw = rng.normal(0.0, 0.12) if about_home else rng.uniform(-np.pi, np.pi)
            self._turn(self._model.body_quat[body], yaw)
        self._show()

    def _move_joints(self, rng: np.random.Generator) -> None:
        for fixture in self.world.fixtures:
            for name in self.world.region_joints(fixture):
                joint = self._model.joint(name)
                low, high = joint.range
                row = int(joint.qposadr[0])
                if rng.random() < DRAWER_SHARE:
                    self._live.qpos[row] = rng.uniform(low, high)
                else:
                    self._live.qpos[row] = 0.0
        self._show()

    # ------------------------------------------------------------------ objects

    def _place_objects(self, rng: np.random.Generator) -> None:
        rows = {name: self._free_row(name) for name in self.world.movables}
        for i, row in enumerate(rows.values()):
            self._live.qpos[row] = _FAR + i
        self._show()
        names = list(rows)
        rng.shuffle(names)
        names.sort(key=lambda name: self._kinds[name] not in _RECEPTACLES)
        placed: list[tuple[Array, float]] = []
        supports = self._fixture_supports()
        for name in names:
            self._orient(name, rng)
            self._show()
            # Measured once it has its orientation; where it is does not matter for that.
            radius = self._radius(name)
            spot, stacked = self._spot(radius, placed, supports, rng)
            self._stand(name, rows[name], spot, radius, stacked)
            if not stacked:
                placed.append((spot, radius))
            if self._kinds[name] in SUPPORTS:
                supports.append([spot])

    def _spot(
        self,
        radius: float,
        placed: list[tuple[Array, float]],
        supports: list[list[Array]],
        rng: np.random.Generator,
    ) -> tuple[Array, bool]:
        share = STACKED_SHARE_FLOOR if self._on_floor else STACKED_SHARE
        if supports and rng.random() < share:
            # A cabinet has many places, but is chosen no more often than a plate.
            places = supports[rng.integers(len(supports))]
            return places[rng.integers(len(places))] + rng.normal(0.0, 0.015, 2), True
        for _ in range(_TRIES):
            spot = _uniform(rng, OBJECTS_X, OBJECTS_Y)
            gap = rng.uniform(0.75, 1.2)
            if all(np.linalg.norm(spot - other) > gap * (radius + r) for other, r in placed):
                break
        return spot, False

    def _stand(self, name: str, row: int, spot: Array, radius: float, stacked: bool) -> None:
        origin = np.array(self._live.qpos[row : row + 3])
        points = self.world.points(name) - origin
        bottom = float(points[:, 2].min())
        body = self.world.body(name)
        ignore = frozenset({body})
        # Into a bowl or a basket a thing is dropped from its rim's inside.
        reach = 0.3 * radius if stacked else 0.8 * radius
        around = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]) * reach
        start = self._table + CLEAR
        heights = [self.world.top_height(x, y, start, ignore) for x, y in spot + around]
        height = max(self._table, *heights)
        self._live.qpos[row : row + 3] = [*spot, height - bottom + DROP]
        self._show()

    def _orient(self, name: str, rng: np.random.Generator) -> None:
        quat = self._live.qpos[self._free_row(name) + 3 :][:4]
        if rng.random() < TOPPLED_SHARE:
            angle = rng.uniform(0, 2 * np.pi)
            _premultiply(quat, np.array([np.cos(angle), np.sin(angle), 0.0]), np.pi / 2)
        self._turn(quat, rng.uniform(-np.pi, np.pi) if rng.random() < 0.6 else rng.normal(0, 0.08))

    def _fixture_supports(self) -> list[list[Array]]:
        """Return the middles of each fixture's places."""
        regions = [self.world.region(name) for name in self.world.regions]
        places = [
            [region.center[:2] for region in regions if region.parent == fixture]
            for fixture in self.world.fixtures
        ]
        return [centers for centers in places if centers]

    # ------------------------------------------------------------------ arm

    def _pose_arm(self, rng: np.random.Generator) -> None:
        draw = rng.random()
        if draw < HELD_SHARE and self._hold(rng):
            return
        if draw < HELD_SHARE + HOVER_SHARE and self._hover(rng):
            return
        spread = rng.choice([0.0, 0.02, 0.15, 0.35])
        joints = self._reach.joints + rng.normal(size=7) * spread
        self._reach.put(joints, rng.choice([0.0, 0.042, 2 * FINGER_TRAVEL]))

    def _hover(self, rng: np.random.Generator) -> bool:
        spot = _uniform(rng, OBJECTS_X, OBJECTS_Y)
        top = max(self._table, self._height(spot))
        target = np.array([*spot, top + rng.uniform(0.01, 0.25)])
        joints = self._reach.solve(target, rng.uniform(-np.pi / 2, np.pi / 2))
        if joints is None:
            return False
        self._reach.put(joints, rng.uniform(0.0, 2 * FINGER_TRAVEL))
        return True

    def _hold(self, rng: np.random.Generator) -> bool:
        """Put an object between the fingers somewhere over the table."""
        names = [n for n in self.world.movables if self._kinds[n] not in ("basket", "frying pan")]
        name = names[rng.integers(len(names))]
        points = self.world.points(name)
        low, high = points.min(axis=0), points.max(axis=0)
        if low[2] < self._table - 0.02 or high[2] > self._table + 0.5:
            return False
        spot = _uniform(rng, OBJECTS_X, OBJECTS_Y)
        below = max(self._table, self._height(spot))
        grip = rng.uniform(0.005, 0.03)
        target = np.array([*spot, below + (high - low)[2] - grip + rng.uniform(0.005, 0.25)])
        yaw = rng.uniform(-np.pi / 2, np.pi / 2)
        joints = self._reach.solve(target, yaw)
        if joints is None:
            return False
        width = float(min((high - low)[:2]))
        offset = rng.normal(0.0, 0.006, 2)
        if width > 2 * FINGER_TRAVEL:
            # Too wide to span: it hangs from its rim.
            facing = yaw + np.pi / 2 * rng.choice([-1, 1])
            offset += (width / 2 - 0.005) * np.array([np.cos(facing), np.sin(facing)])
            width = 0.006
        self._reach.put(joints, width)
        row = self._free_row(name)
        hung = np.array([*offset, grip])  # of the middle of its top from the grip site
        top = np.array([*((low + high) / 2)[:2], high[2]])
        self._live.qpos[row : row + 3] += target + hung - top
        return True

    # ------------------------------------------------------------------ physics

    def _settle(self) -> None:
        live = self._live
        rows, speeds = (np.asarray(r, dtype=int) for r in self._reach.robot_rows)
        held = np.array(live.qpos[rows])
        live.qvel[:] = 0.0
        for _ in range(SETTLE_STEPS):
            mujoco.mj_step(self._model, live)
            live.qpos[rows] = held
            live.qvel[speeds] = 0.0
        if not np.isfinite(live.qpos).all():
            raise ArithmeticError("a scene exploded while it settled")

    def _show(self) -> None:
        mujoco.mj_kinematics(self._model, self._live)

    def _free_row(self, name: str) -> int:
        joint = self._env.control.env.objects_dict[name].joints[-1]
        return int(self._model.joint(joint).qposadr[0])

    def _radius(self, name: str) -> float:
        points = self.world.points(name)[:, :2]
        return float(np.ptp(points, axis=0).max() / 2)

    def _height(self, spot: Array) -> float:
        """Return how high things reach at a spot."""
        x, y = float(spot[0]), float(spot[1])
        return self.world.top_height(x, y, self._table + CLEAR, frozenset())

    def _forget_shapes(self) -> None:
        self.world = NamedWorld(self._env.control)

    def _turn(self, quat: Array, yaw: float) -> None:
        _premultiply(quat, np.array([0.0, 0.0, 1.0]), yaw)


def _premultiply(quat: Array, axis: Array, angle: float) -> None:
    """Turn a wxyz quaternion about a world axis, in place."""
    turn, turned = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, axis, angle)
    mujoco.mju_mulQuat(turned, turn, quat)
    quat[:] = turned


def _uniform(rng: np.random.Generator, x: tuple[float, float], y: tuple[float, float]) -> Array:
    return np.array([rng.uniform(*x), rng.uniform(*y)])
