"""Draw recordings into training shards for the embedded policy.

Pictures are drawn from the stored poses with the render profile that the policy is bound to; a
shard can always be made again from its recording and is never committed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from zetta.runtime.core import ArmState, Array, Camera, Image
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.tiny.data import (
    HORIZON,
    ROLES,
    Future,
    Sample,
    Samples,
    ShardHeader,
    UInt8,
    future,
    read_shard,
    write_shard,
)
from zetta.runtime.policies.tiny.inputs import (
    CAMERAS,
    Float32,
    inside_px,
    network_inputs,
    network_px,
    proprio_vector,
)
from zetta.sims.libero.collect import SCAN
from zetta.sims.libero.demonstrations import FRAME_EVERY, Recording, read
from zetta.sims.libero.env import CONTROL_HZ, LiberoEnv
from zetta.sims.libero.expert_motions import PHASES
from zetta.sims.libero.kinematics import reach
from zetta.sims.libero.scans import Scan, read_scans

_VERSION = "shard-2"
CORRECTION_WEIGHT = 2.0
"""Importance of a sample that shows the way out of the policy's own mistake."""


def render_shard(recordings: Path, out: Path, profile: str = "fast", weight: float = 1.0) -> Path:
    """Draw every recording of one task's file into a shard; a current shard is kept.

    Args:
        recordings: file of `demonstrations.save`, all of one task.
        out: folder of the shard.
        profile: render profile.
        weight: importance of each sample in training.

    Raises:
        ConfigError: the file is empty or mixes tasks.
    """
    recipe = f"{_VERSION}:{profile}:{weight}:"
    key = hashlib.sha256(recipe.encode() + recordings.read_bytes()).hexdigest()
    if (out / "shard.json").exists() and read_shard(out).header.key == key:
        return out
    made = list(read(recordings))
    tasks = {(r.spec.suite, r.spec.task) for r in made}
    if len(tasks) != 1:
        raise ConfigError(f"{recordings} holds recordings of {len(tasks)} tasks, expected one")
    env = LiberoEnv(*tasks.pop(), render=profile)
    try:
        header, agent, wrist, rows = _draw(env, made, key, weight)
    finally:
        env.close()
    return write_shard(out, header, agent, wrist, Samples.of(rows))


def render_scan_shard(scans: Path, out: Path, profile: str = "fast") -> Path:
    """Draw every scan of one task's file into a shard; a current shard is kept.

    Raises:
        ConfigError: the file is empty or mixes tasks.
    """
    key = hashlib.sha256(f"{_VERSION}:{profile}:".encode() + scans.read_bytes()).hexdigest()
    if (out / "shard.json").exists() and read_shard(out).header.key == key:
        return out
    made = list(read_scans(scans))
    tasks = {(s.suite, s.task) for s in made}
    if len(tasks) != 1:
        raise ConfigError(f"{scans} holds scans of {len(tasks)} tasks, expected one")
    env = LiberoEnv(*tasks.pop(), render=profile)
    try:
        header, agent, wrist, rows = _draw_scans(env, made, key)
    finally:
        env.close()
    return write_shard(out, header, agent, wrist, Samples.of(rows))


def _draw_scans(
    env: LiberoEnv, made: Sequence[Scan], key: str
) -> tuple[ShardHeader, list[Image], list[Image], list[Sample]]:
    agent: list[Image] = []
    wrist: list[Image] = []
    rows: list[Sample] = []
    instructions = sorted({i for s in made for i in s.instructions})
    for episode, seen in enumerate(made):
        for index, pose in enumerate(seen.poses):
            env.show(pose.astype(np.float64))
            observation = env.observe(CAMERAS)
            pixels = network_inputs(observation)
            cameras = [observation.cameras[c] for c in CAMERAS]
            for thing, instruction in enumerate(seen.instructions):
                spoken = instructions.index(instruction)
                rows.append(_scan_sample(seen, index, thing, len(agent), spoken, cameras, episode))
            agent.append(pixels.agent)
            wrist.append(pixels.wrist)
    header = _header(env, instructions, f"{len(made)} scans", key)
    return header, agent, wrist, rows


def _scan_sample(
    seen: Scan,
    index: int,
    thing: int,
    frame: int,
    instruction: int,
    cameras: Sequence[Camera],
    episode: int,
) -> Sample:
    felt = seen.proprio[index].astype(np.float64)
    grasp = seen.grasp[index, thing].astype(np.float64)
    points = np.stack([grasp, seen.destination[index, thing].astype(np.float64)])
    px, visible = project(points, cameras)
    way = reach(felt[:3], seen.hand[index], grasp, seen.facing[index, thing])
    return Sample(
        frame=frame,
        instruction=instruction,
        proprio=_proprio(felt),
        path=way.labels.path,
        rot=way.labels.rot,
        close=way.labels.close,
        mask=way.labels.mask,
        focus=(points[0] - felt[:3]).astype(np.float32),
        dest=(points[1] - felt[:3]).astype(np.float32),
        px=px,
        visible=visible,
        phase=PHASES.index(way.phase),
        weight=1.0,
        episode=episode,
    )


def _proprio(felt: Array) -> Float32:
    arm = ArmState(felt[:3], felt[3:7], np.zeros(7), float(felt[7]), float(felt[8]))
    return proprio_vector(arm)


def _header(env: LiberoEnv, instructions: Sequence[str], what: str, key: str) -> ShardHeader:
    return ShardHeader(
        instructions=tuple(instructions),
        phases=PHASES,
        render_profile=env.spec.render_profile,
        control_hz=CONTROL_HZ,
        source=f"{env.task.suite}#{env.task.index}: {what}",
        key=key,
    )


def _draw(
    env: LiberoEnv, made: Sequence[Recording], key: str, weight: float
) -> tuple[ShardHeader, list[Image], list[Image], list[Sample]]:
    agent: list[Image] = []
    wrist: list[Image] = []
    rows: list[Sample] = []
    instructions = sorted({r.instruction for r in made})
    for episode, recording in enumerate(made):
        for index, pose in enumerate(recording.poses):
            tick = index * FRAME_EVERY
            if not recording.labelled[tick]:
                continue
            env.show(pose.astype(np.float64))
            observation = env.observe(CAMERAS)
            pixels = network_inputs(observation)
            rows.append(
                _sample(
                    recording,
                    tick,
                    frame=len(agent),
                    instruction=instructions.index(recording.instruction),
                    cameras=[observation.cameras[c] for c in CAMERAS],
                    episode=episode,
                    weight=weight,
                )
            )
            agent.append(pixels.agent)
            wrist.append(pixels.wrist)
    header = _header(env, instructions, f"{len(made)} recordings", key)
    return header, agent, wrist, rows


def _sample(
    recording: Recording,
    tick: int,
    frame: int,
    instruction: int,
    cameras: Sequence[Camera],
    episode: int,
    weight: float,
) -> Sample:
    felt = recording.proprio[tick].astype(np.float64)
    points = np.stack([recording.focus[tick], recording.destination[tick]]).astype(np.float64)
    px, visible = project(points, cameras)
    way = labels(recording, tick)
    return Sample(
        frame=frame,
        instruction=instruction,
        proprio=_proprio(felt),
        path=way.path,
        rot=way.rot,
        close=way.close,
        mask=way.mask,
        focus=(points[0] - felt[:3]).astype(np.float32),
        dest=(points[1] - felt[:3]).astype(np.float32),
        px=px,
        visible=visible,
        phase=PHASES.index(recording.phase[tick]),
        weight=weight,
        episode=episode,
    )


def labels(recording: Recording, tick: int) -> Future:
    """Return what the expert did from `tick` on, masked where noise was added."""
    felt = recording.proprio
    closed = (recording.closing + 1.0) / 2.0  # -1 open, +1 closed
    seen = future(felt[:, :3], felt[:, 3:7], closed, tick)
    # From the first disturbed tick on, the path is not the expert's.
    ahead = np.flatnonzero(recording.disturbed[tick : tick + HORIZON])
    calm = int(ahead[0]) if len(ahead) else HORIZON
    return replace(seen, mask=seen.mask * (np.arange(HORIZON) < calm).astype(np.float32))


def project(points: Array, cameras: Sequence[Camera]) -> tuple[Float32, UInt8]:
    """Project world points into the network's pictures.

    Args:
        points: shape (2, 3): focus and destination; NaN for none.
        cameras: calibrations in the order of `inputs.CAMERAS`.

    Returns:
        Pixels of shape (2 cameras, 2 roles, 2) and their visibility of shape (2, 2).
    """
    px = np.full((len(CAMERAS), len(ROLES), 2), np.nan, np.float32)
    visible = np.zeros((len(CAMERAS), len(ROLES)), np.uint8)
    for c, (name, camera) in enumerate(zip(CAMERAS, cameras, strict=True)):
        T = camera.T_world_cam
        local = (points - T[:3, 3]) @ T[:3, :3]
        with np.errstate(invalid="ignore", divide="ignore"):
            image = local @ camera.intrinsics.T
            uv = image[:, :2] / image[:, 2:]
            front = local[:, 2] > 0.02
        px[c] = network_px(name, uv)
        visible[c] = front & inside_px(name, px[c])
    return px, visible


def main(arguments: Sequence[str]) -> None:
    """Run as `python -m zetta.sims.libero.shards FILE OUT`; the name of FILE tells its kind."""
    if len(arguments) != 2:
        raise ConfigError("usage: python -m zetta.sims.libero.shards FILE.npz OUT_FOLDER")
    source, out = Path(arguments[0]), Path(arguments[1])
    if source.name.startswith(SCAN):
        render_scan_shard(source, out)
    else:
        corrects = "correction" in source.name
        render_shard(source, out, weight=CORRECTION_WEIGHT if corrects else 1.0)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
