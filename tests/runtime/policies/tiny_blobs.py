"""A world for the tiny policy's tests: coloured blobs on a table, and a hand that goes to one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from zetta.runtime.core import ArmState, Observation, Proprio
from zetta.runtime.policies.tiny.data import (
    HORIZON,
    Sample,
    Samples,
    ShardHeader,
    write_shard,
)
from zetta.runtime.policies.tiny.inputs import (
    CAMERAS,
    PICTURE,
    inside_px,
    network_inputs,
    network_px,
    proprio_vector,
)

COLOURS = {"red": (220, 40, 40), "green": (40, 190, 60), "blue": (50, 70, 230)}
PHASES = ("approach", "descend", "close")
TABLE_PX_PER_M, WRIST_PX_PER_M = 300.0, 700.0
BASKET = np.array([0.12, 0.1, 0.06])
SPEED = 0.012


def instruction(colour: str) -> str:
    return f"pick up the {colour} block and place it in the basket"


def scene(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the blobs' places and the hand's."""
    while True:
        places = rng.uniform(-0.18, 0.18, (len(COLOURS), 2))
        gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(len(places))
        if gaps.min() > 0.09:
            break
    blobs = {c: np.r_[p, 0.03] for c, p in zip(COLOURS, places, strict=True)}
    target = blobs[rng.choice(list(blobs))]
    hand = target + np.r_[rng.uniform(-0.1, 0.1, 2), rng.uniform(0.02, 0.15)]
    return blobs, hand


def table_uv(point: np.ndarray) -> np.ndarray:
    return 128.0 + TABLE_PX_PER_M * point[:2]


def wrist_uv(point: np.ndarray, hand: np.ndarray) -> np.ndarray:
    return 128.0 + WRIST_PX_PER_M * (point - hand)[:2]


def observation(blobs: dict[str, np.ndarray], hand: np.ndarray, text: str = "") -> Observation:
    table = np.full((PICTURE, PICTURE, 3), (150, 130, 110), np.uint8)
    wrist = np.full((PICTURE, PICTURE, 3), (150, 130, 110), np.uint8)
    for colour, place in blobs.items():
        _disc(table, table_uv(place), 12, COLOURS[colour])
        _disc(wrist, wrist_uv(place, hand), 28, COLOURS[colour])
    _disc(table, table_uv(hand), 6, (240, 240, 240))
    return Observation(
        Proprio(0.0, (arm(hand),)), text, images={"agentview": table, "wrist": wrist}
    )


def arm(hand: np.ndarray) -> ArmState:
    return ArmState(hand, np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(7), 0.08)


def write(folder: Path, frames: int, seed: int = 0) -> Path:
    """Write a shard in which every frame is labelled for every blob."""
    rng = np.random.default_rng(seed)
    agent, wrist, rows = [], [], []
    for frame in range(frames):
        blobs, hand = scene(rng)
        seen = observation(blobs, hand)
        pixels = network_inputs(seen)
        agent.append(pixels.agent)
        wrist.append(pixels.wrist)
        rows += [_sample(frame, i, c, blobs, hand) for i, c in enumerate(COLOURS)]
    header = ShardHeader(
        instructions=tuple(instruction(c) for c in COLOURS),
        phases=PHASES,
        render_profile="blobs",
        control_hz=20.0,
        source="blobs",
        key=f"blobs-{frames}-{seed}",
    )
    return write_shard(folder, header, agent, wrist, Samples.of(rows))


def _sample(
    frame: int, index: int, colour: str, blobs: dict[str, np.ndarray], hand: np.ndarray
) -> Sample:
    goal = blobs[colour]
    uv = [
        [table_uv(goal), table_uv(BASKET)],
        [wrist_uv(goal, hand), wrist_uv(BASKET, hand)],
    ]
    px = np.stack([network_px(c, np.stack(p)) for c, p in zip(CAMERAS, uv, strict=True)])
    visible = np.stack([inside_px(c, p) for c, p in zip(CAMERAS, px, strict=True)])
    visible[:, 1] = False  # the basket is not drawn
    way = goal - hand
    distance = float(np.linalg.norm(way))
    gone = np.minimum(SPEED * np.arange(1, HORIZON + 1), distance)
    return Sample(
        frame=frame,
        instruction=index,
        proprio=proprio_vector(arm(hand)),
        path=(gone[:, None] * way / distance).astype(np.float32),
        rot=np.zeros((HORIZON, 3), np.float32),
        close=(gone >= distance).astype(np.float32),
        mask=np.ones(HORIZON, np.float32),
        focus=way.astype(np.float32),
        dest=(BASKET - hand).astype(np.float32),
        px=px,
        visible=visible.astype(np.uint8),
        phase=int(np.searchsorted([0.03, 0.08], distance)[()] * -1 + 2),
        weight=1.0,
        episode=frame,
    )


def _disc(picture: np.ndarray, centre: np.ndarray, radius: float, colour: tuple[int, ...]) -> None:
    low = np.clip(np.floor(centre - radius).astype(int), 0, PICTURE)
    high = np.clip(np.ceil(centre + radius).astype(int) + 1, 0, PICTURE)
    u, v = (np.arange(a, b) + 0.5 for a, b in zip(low, high, strict=True))
    part = picture[low[1] : high[1], low[0] : high[0]]
    part[(u[None] - centre[0]) ** 2 + (v[:, None] - centre[1]) ** 2 < radius**2] = colour
