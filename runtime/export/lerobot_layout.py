"""The layout of LeRobotDataset v3.0, written with pyarrow alone.

Each clip is one episode of the data set. Parts are put together into files of at most the sizes
that LeRobot uses itself; `meta/info.json`, without which nothing is a data set, comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zetta.runtime.core import Array
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.export.clips import Clip, Selection
from zetta.runtime.export.features import VIEW, Columns, Feature, TickColumns
from zetta.runtime.export.films import check_length, join
from zetta.runtime.export.ledger import Ledger, write_json
from zetta.runtime.export.lerobot_meta import (
    Placed,
    info_of,
    write_episodes,
    write_tables,
    write_tasks,
)
from zetta.runtime.export.parts import Alike, Filming, Row, film, origin
from zetta.runtime.export.statistics import (
    Binned,
    Counts,
    Joined,
    Summary,
    summary_of,
    summary_of_counts,
)

DATA_BYTES: Final = 100 * 2**20
VIDEO_BYTES: Final = 200 * 2**20
"""Largest files, as LeRobot writes them."""
GROUP_ROWS: Final = 10_000
FILES: Final = 1000
"""Files of a chunk."""
COUNTED: Final = (
    Feature("timestamp", "float32"),
    Feature("frame_index", "int64"),
    Feature("episode_index", "int64"),
    Feature("index", "int64"),
    Feature("task_index", "int64"),
)
"""What every data set of LeRobot has; `timestamp` is the frame's number by the rate."""
TABLE: Final = "data.parquet"


class LeRobotLayout:
    """Writes one data set."""

    def __init__(
        self, selection: Selection, columns: TickColumns, fps: float, filming: Filming | None
    ) -> None:
        """Prepare; without `filming` there will be no videos."""
        self._selection, self._columns, self._fps = selection, columns, fps
        self._filming, self._alike = filming, Alike()
        self._cameras = () if filming is None else filming.cameras
        self.features = (*columns.features, *COUNTED)
        self._tasks = {text: i for i, text in enumerate(selection.instructions)}
        self._begins = np.cumsum([0, *(clip.ticks for clip in selection.clips)])

    def part(self, folder: Path, number: int, clip: Clip, episode: LoggedEpisode) -> Row:
        """Write table and videos of one episode."""
        columns = self._columns.of(episode, clip) | self._counted(number, clip)
        table = as_table(self.features, columns)
        pq.write_table(table, folder / TABLE)
        row: Row = {
            "ticks": clip.ticks,
            "instruction": clip.instruction,
            "origin": origin(episode.header, clip, number),
            "stats": {
                f.name: as_lists(summary_of(_numbers(columns[f.name], f)))
                for f in self.features if f.dtype != "string"
            },
            "counts": {}, "sizes": {}, "bytes": {TABLE: (folder / TABLE).stat().st_size},
        }  # fmt: skip
        if self._filming is not None:
            made = film(folder, self._fps, self._filming, clip, episode)
            self._alike.check(made.sizes, clip)
            row["sizes"] = {camera: list(size) for camera, size in made.sizes.items()}
            for camera in self._cameras:
                row["bytes"][camera] = (folder / f"{camera}.mp4").stat().st_size
                row["counts"][camera] = made.counts[camera].tolist()
        return row

    def finish(self, ledger: Ledger) -> Row:
        """Join the parts and write what describes them."""
        root, count = ledger.folder, len(self._selection.clips)
        rows = [_Light.of(ledger.row(i)) for i in range(count)]
        for row, clip in zip(rows, self._selection.clips, strict=True):
            self._alike.check(row.sizes, clip)
        placed = self._put_together(ledger, rows)
        write_tasks(root / "meta" / "tasks.parquet", self._selection.instructions)
        write_episodes(
            root / "meta/episodes/chunk-000/file-000.parquet",
            (_complete(ledger.row(i), placed[i]) for i in range(count)),
            self._cameras,
        )
        write_json(root / "meta" / "stats.json", self._statistics(ledger))
        sizes = {camera: rows[0].sizes[camera] for camera in self._cameras}
        info = info_of(self._selection, self.features, self._fps, sizes)
        write_json(root / "meta" / "info.json", info)
        return {
            "features": [*info["features"]],
            "cameras": {camera: list(size) for camera, size in sizes.items()},
            "state": list(self._columns.parts),
        }

    def _counted(self, number: int, clip: Clip) -> Columns:
        frames = np.arange(clip.ticks, dtype=np.int64)
        return {
            "timestamp": frames / self._fps,
            "frame_index": frames,
            "episode_index": np.full(clip.ticks, number, np.int64),
            "index": frames + self._begins[number],
            "task_index": np.full(clip.ticks, self._tasks[clip.instruction], np.int64),
        }

    def _put_together(self, ledger: Ledger, rows: Sequence[_Light]) -> list[Placed]:
        """Move the parts into the files of the data set; what is there already is kept."""
        root = ledger.folder
        placed = [
            Placed(int(a), int(b)) for a, b in zip(self._begins, self._begins[1:], strict=False)
        ]
        for k, span in enumerate(shards([row.bytes[TABLE] for row in rows], DATA_BYTES)):
            parts = [ledger.part(i) / TABLE for i in span]
            _make(root / "data" / f"{_place(k)}.parquet", parts, _join_tables)
            for i in span:
                placed[i].data = divmod(k, FILES)
        for camera in self._cameras:
            for k, span in enumerate(shards([row.bytes[camera] for row in rows], VIDEO_BYTES)):
                parts = [ledger.part(i) / f"{camera}.mp4" for i in span]
                target = root / "videos" / f"{VIEW}{camera}" / f"{_place(k)}.mp4"
                _make(target, parts, join)
                frames = 0
                for i in span:
                    until = frames + rows[i].ticks
                    placed[i].videos[camera] = (
                        *divmod(k, FILES),
                        frames / self._fps,
                        until / self._fps,
                    )
                    frames = until
                check_length(target, frames)
        return placed

    def _statistics(self, ledger: Ledger) -> Row:
        """Return `stats.json`, looking at each episode and then at each table once."""
        whole: dict[str, Joined] = {}
        pictures: dict[str, Counts] = {}
        for i in range(len(self._selection.clips)):
            row = ledger.row(i)
            for name, plain in row["stats"].items():
                if name in whole:
                    whole[name].add(as_summary(plain))
                else:
                    whole[name] = Joined(as_summary(plain))
            for camera, counts in row["counts"].items():
                pictures[camera] = np.add(pictures.get(camera, 0), counts)
        bins = self._binned(ledger.folder, whole)
        stats = {n: as_lists({**whole[n].summary(), **bins[n].quantiles()}) for n in whole}
        for camera, counts in pictures.items():
            summary = summary_of_counts(counts, self._selection.ticks)
            stats[VIEW + camera] = as_lists(summary, picture=True)
        return stats

    def _binned(self, root: Path, whole: Mapping[str, Joined]) -> dict[str, Binned]:
        bins = {name: Binned(each.low, each.high) for name, each in whole.items()}
        numeric = [feature for feature in self.features if feature.name in whole]
        names = [feature.name for feature in numeric]
        for path in sorted((root / "data").glob("*/*.parquet")):
            for batch in pq.ParquetFile(path).iter_batches(GROUP_ROWS, columns=names):
                for feature in numeric:
                    bins[feature.name].add(_read_column(batch.column(feature.name), feature))
        return bins


@dataclass(frozen=True, slots=True)
class _Light:
    """What of a row is needed for all of them at once."""

    ticks: int
    bytes: dict[str, int]
    sizes: dict[str, tuple[int, int]]

    @staticmethod
    def of(row: Any) -> _Light:
        """Return it of a row."""
        sizes = {camera: (size[0], size[1]) for camera, size in row["sizes"].items()}
        return _Light(row["ticks"], dict(row["bytes"]), sizes)


def shards(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Yield spans of parts that go into one file each.

    >>> list(shards([4, 4, 4, 20, 1], 10))
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    first, total = 0, 0
    for i, size in enumerate(sizes):
        if i > first and total + size > limit:
            yield range(first, i)
            first, total = i, 0
        total += size
    yield range(first, len(sizes))


def as_table(features: Sequence[Feature], columns: Columns) -> pa.Table:
    """Return columns as a table: vectors of fixed length, the rest plain."""
    return pa.table({f.name: _column(columns[f.name], f) for f in features})


def as_lists(summary: Summary, picture: bool = False) -> Row:
    """Return statistics as JSON; those of pictures have the shape (3, 1, 1)."""
    return {
        name: value.reshape(-1, 1, 1).tolist() if picture and name != "count" else value.tolist()
        for name, value in summary.items()
    }


def as_summary(plain: Row) -> Summary:
    """Return what `as_lists` wrote of a feature that is no picture."""
    return {name: np.array(value, np.float64) for name, value in plain.items()}


def _column(values: Any, feature: Feature) -> pa.Array:
    if feature.dtype == "string":
        return pa.array([str(value) for value in values], pa.string())
    flat = pa.array(np.asarray(values).astype(feature.dtype).ravel())
    return flat if feature.size == 1 else pa.FixedSizeListArray.from_arrays(flat, feature.size)


def _read_column(column: Any, feature: Feature) -> Array:
    flat = column.flatten() if feature.size > 1 else column
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float64).reshape(-1, feature.size)


def _numbers(values: Any, feature: Feature) -> Array:
    """Return values as they are stored, for statistics. Shape (T, D)."""
    return np.asarray(np.asarray(values).astype(feature.dtype), np.float64).reshape(
        -1, feature.size
    )


def _complete(row: Any, placed: Placed) -> tuple[Row, Placed]:
    stats = dict(row["stats"])
    for camera, counts in row["counts"].items():
        summary = summary_of_counts(np.array(counts, np.int64), row["ticks"])
        stats[VIEW + camera] = as_lists(summary, picture=True)
    return {**row, "stats": stats}, placed


def _place(k: int) -> str:
    return f"chunk-{k // FILES:03d}/file-{k % FILES:03d}"


def _make(target: Path, parts: Sequence[Path], write: Any) -> None:
    """Make a file of parts, whole or not at all, and take the parts away."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.part")
        write(parts, temporary)
        temporary.replace(target)
    for part in parts:
        part.unlink(missing_ok=True)


def _join_tables(parts: Iterable[Path], target: Path) -> None:
    write_tables(target, _grouped(parts))


def _grouped(parts: Iterable[Path]) -> Iterator[pa.Table]:
    """Yield tables of many episodes: what describes a row group is kept for all of them."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(pq.read_table(part))
        if sum(table.num_rows for table in waiting) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_tables(waiting)
