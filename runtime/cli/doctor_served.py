"""`zetta doctor policy zmq://…`: what a policy of `zetta serve` needs, and whether it answers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Final

import numpy as np

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.core import (
    ArmState,
    Array,
    Camera,
    Observation,
    Policy,
    PolicySpec,
    Proprio,
    read_only,
)

INSTRUCTION: Final = "pick up the red cube and place it on the plate"
CALLS: Final = 5
"""Answers that the latency is taken from, the first one apart."""
RESTING: Final = ArmState(
    ee_pos=read_only([0.0, 0.0, 1.0]),
    ee_quat=read_only([1.0, 0.0, 0.0, 0.0]),
    joint_pos=read_only(np.zeros(7)),
    gripper_opening=0.08,
)
"""A hand that points down and is open; nobody moves."""

LOOKS_DOWN: Final = np.diag([1.0, -1.0, -1.0, 1.0])
"""Pose of every camera: at the origin of the world, optical axis down."""


def served_report(url: str) -> dict[str, output.Json]:
    """Ask a served policy about a made-up scene.

    Raises:
        ZettaError: it cannot be reached, refuses, or answers what is no chunk.
    """
    policy = registry.policy(url)
    try:
        spec = policy.spec
        policy.reset(INSTRUCTION, 0)
        first, rest = _timed(policy, spec), [_timed(policy, spec) for _ in range(CALLS)]
    finally:
        policy.close()
    action = spec.action
    return {
        "policy": url,
        "reachable": True,
        "fits": True,
        "name": spec.name,
        "digest": spec.digest,
        "sensing": spec.sensing,
        "render_profile": spec.render_profile,
        "cameras": {c.name: [c.height, c.width, 3] for c in spec.cameras},
        "depth": spec.depth,
        "action": {"kind": action.kind, "names": list(action.names), "scale": list(action.scale)},
        "horizon": spec.horizon,
        "replan_steps": spec.replan_steps,
        "control_hz": spec.control_hz,
        "first_ms": round(1000.0 * first, 3),
        "median_ms": round(1000.0 * statistics.median(rest), 3),
    }


def served_lines(report: Mapping[str, output.Json]) -> list[str]:
    """Return a report as lines for people."""
    action = report["action"]
    assert isinstance(action, dict)
    cameras = report["cameras"]
    assert isinstance(cameras, dict)
    seen = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in cameras.items())
    return [
        f"{report['policy']} serves {report['name']} ({str(report['digest'])[:12] or 'no digest'})",
        f"it sees: {seen or 'no pictures'}; level {report['sensing']}; render profile "
        f"{report['render_profile'] or 'any'}",
        f"it emits: {action['kind']} {' '.join(map(str, action['names']))}; {report['horizon']} "
        f"rows, {report['replan_steps']} used, at {report['control_hz']:g} Hz",
        f"latency: first {report['first_ms']} ms, then {report['median_ms']} ms",
        "ok  it answers; our own protocol declares its conventions, so nothing is guessed",
    ]


def _timed(policy: Policy, spec: PolicySpec) -> float:
    start = time.perf_counter()
    policy.infer(_made_up(spec))
    return time.perf_counter() - start


def _made_up(spec: PolicySpec) -> Observation:
    """Return grey pictures of the right sizes, seen by a resting arm."""
    grey = {c.name: read_only(np.full((c.height, c.width, 3), 128), np.uint8) for c in spec.cameras}
    depth = {
        c.name: read_only(np.ones((c.height, c.width)), np.float32)
        for c in spec.cameras
        if spec.depth
    }
    cameras = {
        c.name: Camera(c.name, read_only(_pinhole(c.height, c.width)), read_only(LOOKS_DOWN))
        for c in spec.cameras
    }
    return Observation(Proprio(0.0, (RESTING,)), INSTRUCTION, grey, depth, cameras)


def _pinhole(height: int, width: int) -> Array:
    """Return the matrix of a camera that sees as far up as to the side. Shape (3, 3)."""
    return np.array([[width, 0.0, width / 2], [0.0, width, height / 2], [0.0, 0.0, 1.0]])
