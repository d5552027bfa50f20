"""Logs of a toy whose arm sweeps, with a skill in between, and videos as pictures."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np

from tests.runtime.scripted_parts import HORIZON, ScriptedArbiter, ScriptedPolicy
from zetta.runtime.core import Array, Image, Init, Motion, Outcome, Scene, Start
from zetta.runtime.episode_log import EpisodeLog, LoggedEpisode, RunFacts, read_episode
from zetta.runtime.export.features import TickColumns, whole_state
from zetta.runtime.export.films import Film
from zetta.runtime.loop import Episode
from zetta.sims.toy import ToySimulator

FACTS = RunFacts("scripted", bundle="mine", render="fast", versions={"toy": "1"})
SKILL_AT, SKILL_TICKS = 8, 5


class Sweeping(ScriptedPolicy):
    """Moves the hand along y, so that each picture differs from the next."""

    def rows(self, chunk: int) -> Array:
        rows = np.zeros((HORIZON, 7))
        rows[:, 1] = 0.9 if chunk % 12 < 6 else -0.9
        rows[:, 6] = 1.0 if chunk % 2 else -1.0
        return rows


def lift() -> Motion:
    """Raise the hand."""
    for _ in range(SKILL_TICKS):
        yield np.array([0.0, 0.0, 0.7, 0.0, 0.0, 0.0, -1.0])
    return Outcome(True)


def log(
    folder: Path,
    init: int = 0,
    ticks: int = 24,
    task: int = 0,
    suite: str = "toy_pick",
    skills: tuple[int, ...] = (SKILL_AT,),
    facts: RunFacts = FACTS,
) -> LoggedEpisode:
    """Log an episode of `ticks` ticks; a skill begins at each of `skills`."""
    simulator = ToySimulator()
    asked = replace(simulator.task(suite, task), max_steps=ticks)
    rulings = {at: Start(lift(), "skill:lift") for at in skills}
    sinks = [EpisodeLog(folder, "toy", facts)]
    env = simulator.make(suite, task)
    scene = Scene(asked, Init(init))
    Episode(env, scene, ScriptedArbiter(rulings), Sweeping(), sinks=sinks).run()
    return read_episode(folder)


def logs(run: Path, count: int = 3) -> list[LoggedEpisode]:
    """Log `count` episodes of different lengths below `run`."""
    return [
        log(run / "episodes" / f"{k:03d}", init=k, ticks=20 + 3 * k, skills=(SKILL_AT + k,))
        for k in range(count)
    ]


def columns_of(episode: LoggedEpisode, selection: object) -> TickColumns:
    """Return what makes columns of the whole state of an episode."""
    return TickColumns(selection, whole_state(episode.ticks[0].proprio))  # type: ignore[arg-type]


def pictures_of(path: Path) -> list[Image]:
    """Decode a video. Each of shape (height, width, 3)."""
    program = imageio_ffmpeg.get_ffmpeg_exe()
    command = [program, "-v", "error", "-i", str(path), "-f", "image2pipe", "-c:v", "ppm", "-"]
    stream = subprocess.run(command, capture_output=True, check=True).stdout
    images, at = [], 0
    while at < len(stream):
        kind, size, most, _ = stream[at : at + 64].split(b"\n", 3)
        assert (kind, most) == (b"P6", b"255")
        width, height = map(int, size.split())
        at += len(kind) + len(size) + len(most) + 3
        end = at + 3 * width * height
        images.append(np.frombuffer(stream[at:end], np.uint8).reshape(height, width, 3))
        at = end
    return images


def film_of(path: Path, images: list[Image], fps: float = 20.0) -> None:
    """Write a video."""
    made = Film(path, fps)
    try:
        for image in images:
            made.add(image)
    finally:
        made.close()


def psnr(one: Image, other: Image) -> float:
    """Return the peak signal-to-noise ratio of two pictures in dB."""
    error = float(np.mean((one.astype(float) - other.astype(float)) ** 2))
    return 10.0 * float(np.log10(255.0**2 / max(error, 1e-9)))


def drawn_again(episode: LoggedEpisode, camera: str, task: int = 0) -> list[Image]:
    """Draw every tick of a log, by the simulator alone."""
    env = ToySimulator().make("toy_pick", task)
    env.reset(episode.header.scene)
    images = []
    assert episode.poses is not None
    for pose in episode.poses[: len(episode.ticks)]:
        env.show(pose)
        images.append(env.observe([camera]).images[camera])
    return images
