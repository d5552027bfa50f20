"""Demonstrations of the scripted experts, kept as seeds, actions and labels, without pictures.

A recording is a few kilobytes. Pictures are drawn later from its poses (`shards.py`), only where
they are wanted.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Array, Motion, Outcome, Proprio, Sense, Step
from zetta.runtime.errors import ConfigError
from zetta.sims.libero.env import LiberoEnv
from zetta.sims.libero.errands import Assignment, begin
from zetta.sims.libero.experts import Expert, Habits
from zetta.sims.libero.world import World

FRAME_EVERY = 4
"""Ticks between stored poses, from which pictures can be drawn."""
EVALUATION_INITS = frozenset(range(10))
"""Init states that no training run may touch."""

NOISE = {
    "approach": 0.45,
    "move": 0.45,
    "lift": 0.25,
    "descend": 0.30,
    "lower": 0.20,
    "retreat": 0.15,
    "close": 0.03,
    "open": 0.03,
}
"""Ornstein-Uhlenbeck level by phase, in action units; phases that are not named get 0.12."""
OTHER_NOISE = 0.12
DISTURBED_TICKS = (4, 11)
CALM_TICKS = (14, 27)
"""Ranges of the spells with and without noise: the way back is shown, and labelled, undisturbed."""


@dataclass(frozen=True, slots=True)
class RecordingSpec:
    """What makes a recording; equal specs give equal recordings."""

    suite: str
    task: int
    init: int
    noise_seed: int
    noise: float = 1.0
    detour: float = 0.5
    """Probability that the episode begins with an unlabelled move to the side."""
    shuffle: int | None = None
    """Seed of a shuffled layout, in which some object is asked for; None for the task itself."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One successful demonstration of T ticks with F stored poses."""

    spec: RecordingSpec
    instruction: str
    actions: npt.NDArray[np.float32]
    """Executed, shape (T, 7)."""
    closing: npt.NDArray[np.float32]
    """Gripper command of the expert, shape (T,), -1 open, +1 closed."""
    proprio: npt.NDArray[np.float32]
    """Before each action: position 3, quaternion xyzw 4, opening, velocity. Shape (T, 9)."""
    focus: npt.NDArray[np.float32]
    """Shape (T, 3), world, metres."""
    destination: npt.NDArray[np.float32]
    """Shape (T, 3), NaN where there is none."""
    phase: tuple[str, ...]
    labelled: npt.NDArray[np.bool_]
    """Whether the tick shows what an expert would do. Shape (T,)."""
    disturbed: npt.NDArray[np.bool_]
    """Whether noise was added to the expert's action. Shape (T,)."""
    poses: npt.NDArray[np.float32]
    """At every `FRAME_EVERY`-th tick. Shape (F, N)."""


class Disturbance:
    """Spells of noise on top of the expert's action, so that demonstrations show corrections."""

    def __init__(self, level: float, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._level = level
        self._drift = np.zeros(6)
        self._left = int(self._rng.integers(CALM_TICKS[1]))
        self.active = False
        """Whether the last action was disturbed."""

    def applied(self, action: Array, phase: str) -> Array:
        """Return `action` with noise of the phase's level, still inside [-1, 1]."""
        if self._left == 0:
            self.active = not self.active
            self._left = int(self._rng.integers(*(DISTURBED_TICKS if self.active else CALM_TICKS)))
        self._left -= 1
        noisy = np.array(action, dtype=np.float64)
        if self.active:
            level = NOISE.get(phase, OTHER_NOISE) * self._level
            self._drift = 0.8 * self._drift + 0.6 * level * self._rng.normal(size=6)
            noisy[:6] += self._drift * np.array([1, 1, 1, 0.15, 0.15, 0.15])
            noisy[:6] = np.clip(noisy[:6], -1, 1)
        # Stored as float32, executed as what is stored: a replay is then bit-exact.
        return noisy.astype(np.float32).astype(np.float64)


class Recorder:
    """Collects the rows of one episode."""

    def __init__(self, env: LiberoEnv, expert: Expert) -> None:
        self._env, self._expert = env, expert
        self._rows: list[tuple[Array, float, Array, Array, Array, str, bool, bool]] = []
        self._poses: list[Array] = []

    def tick(
        self,
        proprio: Proprio,
        executed: Array,
        wanted: Array,
        labelled: bool,
        disturbed: bool = False,
    ) -> None:
        """Note one tick before it is executed."""
        if len(self._rows) % FRAME_EVERY == 0:
            self._poses.append(self._env.pose())
        arm, expert = proprio.arms[0], self._expert
        felt = np.concatenate(
            [arm.ee_pos, arm.ee_quat, [arm.gripper_opening, arm.gripper_velocity]]
        )
        goal = expert.destination
        self._rows.append(
            (
                executed,
                float(wanted[6]),
                felt,
                expert.focus.copy(),
                np.full(3, np.nan) if goal is None else goal.copy(),
                expert.phase,
                labelled,
                disturbed,
            )
        )

    def recording(self, spec: RecordingSpec, instruction: str) -> Recording:
        """Return what was noted while doing what `instruction` says."""
        actions, closing, felt, focus, goal, phase, labelled, disturbed = zip(
            *self._rows, strict=True
        )
        return Recording(
            spec,
            instruction,
            np.asarray(actions, np.float32),
            np.asarray(closing, np.float32),
            np.asarray(felt, np.float32),
            np.asarray(focus, np.float32),
            np.asarray(goal, np.float32),
            tuple(phase),
            np.asarray(labelled, bool),
            np.asarray(disturbed, bool),
            np.asarray(self._poses, np.float32),
        )


def refuse_evaluation_init(init: int) -> None:
    """Raise ConfigError when an init state is kept for evaluation."""
    if init in EVALUATION_INITS:
        raise ConfigError(f"init {init} is kept for evaluation; train on 10 and above")


def record(env: LiberoEnv, spec: RecordingSpec, habits: Habits | None = None) -> Recording | None:
    """Let the expert solve one scene under noise; return None when it does not succeed.

    Raises:
        ConfigError: the scene is kept for evaluation.
    """
    refuse_evaluation_init(spec.init)
    start = begin(env, spec.init, spec.shuffle)
    expert = Expert(start.world, habits)
    recorder = Recorder(env, expert)
    rng = np.random.default_rng([spec.noise_seed, 1])
    if rng.random() < spec.detour:
        start = replace(start, step=_detour(env, recorder, start.step, rng))
    return drive(env, expert, recorder, start, spec)


def drive(
    env: LiberoEnv, expert: Expert, recorder: Recorder, start: Assignment, spec: RecordingSpec
) -> Recording | None:
    """Let `expert` finish the episode from here; return the recording of a success."""
    disturbance = Disturbance(spec.noise, spec.noise_seed)
    motion, step = expert.motion(), start.step
    try:
        wanted = next(motion)
        for _ in range(env.task.max_steps + 60):
            executed = disturbance.applied(wanted, expert.phase)
            recorder.tick(step.proprio, executed, wanted, True, disturbance.active)
            step = env.step(executed)
            if start.world.success():
                return recorder.recording(spec, start.instruction)
            wanted = motion.send(Sense(step.proprio))
    except StopIteration:
        pass
    except ConfigError as error:
        if spec.shuffle is None:
            raise
        # A shuffled layout may leave no room to take hold of an object.
        logging.getLogger(__name__).info("%s: %s", spec, error)
    finally:
        motion.close()
    return None


def expert_motion(env: LiberoEnv, noise: float = 0.0, seed: int = 0) -> Motion:
    """Return the scripted expert of the environment's task as a motion, disturbed by `noise`."""
    expert = Expert(World(env.control))
    disturbance = Disturbance(noise, seed)
    motion = expert.motion()
    try:
        wanted = next(motion)
        while True:
            sense = yield (disturbance.applied(wanted, expert.phase) if noise else wanted)
            wanted = motion.send(sense)
    except StopIteration as ended:
        return cast(Outcome, ended.value)
    finally:
        motion.close()


def _detour(env: LiberoEnv, recorder: Recorder, step: Step, rng: np.random.Generator) -> Step:
    """Move to a random place near the start; these ticks are not labelled."""
    goal = step.proprio.arms[0].ee_pos + rng.uniform(-1, 1, 3) * [0.10, 0.10, 0.06]
    for _ in range(25):
        error = goal - step.proprio.arms[0].ee_pos
        if np.linalg.norm(error) < 0.015:
            break
        action = np.zeros(7)
        action[:3] = np.clip(error / 0.05 * 1.5, -1, 1)
        action[6] = -1.0
        action = action.astype(np.float32).astype(np.float64)
        recorder.tick(step.proprio, action, action, labelled=False)
        step = env.step(action)
    return step


# --------------------------------------------------------------------------- files

_ARRAYS = (
    "actions",
    "closing",
    "proprio",
    "focus",
    "destination",
    "labelled",
    "disturbed",
    "poses",
)


def save(path: Path, recordings: list[Recording]) -> None:
    """Write recordings of one task to one compressed file, atomically."""
    head = [
        {"spec": asdict(r.spec), "instruction": r.instruction, "phase": list(r.phase)}
        for r in recordings
    ]
    arrays = {f"{i}.{name}": getattr(r, name) for i, r in enumerate(recordings) for name in _ARRAYS}
    temporary = path.with_suffix(".part.npz")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        temporary,
        head=np.frombuffer(json.dumps(head).encode(), np.uint8),
        **arrays,
    )
    temporary.replace(path)


def read(path: Path) -> Iterator[Recording]:
    """Yield the recordings of a file.

    Raises:
        ConfigError: the file is damaged or of another kind.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        head = json.loads(arrays["head"].tobytes())
        for i, entry in enumerate(head):
            parts = {name: arrays[f"{i}.{name}"] for name in _ARRAYS}
            yield Recording(
                spec=RecordingSpec(**entry["spec"]),
                instruction=entry["instruction"],
                phase=tuple(entry["phase"]),
                **parts,
            )
    except UNREADABLE as error:
        raise ConfigError(f"{path} holds no recordings: {error}") from error
