"""Serve a trained tiny policy with ONNX Runtime and numpy.

At temperature 0 the network attends softly, as it was trained: no chance is involved. Above 0 a
cell of the scene camera's focus heat map is drawn, and attention keeps to its neighbourhood, so
that a policy in doubt between two things goes for one of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnxruntime
from scipy.spatial.transform import Rotation

from zetta.runtime.core import (
    ActionChunk,
    ActionSpec,
    Array,
    CameraSpec,
    Observation,
    PolicySpec,
)
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.graphs import open_graph
from zetta.runtime.policies.tiny.gripper import CLOSE, OPEN, Gripper, GripperState
from zetta.runtime.policies.tiny.inputs import (
    CAMERAS,
    PICTURE,
    Float32,
    network_inputs,
    proprio_vector,
)
from zetta.runtime.policies.tiny.manifest import (
    ACT,
    LOOK,
    Manifest,
    check_files,
    read_manifest,
)
from zetta.runtime.policies.tiny.text import encode
from zetta.runtime.snapshots import generator_from, generator_text

VARIANTS: Final[Mapping[str, str]] = {"zetta/tiny": "tiny", "zetta/tiny-shuffled": "tiny-shuffled"}
"""Folder below `weights/` by the name of a policy."""
FOLDER_SCHEME: Final = "tiny:"
"""Prefix of a policy name that gives the folder of an exported policy."""
WEIGHTS_FOLDER: Final = Path(__file__).parent / "weights"
REACH_M: Final = 3.0
"""Bound of a target coordinate: no arm that this policy knows reaches farther."""
FOCUS: Final = 0
"""Index of the role that is drawn."""

ACTION: Final = ActionSpec(
    kind="target_pose",
    names=("x", "y", "z", "rx", "ry", "rz", "gripper"),
    low=(-REACH_M,) * 3 + (-np.pi,) * 3 + (-1.0,),
    high=(REACH_M,) * 3 + (np.pi,) * 3 + (1.0,),
    scale=(1.0,) * 7,
    gripper_open=OPEN,
    gripper_close=CLOSE,
)


def load(name: str) -> TinyPolicy:
    """Load `zetta/tiny`, `zetta/tiny-shuffled` or `tiny:FOLDER`, with `@T=1` for a temperature.

    Raises:
        ConfigError: unknown name, bad temperature, or weights that are missing or damaged.
    """
    base, at, options = name.partition("@")
    temperature = _temperature(name, options) if at else 0.0
    if base.startswith(FOLDER_SCHEME):
        return load_from(Path(base.removeprefix(FOLDER_SCHEME)), name, temperature)
    if base not in VARIANTS:
        raise ConfigError(f"unknown policy {base!r}; {suggest(base, VARIANTS)}")
    return load_from(WEIGHTS_FOLDER / VARIANTS[base], name, temperature)


def load_from(folder: Path, name: str = "", temperature: float = 0.0) -> TinyPolicy:
    """Load a policy from the folder that `export` wrote.

    Raises:
        ConfigError: files are missing, damaged, or of another version.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    graphs = [open_graph(folder / file, "get the weights again") for file in (LOOK, ACT)]
    policy = TinyPolicy(name or f"tiny:{folder}", manifest, graphs[0], graphs[1])
    policy.set_temperature(temperature)
    return policy


@dataclass(frozen=True, slots=True)
class TinyState:
    """What the policy remembers."""

    lang: Float32 | None
    """The encoded instruction; None before the first reset."""
    acting: str
    asking: str
    """The two generators."""
    gripper: GripperState


class TinyPolicy:
    """A frozen visuomotor policy: two cameras, proprioception and an instruction in, a path out."""

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        look: onnxruntime.InferenceSession,
        act: onnxruntime.InferenceSession,
    ) -> None:
        self._manifest, self._look, self._act = manifest, look, act
        self._temperature = 0.0
        self._lang: Float32 | None = None
        execution = manifest.execution
        self._around = Neighbourhood(manifest.grids[0], execution.sigma_cells)
        self._spec = PolicySpec(
            name=name,
            action=ACTION,
            cameras=tuple(
                CameraSpec(c, PICTURE, PICTURE, "wrist" if c == "wrist" else "world")
                for c in CAMERAS
            ),
            replan_steps=execution.replan_steps,
            horizon=manifest.horizon - execution.lead,
            control_hz=manifest.control_hz,
            render_profile=manifest.render_profile,
            sensing="vision",
            digest=_digest(manifest),
        )

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        return self._spec

    def set_temperature(self, temperature: float) -> None:
        """Scale the spread of the draws; 0 attends softly and is deterministic.

        Raises:
            ConfigError: it is negative or not finite.
        """
        if not (np.isfinite(temperature) and temperature >= 0):
            raise ConfigError(
                f"the temperature is {temperature}; expected 0 or more, for example 1"
            )
        self._temperature = temperature

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; every draw until the next reset comes from `seed`.

        Raises:
            ConfigError: the instruction names nothing.
        """
        self._lang = encode(instruction)
        self.reseed(seed)
        self._gripper = Gripper(self._manifest.execution, self._manifest.phases)

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows.

        Raises:
            SpecMismatch: there was no reset, or a picture is missing or of another size.
        """
        if self._lang is None:
            raise SpecMismatch("the policy was asked before it was given an instruction; reset it")
        arm = observation.proprio.arms[0]
        pixels = network_inputs(observation)
        inputs: dict[str, npt.NDArray[np.generic]] = {
            "agent": pixels.agent,
            "wrist": pixels.wrist,
            "proprio": proprio_vector(arm),
            "lang": self._lang,
        }
        seen = run(self._look, inputs)
        seen |= self._attention(seen["heat_a"], seen["heat_w"])
        said = run(self._act, seen)
        closing = self._gripper.commands(
            said["close"][0], arm.ee_pos, int(said["phase"][0].argmax())
        )
        actions = target_rows(
            said["path"][0], said["rot"][0], closing, arm.ee_pos, arm.ee_quat, self._spec.horizon
        )
        return ActionChunk(actions, observation.proprio.t, _spread(said["points"][1:, FOCUS]))

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; all else stays."""
        # Two streams: measuring the dispersion must not change what is done.
        self._acting, self._asking = (np.random.default_rng([seed, k]) for k in range(2))

    def state(self) -> TinyState:
        """Return all that is remembered."""
        if self._lang is None:
            return TinyState(None, "", "", GripperState())
        streams = generator_text(self._acting), generator_text(self._asking)
        return TinyState(self._lang, *streams, self._gripper.memory)

    def restore(self, state: TinyState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generators.
        """
        self._lang = state.lang
        if state.lang is None:
            return
        self._acting, self._asking = generator_from(state.acting), generator_from(state.asking)
        self._gripper = Gripper(self._manifest.execution, self._manifest.phases)
        self._gripper.memory = state.gripper

    def begin(self, instruction: str, seed: int) -> TinyPolicy:
        """Return what remembers a new episode, on the same graphs.

        Raises:
            ConfigError: the instruction names nothing.
        """
        episode = TinyPolicy(self._spec.name, self._manifest, self._look, self._act)
        episode.set_temperature(self._temperature)
        episode.reset(instruction, seed)
        return episode

    def infer_batch(
        self, episodes: Sequence[TinyPolicy], observations: Sequence[Observation], rows: int
    ) -> list[ActionChunk]:
        """Return a chunk for each episode.

        One by one: `look.onnx` takes a single observation. Sessions share the weights, not time.

        Raises:
            SpecMismatch: a picture is missing or of another size.
        """
        pairs = zip(episodes, observations, strict=True)
        return [episode.infer(observation) for episode, observation in pairs]

    def close(self) -> None:
        """Nothing is held."""

    def _attention(self, heat_a: Float32, heat_w: Float32) -> dict[str, Float32]:
        """Return attention for the action and then for each draw. Shapes (1 + D, 2, cells).

        Only the scene camera's focus is drawn: it decides between places. The wrist camera sees
        one place; drawing there too made single draws worse and told wrong places no better.
        """
        draws = self._manifest.execution.draws
        plain, focus = softmax(heat_a), heat_a[FOCUS]
        agent = np.repeat(plain[None], 1 + draws, axis=0)
        agent[1:, FOCUS] = self._around.draw(plain[FOCUS], focus, draws, 1.0, self._asking)
        if self._temperature > 0:
            agent[:1, FOCUS] = self._around.draw(
                plain[FOCUS], focus, 1, self._temperature, self._acting
            )
        wrist = np.repeat(softmax(heat_w)[None], 1 + draws, axis=0)
        return {"attention_a": agent, "attention_w": wrist}


class Neighbourhood:
    """Draws cells of a heat map and keeps attention around them."""

    def __init__(self, grid: tuple[int, int], sigma_cells: float) -> None:
        self._columns = grid[1]
        # A Gaussian in two dimensions is the product of two in one.
        self._down, self._across = (_gaussians(n, sigma_cells) for n in grid)

    def draw(
        self,
        plain: Float32,
        heat: Float32,
        count: int,
        temperature: float,
        rng: np.random.Generator,
    ) -> Float32:
        """Return attention around drawn cells.

        Args:
            plain: soft attention. Shape (cells,).
            heat: its logits. Shape (cells,).
            count: draws (D).
            temperature: of the draws, above 0.
            rng: gives one number to each draw.

        Returns:
            Weights that add up to 1. Shape (D, cells).
        """
        chances = np.cumsum(softmax(heat / temperature), dtype=np.float64)
        chosen = np.searchsorted(chances, rng.random(count) * chances[-1])
        row, column = np.divmod(np.minimum(chosen, len(plain) - 1), self._columns)
        near = (self._down[row][:, :, None] * self._across[column][:, None]).reshape(count, -1)
        # The floor lets a cell be drawn whose neighbours all round to nothing.
        kept = np.maximum(plain, 1e-9) * near
        return np.asarray(kept / kept.sum(-1, keepdims=True), dtype=np.float32)


def target_rows(
    path: Float32, rot: Float32, gripper: Array, ee_pos: Array, ee_quat: Array, count: int
) -> Array:
    """Turn a relative path into absolute targets that run ahead of it.

    Args:
        path: displacement at each future tick, metres. Shape (H, 3).
        rot: rotation vector from now to then, world, radians. Shape (H, 3).
        gripper: command of each row. Shape (H,).
        ee_pos: position now. Shape (3,).
        ee_quat: orientation now, xyzw. Shape (4,).
        count: rows wanted; the first `H - count` ticks of the path are the lead.
    """
    lead = len(path) - count
    place = np.clip(ee_pos + path[lead:].astype(np.float64), -REACH_M, REACH_M)
    turn = Rotation.from_rotvec(rot[lead:].astype(np.float64)) * Rotation.from_quat(ee_quat)
    rows = np.concatenate([place, turn.as_rotvec(), gripper[:count, None]], axis=1)
    return np.asarray(rows, dtype=np.float64)  # (count, 7)


def softmax(logits: Float32) -> Float32:
    """Return the softmax over the last axis."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(-1, keepdims=True), dtype=np.float32)


def _spread(points: Float32) -> float:
    """Return the root mean square distance of points from their mean, metres."""
    return float(np.sqrt(((points - points.mean(0)) ** 2).sum(-1).mean()))


def _gaussians(count: int, sigma: float) -> Float32:
    """Return a Gaussian around each of `count` places. Shape (count, count)."""
    away = np.arange(count)[:, None] - np.arange(count)[None]
    return np.exp(-(away**2) / (2 * sigma**2)).astype(np.float32)


def _temperature(name: str, options: str) -> float:
    key, _, value = options.partition("=")
    try:
        if key != "T":
            raise ValueError(key)
        return float(value)
    except ValueError:
        raise ConfigError(
            f"the policy {name!r} has the option {options!r}; expected a temperature, "
            f"for example {name.partition('@')[0]}@T=1"
        ) from None


def _digest(manifest: Manifest) -> str:
    """Return what fixes the behaviour: the graphs and how chunks are executed."""
    files = [manifest.files[LOOK], manifest.files[ACT]]
    text = json.dumps([files, asdict(manifest.execution)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def run(
    session: onnxruntime.InferenceSession, values: Mapping[str, npt.NDArray[np.generic]]
) -> dict[str, Float32]:
    """Run a graph on those of `values` that it takes; return its outputs by name."""
    names = [output.name for output in session.get_outputs()]
    wanted = {i.name: values[i.name] for i in session.get_inputs()}
    return dict(zip(names, session.run(names, wanted), strict=True))
