"""What every environment owes its callers, as plain checks.

They run in any process: `python env_contract.py SIM SUITE TASK [CHECK…]` prints their verdicts as
JSON, for simulators of which one process can draw one environment only. `tests/sims/contract.py`
runs them from outside.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from types import FrameType

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from zetta.runtime import registry
from zetta.runtime.core import (
    SENSING_LEVELS,
    Action,
    Array,
    Env,
    EnvSpec,
    Init,
    Proprio,
    Sampled,
    Scene,
    Simulator,
    SnapshotEnv,
    Step,
    WordedEnv,
)
from zetta.runtime.errors import ConfigError, SpecMismatch

WORLDS = ("zetta.sims.", "zetta.hw_drivers.")
RELATIVE = ("delta_pose", "joint_velocity")
"""Kinds of actions of which all within the limits may be drawn; others are places."""


def resting(spec: EnvSpec, proprio: Proprio) -> Action:
    """Return the row that holds still with open grippers; `target_pose` needs to know where."""
    row = np.zeros(spec.action.size)
    row[spec.action.arms_size :] = spec.action.rest
    grippers = [k for k, name in enumerate(spec.action.names) if name.endswith("gripper")]
    row[grippers] = spec.action.gripper_open
    if spec.action.kind == "target_pose":
        for arm, state in enumerate(proprio.arms):
            row[7 * arm : 7 * arm + 3] = state.ee_pos
            row[7 * arm + 3 : 7 * arm + 6] = Rotation.from_quat(state.ee_quat).as_rotvec()
    elif spec.action.kind == "joint_position":
        row[[k for k in range(spec.action.size) if k not in grippers]] = np.concatenate(
            [state.joint_pos for state in proprio.arms]
        )
    return row


@dataclass(frozen=True)
class Subject:
    """One task under test: `env` draws, others made by `simulator` never do."""

    simulator: Simulator
    suite: str
    index: int
    env: SnapshotEnv
    spare: SnapshotEnv
    """A second instance of the same task."""
    rest: Callable[[EnvSpec, Proprio], Action] = resting
    """The row that holds still with open grippers."""

    @property
    def scene(self) -> Scene:
        return Scene(self.simulator.task(self.suite, self.index), Init(0), seed=3)

    def actions(self, count: int, seed: int = 0) -> list[Action]:
        """Return random actions within the spec; about the present place where they are places."""
        spec = self.env.spec.action
        rng = np.random.default_rng(seed)
        if spec.kind in RELATIVE:
            return list(rng.uniform(spec.low, spec.high, size=(count, spec.size)))
        rows = self.here() + rng.uniform(-0.03, 0.03, size=(count, spec.size))
        return list(np.clip(rows, spec.low, spec.high))

    def here(self) -> Action:
        """Return the row that holds still where the robot is."""
        return self.rest(self.env.spec, self.env.observe().proprio)

    def away(self) -> list[Action]:
        """Return actions that lead elsewhere."""
        spec = self.env.spec.action
        row = (
            np.array(spec.high)
            if spec.kind in RELATIVE
            else np.clip(self.here() + 0.08, spec.low, spec.high)
        )
        return [row] * 8


def subject(sim: str, suite: str, index: int) -> Subject:
    """Build a task twice."""
    simulator = registry.simulator(sim)
    env, spare = (simulator.make(suite, index) for _ in range(2))
    assert isinstance(env, SnapshotEnv)
    assert isinstance(spare, SnapshotEnv)
    return Subject(simulator, suite, index, env, spare)


def arrays(value: object) -> Iterator[np.ndarray]:
    """Yield every array inside a record."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from arrays(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays(getattr(value, field.name))


def fingerprint(step: Step) -> str:
    """Return the step's bytes and flags: equal only when bit-equal."""
    flags = (step.success, step.terminated, step.truncated, step.proprio.t)
    fingers = [(arm.gripper_opening, arm.gripper_velocity) for arm in step.proprio.arms]
    return "".join(array.tobytes().hex() for array in arrays(step)) + repr((flags, fingers))


def trace(env: Env, actions: list[Action]) -> list[str]:
    """Return the fingerprints of the steps that `actions` lead to."""
    return [fingerprint(env.step(action)) for action in actions]


def pose_of(env: SnapshotEnv) -> list[Array]:
    """Return the pose of an environment that has one; one in another process may say that not."""
    try:
        return [env.pose()]
    except SpecMismatch:
        return []


def standing(env: SnapshotEnv) -> bytes:
    """Return how the world stands, as bytes; without a pose it is the robot alone."""
    found = arrays([env.observe().proprio, pose_of(env)])
    return b"".join(array.tobytes() for array in found)


# --------------------------------------------------------------------------- the checks


def check_spec_is_consistent(s: Subject) -> None:
    spec = s.env.spec
    action = spec.action
    assert action.size == len(action.low) == len(action.high) == len(action.scale) > 0
    assert len(set(action.names)) == action.size
    assert all(low < high for low, high in zip(action.low, action.high, strict=True))
    if action.kind in ("delta_pose", "target_pose"):
        assert action.arms_size == 7 * len(spec.arms)
    size = action.arms_size
    resting = zip(action.low[size:], action.rest, action.high[size:], strict=True)
    assert all(low <= rest <= high for low, rest, high in resting)
    assert action.gripper_open != action.gripper_close
    assert spec.control_hz > 0
    assert len({camera.name for camera in spec.cameras}) == len(spec.cameras) > 0
    assert spec.sensing in SENSING_LEVELS
    assert spec.versions
    assert s.spare.spec == spec


def check_first_step_describes_an_unsolved_start(s: Subject) -> None:
    step = s.env.reset(s.scene)
    assert step.proprio.t == 0.0
    assert not any((step.success, step.terminated, step.truncated))
    assert step.truth is not None
    assert step.truth.predicates
    assert not all(step.truth.predicates.values())
    assert len(step.proprio.arms) == len(s.env.spec.arms)
    for arm in step.proprio.arms:
        assert arm.ee_pos.shape == (3,)
        assert np.isclose(np.linalg.norm(arm.ee_quat), 1.0)
        assert arm.joint_pos.ndim == 1
        assert 0.0 <= arm.gripper_opening < 0.2


def check_time_advances_by_the_control_period(s: Subject) -> None:
    s.env.reset(s.scene)
    times = [s.env.step(action).proprio.t for action in s.actions(3)]
    np.testing.assert_allclose(times, np.arange(1, 4) / s.env.spec.control_hz)


def check_reset_forgets_every_history(s: Subject) -> None:
    for scene in (s.scene, replace(s.scene, layout=Sampled(), seed=11)):
        s.env.reset(scene)
        actions = s.actions(8)
        first = [fingerprint(s.env.reset(scene)), *trace(s.env, actions)]
        s.env.reset(replace(scene, layout=Init(1)))
        trace(s.env, s.actions(5, seed=9))
        again = [fingerprint(s.env.reset(scene)), *trace(s.env, actions)]
        assert again == first
        elsewhere = [fingerprint(s.spare.reset(scene)), *trace(s.spare, actions)]
        assert elsewhere == first


def check_other_scenes_start_elsewhere(s: Subject) -> None:
    starts = [
        fingerprint(s.env.reset(scene))
        for scene in (
            s.scene,
            replace(s.scene, layout=Init(1)),
            replace(s.scene, layout=Sampled(), seed=1),
            replace(s.scene, layout=Sampled(), seed=2),
        )
    ]
    assert len(set(starts)) == len(starts)
    assert fingerprint(s.env.reset(replace(s.scene, layout=Sampled(), seed=1))) == starts[2]


def check_arrays_cannot_be_written(s: Subject) -> None:
    steps = [s.env.reset(s.scene), s.env.step(s.actions(1)[0])]
    seen = s.env.observe([s.env.spec.cameras[0].name], depth=True)
    found = [*arrays(steps), *arrays(seen), *pose_of(s.env)]
    assert len(found) > 8
    for array in found:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def check_records_stay_what_they_were(s: Subject) -> None:
    s.env.reset(s.scene)
    step = s.env.step(s.actions(1)[0])
    before = fingerprint(step)
    trace(s.env, s.actions(5, seed=1))
    s.env.reset(replace(s.scene, layout=Init(1)))
    assert fingerprint(step) == before


def check_only_observe_draws(s: Subject) -> None:
    drawn: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if (
            event == "call"
            and module.startswith(WORLDS)
            and ("render" in module or "draw" in module)
        ):
            drawn.append(frame.f_code.co_name)

    action = s.actions(1)[0]
    sys.setprofile(watch)
    try:
        s.env.reset(s.scene)
        s.env.step(action)
        s.env.observe()
        without_looking = list(drawn)
        s.env.observe([s.env.spec.cameras[0].name])
    finally:
        sys.setprofile(None)
    assert without_looking == []
    assert drawn


def check_what_is_sensed_anew_is_what_the_step_said(s: Subject) -> None:
    """A paced loop senses anew when a tick begins; in a world that waits nothing has changed."""
    step = s.env.reset(s.scene)
    for action in s.actions(3):
        anew = replace(step, proprio=s.env.observe().proprio)
        assert fingerprint(anew) == fingerprint(step)
        step = s.env.step(action)
    assert fingerprint(replace(step, proprio=s.env.observe().proprio)) == fingerprint(step)


def check_pictures_are_as_declared(s: Subject) -> None:
    s.env.reset(s.scene)
    for camera in s.env.spec.cameras:
        seen = s.env.observe([camera.name], depth=True)
        assert set(seen.images) == set(seen.depth) == set(seen.cameras) == {camera.name}
        image, depth = seen.images[camera.name], seen.depth[camera.name]
        assert image.shape == (camera.height, camera.width, 3)
        assert image.dtype == np.uint8
        assert image.std() > 5.0
        assert depth.shape == (camera.height, camera.width)
        assert depth.dtype == np.float32
        assert np.isfinite(depth).all()
        assert 0.0 < depth.min() < np.median(depth) < 20.0
        k, pose = seen.cameras[camera.name].intrinsics, seen.cameras[camera.name].T_world_cam
        assert k.shape == (3, 3)
        assert 0.0 < k[0, 2] < camera.width
        assert 0.0 < k[1, 2] < camera.height
        np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-6)
        assert np.isclose(np.linalg.det(pose[:3, :3]), 1.0)


def check_only_the_named_cameras_are_drawn(s: Subject) -> None:
    s.env.reset(s.scene)
    blind = s.env.observe()
    assert not blind.images
    assert not blind.depth
    assert not blind.cameras
    worded = isinstance(s.env, WordedEnv)
    assert blind.instruction == (s.env.instruction(s.scene) if worded else s.scene.task.instruction)
    name = s.env.spec.cameras[0].name
    assert not s.env.observe([name]).depth
    with pytest.raises(ConfigError, match=name):
        s.env.observe([name + "x"])


def check_bad_actions_are_refused_and_change_nothing(s: Subject) -> None:
    s.env.reset(s.scene)
    before = standing(s.env)
    size = s.env.spec.action.size
    broken = np.zeros(size)
    broken[1] = np.nan
    endless = np.zeros(size)
    endless[-1] = np.inf
    for action in (np.zeros(size + 1), np.zeros(size - 1), np.zeros((1, size)), broken, endless):
        with pytest.raises(SpecMismatch):
            s.env.step(action)
    assert standing(s.env) == before


def check_snapshot_continues_bit_exactly(s: Subject) -> None:
    s.env.reset(s.scene)
    trace(s.env, s.actions(6))
    snapshot = s.env.snapshot()
    assert isinstance(snapshot, bytes)
    actions = s.actions(6, seed=5)
    onward = trace(s.env, actions)
    s.env.restore(snapshot)
    assert trace(s.env, actions) == onward
    s.spare.reset(replace(s.scene, layout=Init(1)))
    s.spare.restore(snapshot)
    assert trace(s.spare, actions) == onward


def check_taking_a_snapshot_changes_nothing(s: Subject) -> None:
    actions = s.actions(6)
    s.env.reset(s.scene)
    undisturbed = trace(s.env, actions)
    s.env.reset(s.scene)
    disturbed = []
    for action in actions:
        s.env.snapshot()
        disturbed += trace(s.env, [action])
    assert disturbed == undisturbed


def check_foreign_bytes_are_no_snapshot(s: Subject) -> None:
    s.env.reset(s.scene)
    genuine = s.env.snapshot()
    for foreign in (b"", b"not a snapshot", genuine[: len(genuine) // 2]):
        with pytest.raises(SpecMismatch):
            s.env.restore(foreign)


def check_a_logged_pose_is_drawn_again(s: Subject) -> None:
    name = s.env.spec.cameras[0].name
    s.env.reset(s.scene)
    start = s.env.pose()
    trace(s.env, [*s.actions(3), *s.away()])
    end = s.env.pose()
    pictures = []
    for pose in (start, end, start, end):
        s.env.show(pose)
        pictures.append(s.env.observe([name]).images[name].tobytes())
    assert pictures[0] == pictures[2] != pictures[1] == pictures[3]
    with pytest.raises(SpecMismatch):
        s.env.show(start[:-1])


def check_a_logged_pose_is_drawn_as_it_was_seen(s: Subject) -> None:
    name = s.env.spec.cameras[0].name
    s.env.reset(s.scene)
    trace(s.env, s.actions(3))
    pose, picture = s.env.pose(), s.env.observe([name]).images[name]
    trace(s.env, s.away())
    assert (s.env.observe([name]).images[name] != picture).any()
    s.env.show(pose)
    np.testing.assert_array_equal(s.env.observe([name]).images[name], picture)


def check_scenes_of_another_task_are_refused(s: Subject) -> None:
    foreign = replace(s.scene.task, index=s.index + 1)
    with pytest.raises(ConfigError):
        s.env.reset(Scene(foreign, Init(0)))
    with pytest.raises(ConfigError):
        s.env.reset(replace(s.scene, layout=Init(s.simulator.init_count(s.suite, s.index))))


def check_simulator_lists_what_it_can_make(s: Subject) -> None:
    suites = s.simulator.suites()
    assert suites[s.suite] > s.index
    task = s.simulator.task(s.suite, s.index)
    assert (task.suite, task.index) == (s.suite, s.index)
    assert task.instruction.strip()
    assert task.max_steps > 0
    with pytest.raises(ConfigError, match=s.suite):
        s.simulator.task(s.suite + "x", 0)
    with pytest.raises(ConfigError):
        s.simulator.task(s.suite, suites[s.suite])
    with pytest.raises(ConfigError):
        s.simulator.make(s.suite, s.index, render="no such profile")


def check_expert_acts_within_the_spec(s: Subject) -> None:
    spec = s.env.spec.action
    s.env.reset(s.scene)
    action = next(s.simulator.expert(s.env, noise=0.1, seed=1))
    assert isinstance(action, np.ndarray)
    assert action.shape == (spec.size,)
    assert (action >= spec.low).all()
    assert (action <= spec.high).all()


def check_close_may_be_called_twice(s: Subject) -> None:
    s.spare.close()
    s.spare.close()


CHECKS: dict[str, Callable[[Subject], None]] = {
    name.removeprefix("check_"): value
    for name, value in list(globals().items())
    if name.startswith("check_")
}
"""In this order: the last one closes the spare."""


def verdicts(s: Subject, names: Iterable[str]) -> dict[str, str]:
    """Run the named checks; an empty verdict is a pass."""
    found = {}
    for name in names:
        try:
            CHECKS[name](s)
            found[name] = ""
        except (Exception, pytest.fail.Exception):  # any failure is this check's verdict
            found[name] = traceback.format_exc()
    return found


if __name__ == "__main__":
    from zetta.runtime.cli.graphics import choose_graphics

    choose_graphics(sys.argv[1])
    made = subject(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps(verdicts(made, sys.argv[4:] or CHECKS)))
