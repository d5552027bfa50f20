"""One file for each clip: the log's own columns as Parquet, or arrays as users of Gymnasium know.

With pictures, `videos/episode-000000.CAMERA.mp4` lies beside them. `episodes.parquet` has one row
for each clip.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import SENSING_LEVELS
from zetta.runtime.episode_log import TICKS, LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.runtime.export.clips import SKILL, Clip, Selection
from zetta.runtime.export.features import ACTION, DECISIONS, STATE, Columns, TickColumns
from zetta.runtime.export.ledger import Ledger
from zetta.runtime.export.parts import Alike, Filming, Row, film, origin

EPISODES, VIDEOS, INDEX = "episodes", "videos", "episodes.parquet"
WriteTicks: TypeAlias = Callable[[Path, LoggedEpisode, Clip, Columns], None]
ENDED: Final = ("success", "terminated")
"""Endings that are the task's own; all others cut an episode short."""


class EpisodeFiles:
    """Writes one file for each clip."""

    def __init__(
        self,
        selection: Selection,
        columns: TickColumns,
        fps: float,
        filming: Filming | None,
        write: WriteTicks,
        suffix: str,
    ) -> None:
        """Prepare.

        Args:
            selection: the clips.
            columns: makes what a log does not hold.
            fps: rate of the videos.
            filming: pictures; None for no videos.
            write: writes the file of a clip.
            suffix: of that file, such as `.npz`.
        """
        self._selection, self._columns, self._fps = selection, columns, fps
        self._filming, self._alike = filming, Alike()
        self._write, self._suffix = write, suffix
        self._cameras = () if filming is None else filming.cameras

    def part(self, folder: Path, number: int, clip: Clip, episode: LoggedEpisode) -> Row:
        """Write one clip."""
        path = folder / f"ticks{self._suffix}"
        self._write(path, episode, clip, self._columns.of(episode, clip))
        row: Row = {
            **origin(episode.header, clip, number),
            "instruction": clip.instruction,
            "ticks": clip.ticks,
        }
        if self._filming is not None:
            made = film(folder, self._fps, self._filming, clip, episode)
            self._alike.check(made.sizes, clip)
        return row

    def finish(self, ledger: Ledger) -> Row:
        """Give every file its name and write the list of them."""
        root = ledger.folder
        rows = []
        for number in range(len(self._selection.clips)):
            name, part = f"episode-{number:06d}", ledger.part(number)
            rows.append(ledger.row(number))
            _move(part / f"ticks{self._suffix}", root / EPISODES / f"{name}{self._suffix}")
            for camera in self._cameras:
                _move(part / f"{camera}.mp4", root / VIDEOS / f"{name}.{camera}.mp4")
        temporary = root / f".{INDEX}.part"
        pq.write_table(pa.Table.from_pylist(rows), temporary)
        temporary.replace(root / INDEX)
        names = self._columns.features[0].names or ()
        return {"state": list(self._columns.parts), "state_names": list(names)}


def write_parquet(path: Path, episode: LoggedEpisode, clip: Clip, columns: Columns) -> None:
    """Write the log's own columns, and behind them those that are made of it.

    Raises:
        ConfigError: the log cannot be read.
    """
    try:
        table = pq.read_table(Path(clip.folder) / TICKS).slice(clip.first, clip.ticks)
    except UNREADABLE as error:
        raise ConfigError(f"the log {clip.folder} cannot be read: {error}") from error
    level = SENSING_LEVELS[int(columns["sensing_index"][0])]
    added: dict[str, Any] = {
        "intervention": columns["intervention"],
        "skill": [s.removeprefix(SKILL) if on else ""
                  for s, on in zip(columns["source"], columns["intervention"], strict=True)],
        "critic": columns["critic"],
        "verdict": [DECISIONS[i] for i in columns["verdict_index"]],
        "sensing": [level] * clip.ticks,
        "reward": columns["next.reward"],
        "success": columns["next.success"],
    }  # fmt: skip
    for name, values in added.items():
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        table = table.append_column(name, pa.array(plain))
    pq.write_table(table, path)


def write_npz(path: Path, episode: LoggedEpisode, clip: Clip, columns: Columns) -> None:
    """Write `observations`, `actions`, `rewards`, `terminations`, `truncations` and `infos`.

    The log holds no observation after the last action, so there are as many observations as
    actions.
    """
    ends = columns["next.done"]
    by_itself = episode.header.result.reason in ENDED
    arrays: dict[str, Any] = {
        "observations/state": columns[STATE],
        "actions": columns[ACTION],
        "rewards": columns["next.reward"],
        "terminations": ends & by_itself,
        "truncations": ends & (not by_itself),
        "infos/success": columns["next.success"],
    }
    for name in ("source", "intervention", "critic", "held", "guarded", "tick", "time"):
        arrays[f"infos/{name}"] = columns[name]
    arrays["infos/verdict"] = columns["verdict_index"]
    arrays["infos/sensing"] = columns["sensing_index"]
    np.savez_compressed(path, **arrays)


def _move(part: Path, target: Path) -> None:
    """Move a file; what was moved already is kept."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if part.exists():
        part.replace(target)
