"""The words of Zetta: the records and protocols every other room speaks.

Only the standard library and numpy are imported here. Records are frozen; arrays that cross a
boundary are read-only. Units are SI, quaternions are ``xyzw``, images are upright
``(height, width, 3)`` uint8 RGB, poses are in the world frame of the environment unless a name
says otherwise. Whoever speaks another convention converts once, in its own adapter.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Image: TypeAlias = npt.NDArray[np.uint8]
Action: TypeAlias = npt.NDArray[np.float64]
"""One row in the convention of an `ActionSpec`. Shape (A,)."""

Sensing: TypeAlias = Literal["proprio", "policy", "vision", "oracle"]
SENSING_LEVELS: tuple[Sensing, ...] = ("proprio", "policy", "vision", "oracle")


ScalarT = TypeVar("ScalarT", bound=np.generic)


@overload
def read_only(array: npt.ArrayLike) -> Array: ...
@overload
def read_only(array: npt.ArrayLike, dtype: type[ScalarT]) -> npt.NDArray[ScalarT]: ...
def read_only(
    array: npt.ArrayLike, dtype: type[np.generic] = np.float64
) -> npt.NDArray[np.generic]:
    """Return a private, contiguous, read-only copy of `array`."""
    copy = np.array(array, dtype=dtype, order="C", copy=True)
    copy.flags.writeable = False
    return copy


# --------------------------------------------------------------------------- task and scene


@dataclass(frozen=True, slots=True)
class Task:
    """What the robot is asked to do, and for how many ticks it may try."""

    suite: str
    index: int
    instruction: str
    max_steps: int
    """Step budget of the published protocol; settling ticks are not counted."""


@dataclass(frozen=True, slots=True)
class Init:
    """The k-th initial state that ships with a task."""

    k: int

    def __str__(self) -> str:
        return str(self.k)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A layout drawn from the task's own placement distribution by the scene's seed."""

    def __str__(self) -> str:
        return "sampled"


Layout: TypeAlias = Init | Sampled


@dataclass(frozen=True, slots=True)
class Scene:
    """One concrete start of a task: equal scenes start bit-equal in any process."""

    task: Task
    layout: Layout
    seed: int = 0


# --------------------------------------------------------------------------- specs

ActionKind: TypeAlias = Literal[
    "delta_pose", "target_pose", "joint_position", "joint_velocity", "waypoint"
]


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """The meaning of one action row.

    `delta_pose`: per arm `dx dy dz` (unit: `scale[i]` metres per 1.0), `rx ry rz` axis-angle
    (`scale[i]` radians per 1.0), gripper. `target_pose`: per arm absolute `x y z` in metres,
    absolute axis-angle in radians, gripper. `joint_position`: per arm absolute radians, gripper.
    `joint_velocity`: per arm `scale[i]` radians for each tick per 1.0, gripper.
    """

    kind: ActionKind
    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    scale: tuple[float, ...]
    frame: str = "world"
    gripper_open: float = -1.0
    """Command that opens the gripper."""
    gripper_close: float = 1.0
    """Command that closes the gripper."""
    rest: tuple[float, ...] = ()
    """Commands that leave what is no arm (a mobile base, a torso, a mode) at rest, one for each of
    the columns behind those of the arms; empty where there are none."""

    @property
    def size(self) -> int:
        """Length A of an action row."""
        return len(self.names)

    @property
    def arms_size(self) -> int:
        """How many of the columns, the first ones, are those of arms."""
        return len(self.names) - len(self.rest)


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """A camera that can be looked through."""

    name: str
    height: int
    width: int
    mount: Literal["world", "wrist"] = "world"
    depth: bool = True


@dataclass(frozen=True, slots=True)
class EnvSpec:
    """What an environment is: its rate, its actions, its cameras and its declared conventions."""

    name: str
    control_hz: float
    action: ActionSpec
    cameras: tuple[CameraSpec, ...]
    arms: tuple[str, ...] = ("arm",)
    sensing: Sensing = "oracle"
    """Highest level this environment can serve: a real arm stops at `vision`."""
    render_profile: str = "none"
    """Name of the settings that decide how pictures look; models are bound to one."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Simulator and backend versions; written into every result."""

    def camera(self, name: str) -> CameraSpec:
        """Return the camera called `name`.

        Raises:
            KeyError: no such camera.
        """
        for camera in self.cameras:
            if camera.name == name:
                return camera
        raise KeyError(name)


# --------------------------------------------------------------------------- what is sensed


@dataclass(frozen=True, slots=True)
class ArmState:
    """One arm as its own sensors report it."""

    ee_pos: Array
    """End-effector (grip site) position, world frame, metres. Shape (3,)."""
    ee_quat: Array
    """End-effector orientation, world frame, xyzw. Shape (4,)."""
    joint_pos: Array
    """Joint positions in radians. Shape (J,)."""
    gripper_opening: float
    """Distance between the fingers in metres."""
    gripper_velocity: float = 0.0
    """Rate of change of the opening in m/s; negative while closing."""


@dataclass(frozen=True, slots=True)
class Proprio:
    """Everything the robot feels at one instant."""

    t: float
    """Seconds since the first tick of the episode."""
    arms: tuple[ArmState, ...]
    base: Array | None = None
    """Mobile base pose `x y yaw` in the world, or None for a fixed base. Shape (3,)."""


@dataclass(frozen=True, slots=True)
class Camera:
    """Calibration of one picture."""

    name: str
    intrinsics: Array
    """Pinhole matrix K in pixels. Shape (3, 3)."""
    T_world_cam: Array
    """Pose of the optical frame (x right, y down, z forward) in the world. Shape (4, 4)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a real robot can sense, and nothing else."""

    proprio: Proprio
    instruction: str
    images: Mapping[str, Image] = field(default_factory=dict)
    """Upright RGB by camera name. Shape (height, width, 3), uint8."""
    depth: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Metres along the optical axis by camera name. Shape (height, width)."""
    cameras: Mapping[str, Camera] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Truth:
    """Simulator truth: for labels and diagnosis only; no policy, critic or author reads it."""

    objects: Mapping[str, Array]
    """Position and quaternion (xyz, xyzw) in the world by object name. Shape (7,)."""
    predicates: Mapping[str, bool]
    """Goal predicates by their text."""
    joints: Mapping[str, float] = field(default_factory=dict)
    """Articulated parts (drawers, doors, knobs) by joint name."""


@dataclass(frozen=True, slots=True)
class Landmark:
    """A named thing, or a named place on one, as simulator truth has it."""

    name: str
    """Noun phrase as instructions say it; several landmarks may share one."""
    aliases: tuple[str, ...]
    """Other phrases for the same thing."""
    position: Array
    """Centre of the thing's box, world frame, metres. Shape (3,)."""
    extent: Array
    """Full size along its own axes, metres. Shape (3,)."""
    yaw: float
    """Rotation of the extent's first axis about world z, radians."""


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one control tick; it renders nothing."""

    proprio: Proprio
    success: bool
    terminated: bool
    truncated: bool
    truth: Truth | None = None
    guard: str = ""
    """On an arm: what the safety kernel did with the action where it was not sent as asked, and
    why; else empty."""


@runtime_checkable
class Env(Protocol):
    """A world with a robot in it: a simulator or a real arm."""

    @property
    def spec(self) -> EnvSpec:
        """Return the declared conventions; they never change."""
        ...

    def reset(self, scene: Scene) -> Step:
        """Put the world into `scene`, settled. `success` of the result says whether the goal
        already holds."""
        ...

    def step(self, action: Action) -> Step:
        """Advance one control tick."""
        ...

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        """Sense now; only the named cameras are rendered."""
        ...

    def close(self) -> None:
        """Free everything; calling it again does nothing."""
        ...


@runtime_checkable
class SnapshotEnv(Env, Protocol):
    """An environment that can be frozen, copied and redrawn."""

    def snapshot(self) -> bytes:
        """Return the complete state; restoring it continues bit-exactly."""
        ...

    def restore(self, snapshot: bytes) -> Step:
        """Continue from `snapshot`.

        Raises:
            SpecMismatch: it was taken by another simulator version or another model.
        """
        ...

    def pose(self) -> Array:
        """Return what is needed to draw the present moment. Shape (N,)."""
        ...

    def show(self, pose: Array) -> None:
        """Display a logged `pose` so that `observe` draws it; physics is not continued."""
        ...


@runtime_checkable
class HoldingEnv(Env, Protocol):
    """An environment that keeps its place by itself, better than actions could make it."""

    def hold(self, why: str) -> Step:
        """Keep the place for this tick, in place of `step`; `why` is for people.

        Raises:
            InfraError: it cannot be told.
        """
        ...


@runtime_checkable
class WatchedEnv(Env, Protocol):
    """An environment that may fall blind between two looks, as one with real cameras."""

    def watch(self) -> str:
        """Return why nobody may go on at this tick; empty if everything is seen.

        Raises:
            InfraError: it has lasted too long.
        """
        ...


@runtime_checkable
class DrivenEnv(Env, Protocol):
    """An environment that wants to know who drives it, such as an arm with limits for each."""

    def driven_by(self, source: str) -> None:
        """Hear who gives the next actions, as `Tick.source` names it.

        Called before the first step of an episode and before every step at which it changes.
        """
        ...


@runtime_checkable
class WordedEnv(Env, Protocol):
    """An environment that words the instruction of a scene only when it lays the scene out."""

    def instruction(self, scene: Scene) -> str:
        """Return what the robot is asked to do in `scene`, into which the world is put.

        Raises:
            ConfigError: the scene belongs to another task, or there is no such layout.
        """
        ...


class Simulator(Protocol):
    """A family of environments: lists tasks without importing the simulator's engine."""

    name: str

    def suites(self) -> Mapping[str, int]:
        """Return the number of tasks by suite name."""
        ...

    def task(self, suite: str, index: int) -> Task:
        """Return a task.

        Raises:
            ConfigError: unknown suite or index.
        """
        ...

    def init_count(self, suite: str, index: int) -> int:
        """Return how many `Init` layouts ship with the task."""
        ...

    def make(self, suite: str, index: int, render: str = "fast") -> Env:
        """Build the environment of one task; a process renders for one environment only.

        Raises:
            InfraError: the simulator or its renderer is not usable here.
        """
        ...

    def expert(self, env: Env, noise: float = 0.0, seed: int = 0) -> Motion:
        """Return the scripted expert of the environment's task, which reads simulator truth.

        Raises:
            ConfigError: no expert covers this task.
        """
        ...


# --------------------------------------------------------------------------- policy


@dataclass(frozen=True, slots=True)
class ActionChunk:
    """A policy's answer: the next H rows."""

    actions: Array
    """Shape (H, A), in the convention of `PolicySpec.action`."""
    t_obs: float
    """`Proprio.t` of the observation the chunk was inferred from."""
    dispersion: float = float("nan")
    """Spread of several draws in metres; NaN when the policy has no such notion."""


@dataclass(frozen=True, slots=True)
class PolicySpec:
    """What a policy needs and emits."""

    name: str
    action: ActionSpec
    cameras: tuple[CameraSpec, ...]
    replan_steps: int
    """Rows of a chunk that are used before the policy is asked again."""
    horizon: int
    control_hz: float = 20.0
    depth: bool = False
    render_profile: str | None = None
    """The only profile whose pictures this policy accepts; None accepts any."""
    sensing: Sensing = "vision"
    digest: str = ""
    """SHA-256 of the weights, or of whatever fixes the behaviour."""


@runtime_checkable
class Policy(Protocol):
    """A frozen policy. It never learns suite, index or file name."""

    @property
    def spec(self) -> PolicySpec:
        """Return what the policy needs and emits; it never changes."""
        ...

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; every random draw until the next reset comes from `seed`."""
        ...

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows for what is sensed now."""
        ...

    def close(self) -> None:
        """Free everything; calling it again does nothing."""
        ...


# --------------------------------------------------------------------------- critics and motions

Decision: TypeAlias = Literal["pass", "recover", "abort"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one critic says at one tick."""

    decision: Decision
    reason: str = ""
    critic: str = ""
    skill: str | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Where something is believed to be."""

    role: str
    position: Array
    """World frame, metres. Shape (3,)."""
    extent: Array
    """Full size along its own axes, metres. Shape (3,)."""
    yaw: float
    """Rotation of the extent's first axis about world z, radians."""
    confidence: float
    t: float
    level: Sensing


@dataclass(frozen=True, slots=True)
class HeightGrid:
    """The highest surface seen over each cell of the ground, from depth pictures."""

    origin: Array
    """World x and y of the outer corner of cell (0, 0), metres. Shape (2,)."""
    cell: float
    """Side of a cell, metres."""
    heights: Array
    """World z by cell, x first; NaN where nothing was seen. Shape (NX, NY)."""
    t: float


@dataclass(frozen=True, slots=True)
class Look:
    """A motion's request for fresh estimates; it advances no tick in simulation."""

    roles: tuple[str, ...]
    cameras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait(Look):
    """A motion's wish to go on at the next tick: the robot is held at this one."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sense:
    """What a running motion gets back at each yield."""

    proprio: Proprio
    estimates: Mapping[str, Estimate] = field(default_factory=dict)
    heights: HeightGrid | None = None
    """What stood where at the last look; None before the first one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a motion ended."""

    completed: bool
    reason: str = ""


Motion: TypeAlias = Generator[Action | Look, Sense, Outcome]
"""Started without a sense: a motion that needs the present first yields `Look(())`."""


@dataclass(frozen=True, slots=True)
class Continue:
    """The arbiter leaves the present driver in charge."""


@dataclass(frozen=True, slots=True)
class Start:
    """The arbiter hands the robot to a motion."""

    motion: Motion
    source: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HandBack:
    """The arbiter interrupts the running motion and gives the robot back to the policy."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Abort:
    """The arbiter ends the episode."""

    reason: str


Ruling: TypeAlias = Continue | Start | HandBack | Abort


@dataclass(frozen=True, slots=True)
class Tick:
    """One control tick: the one unit of logging, replay and judgement."""

    index: int
    proprio: Proprio
    """As sensed before the action."""
    action: Action
    source: str
    """Who drives: `policy`, `skill:<name>`, `agent:<name>` or `oracle:<name>`."""
    signals: Mapping[str, float] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    held: str = ""
    """Why the loop kept the robot where it was, for `source` had no action yet; else empty."""
    guard: str = ""
    """As `Step.guard` of what came of the action."""


class Arbiter(Protocol):
    """Decides at every tick who drives."""

    def begin(self, scene: Scene) -> None:
        """Forget the last episode; the scene has settled."""
        ...

    def rule(
        self, index: int, proprio: Proprio, signals: Mapping[str, float], driving: str
    ) -> tuple[Ruling, tuple[Verdict, ...]]:
        """Judge the present tick; `driving` is the present source."""
        ...

    def motion_ended(self, source: str, outcome: Outcome) -> None:
        """Hear how a motion ended by itself; one that a ruling interrupts is not reported."""
        ...

    def recoveries(self) -> tuple[Recovery, ...]:
        """Return what skills did so far in this episode."""
        ...


class SignalSource(Protocol):
    """Turns what is known at a tick into named numbers."""

    def begin(self, scene: Scene) -> None:
        """Forget the last episode; the scene has settled."""
        ...

    def update(
        self,
        index: int,
        proprio: Proprio,
        action: Action | None,
        chunk: ActionChunk | None,
        driving: str,
    ) -> Mapping[str, float]:
        """Return the signals of a tick.

        `action` is the last command, `chunk` the pending one, `driving` the present source.
        """
        ...


class Localizer(Protocol):
    """Answers where the things named by roles are."""

    level: Sensing
    cameras: tuple[str, ...]
    """The cameras that it looks through; empty for all."""

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        """Return an estimate for each role that was found."""
        ...

    def heights(self, observation: Observation) -> HeightGrid | None:
        """Return what stands where, or None when `observation` holds no depth."""
        ...


class Window(Protocol):
    """The recent past of every signal, as critics and recovery programs see it.

    Every read may meet NaN: before the episode is that old, and where a signal was missing.
    """

    @property
    def control_hz(self) -> float:
        """Ticks per second."""
        ...

    def last(self, name: str, ticks: int) -> Array:
        """Return the latest `ticks` values of a signal, oldest first. Shape (ticks,).

        The array is a view that the next tick overwrites.

        Raises:
            KeyError: this episode has no such signal.
        """
        ...

    def valid_for(self, name: str) -> int:
        """Return how many of the latest values are finite in a row, up to what is kept."""
        ...


class Monitor(Protocol):
    """Runs all critics of a bundle at each tick."""

    def begin(self) -> None:
        """Forget the last episode."""
        ...

    def judge(self, window: Window, driving: str) -> tuple[Verdict, ...]:
        """Return what is not `pass`, in bundle order; `driving` is the present source.

        Called once for each tick, after its signals have entered `window`.
        """
        ...


class Skill(Protocol):
    """One recovery: when it may start, what it does, when the policy may go on."""

    @property
    def name(self) -> str:
        """Name, as verdicts and sources give it."""
        ...

    @property
    def max_ticks(self) -> int:
        """The recovery is interrupted after so many ticks."""
        ...

    def precondition(self, window: Window) -> bool:
        """Say whether it may start now."""
        ...

    def recover(self, window: Window) -> Motion:
        """Return the motion; `window` stays live while it runs."""
        ...

    def reentry(self, window: Window) -> bool:
        """Say whether the policy may go on from here."""
        ...


class Clock(Protocol):
    """Time for pacing: monotonic in reality, free-running in simulation."""

    def now(self) -> float:
        """Return seconds since an arbitrary start."""
        ...

    def sleep_until(self, t: float) -> bool:
        """Wait for `t`; return False when `t` had already passed (a late tick)."""
        ...


# --------------------------------------------------------------------------- deployed things


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is deployed beside the policy: immutable and named by its hash."""

    critics: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    parent: str | None = None
    digest: str = "none"


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A serialisable description of one episode; `zetta.runtime.cli.assemble` builds it."""

    sim: str
    suite: str
    task: int
    layout: Layout
    seed: int = 0
    policy: str = "zetta/tiny"
    policy_seed: int = 0
    bundle: str = "none"
    sensing: Sensing = "vision"
    render: str = "fast"
    options: Mapping[str, str] = field(default_factory=dict)


class EpisodeSink(Protocol):
    """Receives an episode as it happens."""

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Start; `step` is the settled scene."""
        ...

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Take one tick, the `step` its action led to, and the pose before the action."""
        ...

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Finish, also after an error; `pose` is the last moment."""
        ...


@dataclass(frozen=True, slots=True)
class Recovery:
    """One time that a skill had the robot, or in shadow mode would have been given it."""

    skill: str
    critic: str
    reason: str
    """What the critic said."""
    tick: int
    """The first tick that was its own."""
    ticks: int = 0
    completed: bool = False
    """It ended by itself and the re-entry condition held."""
    ending: str = ""
    """How it ended: its own words, or what interrupted it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The tick at which critics ended the episode: it was judged, and nobody acted."""

    index: int
    signals: Mapping[str, float]
    verdicts: tuple[Verdict, ...]


EndReason: TypeAlias = Literal["success", "truncated", "terminated", "abort", "error"]


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """What one episode came to."""

    scene: Scene
    success: bool
    """The goal held at some tick (the published protocol stops there)."""
    reason: EndReason
    ticks: int
    sources: Mapping[str, int]
    """Ticks driven by each source."""
    interventions: int
    wall_s: float
    success_at_reset: bool = False
    success_at_end: bool = False
    """The goal held at the last tick, which differs where an episode goes on after its success."""
    first_success: int | None = None
    """Ticks after which the goal held for the first time; None where it never did."""
    late_ticks: int = 0
    held_ticks: int = 0
    """Ticks at which the robot was held because whoever drives had no action yet."""
    inferences: int = 0
    scene_digest: str = ""
    detail: str = ""
    recoveries: tuple[Recovery, ...] = ()
    """What skills did, in order."""
    stop: Stop | None = None
    """Where critics aborted; this tick is no row of the log, for it has no action."""
