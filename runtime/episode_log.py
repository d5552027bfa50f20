"""The log of one episode: a folder that is written whole or not at all, and its reader.

`episode.json` says what was run and what it came to, `ticks.parquet` holds one row for each tick,
`poses.npz` what is needed to draw every moment again, and `truth.parquet` simulator truth, apart,
because no critic, author or prompt may open it.

While the episode runs its folder is `.<name>.partial-<id>`; only a finished log gets the name.
Until then `live.json` in it says how far the episode is (`zetta.runtime.live_episode`).
An episode that ended in an error is finished too: its result says `error` and `complete` is false.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import (
    Array,
    EnvSpec,
    EpisodeResult,
    PolicySpec,
    Scene,
    Sensing,
    Step,
    Tick,
    Truth,
)
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch
from zetta.runtime.live_episode import LiveFile, live_episode
from zetta.runtime.records import from_json, to_json
from zetta.runtime.tick_tables import (
    read_ticks,
    read_truth_table,
    write_ticks,
    write_truth_table,
)

FORMAT = "zetta-episode-1"
HEADER, TICKS, POSES, TRUTH = "episode.json", "ticks.parquet", "poses.npz", "truth.parquet"
JUDGEMENT = "judgement.json"
"""Where a person says afterwards whether an episode on an arm was solved."""

_Moment: TypeAlias = tuple[Tick, Step, Array | None]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What every result carries beside the episode itself."""

    policy_name: str
    policy: PolicySpec | None = None
    """None when only a motion drove."""
    policy_seed: int = 0
    bundle: str = "none"
    bundle_digest: str = ""
    sensing: Sensing = "vision"
    render: str = "fast"
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpisodeHeader:
    """`episode.json`."""

    scene: Scene
    instruction: str
    spec: EnvSpec
    """Control rate, action convention, cameras, render profile and versions of the environment."""
    run: RunFacts
    result: EpisodeResult
    complete: bool
    """False when an error cut the episode short; never a score."""
    sim: str = ""
    format: str = FORMAT


@dataclass(frozen=True, slots=True)
class LoggedEpisode:
    """A logged episode, without simulator truth."""

    header: EpisodeHeader
    ticks: tuple[Tick, ...]
    poses: Array | None
    """One row for each tick, taken before its action, and the last moment; rows of the end are
    missing after an error. None when the environment cannot be drawn again. Shape (T + 1, N)."""


class EpisodeLog:
    """A sink that writes one episode into `folder`.

    Rows are gathered and written by a thread of their own, so a slow disk never holds a tick up.
    """

    def __init__(self, folder: Path, sim: str, run: RunFacts) -> None:
        """Prepare; nothing is written before the episode begins.

        Raises:
            ConfigError: `folder` exists.
        """
        if folder.exists():
            raise ConfigError(f"{folder} exists already; a log is written once")
        self.folder = folder
        self._sim, self._run = sim, run
        self._partial = folder.with_name(f".{folder.name}.partial-{secrets.token_hex(3)}")
        self._moments: queue.SimpleQueue[_Moment | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name=f"log {folder.name}", daemon=True)
        self._failure: Exception | None = None
        self._written = False
        self._header: EpisodeHeader | None = None
        self._last_pose: Array | None = None

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Make the partial folder and start the writer.

        Raises:
            InfraError: the folder cannot be made.
        """
        self._scene, self._spec, self._instruction, self._settled = scene, spec, instruction, step
        try:
            self._partial.mkdir(parents=True)
        except OSError as error:
            raise InfraError(f"cannot write the log {self.folder}: {error.strerror}") from error
        self._writer.start()

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Hand one tick to the writer."""
        self._moments.put((tick, step, pose))

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Write everything and give the folder its name.

        Raises:
            InfraError: the log could not be written.
        """
        self._last_pose = pose
        self._header = EpisodeHeader(
            scene=self._scene,
            instruction=self._instruction,
            spec=self._spec,
            run=self._run,
            result=result,
            complete=result.reason != "error",
            sim=self._sim,
        )
        self._moments.put(None)
        self._writer.join()
        if not self._written:
            reason = self._failure or "the writer died"
            raise InfraError(f"cannot write the log {self.folder}: {reason}") from self._failure

    def _write(self) -> None:
        """Gather until the end, then write; runs in the writer thread."""
        moments: list[_Moment] = []
        ran = (self._run.policy_name, self._run.bundle, self._run.sensing)
        rate = self._spec.control_hz
        known = live_episode(self._scene, self._instruction, self._sim, rate, ran)
        live = LiveFile(self._partial, known)
        while (moment := self._moments.get()) is not None:
            moments.append(moment)
            live.tick(moment[0], moment[1].success)
        live.close()
        try:
            self._write_files(moments)
            _sync(self._partial)
            self._partial.rename(self.folder)
            self._written = True
            _sync(self.folder.parent)
        except (OSError, ValueError) as error:
            self._failure = error

    def _write_files(self, moments: list[_Moment]) -> None:
        assert self._header is not None
        arms = self._spec.arms
        write_ticks(self._partial / TICKS, [tick for tick, _, _ in moments], arms)
        truths = [self._settled.truth, *(step.truth for _, step, _ in moments)]
        if any(truth is not None for truth in truths):
            write_truth_table(self._partial / TRUTH, truths)
        poses = [pose for _, _, pose in moments if pose is not None]
        if self._last_pose is not None:
            poses.append(self._last_pose)
        if poses:
            np.savez_compressed(self._partial / POSES, poses=np.stack(poses))
        text = json.dumps(to_json(self._header), indent=1, allow_nan=False)
        (self._partial / HEADER).write_text(text + "\n", encoding="utf-8")


def _sync(folder: Path) -> None:
    """Make a folder's names durable: a log that has its name has its content."""
    for path in (*(p for p in folder.iterdir() if p.is_file()), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_header(folder: Path) -> EpisodeHeader:
    """Read `episode.json` alone.

    Raises:
        ConfigError: `folder` holds no log.
        SpecMismatch: it was written in another format.
    """
    path = folder / HEADER
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{folder} is no episode log ({HEADER}: {error.strerror}); "
            "give the folder of one episode, such as runs/<run>/episodes/000"
        ) from error
    except (ValueError, RecursionError) as error:
        raise SpecMismatch(f"{path} is not JSON: {error}") from error
    written = plain.get("format") if isinstance(plain, dict) else None
    if written != FORMAT:
        raise SpecMismatch(f"{path} has the format {written!r}; this version reads {FORMAT!r}")
    return from_json(EpisodeHeader, plain)


def read_episode(folder: Path) -> LoggedEpisode:
    """Read a log without its truth.

    Raises:
        ConfigError: `folder` holds no log, or a file of it cannot be read.
        SpecMismatch: it was written in another format.
    """
    header = read_header(folder)
    try:
        ticks = read_ticks(folder / TICKS, header.spec.arms)
        poses = None
        if (folder / POSES).exists():
            with (folder / POSES).open("rb") as file, np.load(file, allow_pickle=False) as saved:
                poses = np.asarray(saved["poses"], dtype=np.float64)
    except UNREADABLE as error:
        raise ConfigError(f"the log {folder} cannot be read: {error}") from error
    return LoggedEpisode(header, ticks, poses)


def read_truth(folder: Path) -> tuple[Truth | None, ...]:
    """Read simulator truth: the settled scene, then after each tick. For labels and diagnosis only.

    Raises:
        ConfigError: the log holds no truth.
    """
    path = folder / TRUTH
    if not path.exists():
        raise ConfigError(f"{folder} holds no simulator truth ({TRUTH} is missing)")
    return read_truth_table(path)
