"""What describes a LeRobotDataset v3.0: tasks, episodes and `info.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from zetta.runtime.export.clips import Selection
from zetta.runtime.export.features import VIEW, Feature
from zetta.runtime.export.films import CODEC, PIXELS
from zetta.runtime.export.parts import Row

VERSION: Final = "v3.0"
CHUNK: Final = "chunk-{chunk_index:03d}/file-{file_index:03d}"
ROWS: Final = 100
"""Episodes that are described at once."""


@dataclass(slots=True)
class Placed:
    """Where an episode lies in the files."""

    begins: int
    ends: int
    """Of its frames among all."""
    data: tuple[int, int] = (0, 0)
    """Chunk and file."""
    videos: dict[str, tuple[int, int, float, float]] = field(default_factory=dict)
    """Chunk, file, first second and end, by camera."""


def info_of(
    selection: Selection,
    features: Sequence[Feature],
    fps: float,
    sizes: Mapping[str, tuple[int, int]],
) -> Row:
    """Return `info.json`; `sizes` are height and width by camera."""
    rate = int(fps) if fps == int(fps) else fps
    films = {VIEW + camera: _film(*size, rate) for camera, size in sizes.items()}
    plain = {
        f.name: {
            "dtype": f.dtype,
            "shape": [f.size],
            "names": None if f.names is None else list(f.names),
        }
        for f in features
    }
    return {
        "codebase_version": VERSION,
        "robot_type": selection.spec.name,
        "total_episodes": len(selection.clips),
        "total_frames": selection.ticks,
        "total_tasks": len(selection.instructions),
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": rate,
        "splits": {"train": f"0:{len(selection.clips)}"},
        "data_path": f"data/{CHUNK}.parquet",
        "video_path": f"videos/{{video_key}}/{CHUNK}.mp4" if films else None,
        "features": {**films, **plain},
    }


def _film(height: int, width: int, fps: float) -> Row:
    return {
        "dtype": "video",
        "shape": [height, width, 3],
        "names": ["height", "width", "channels"],
        "info": {
            "video.height": height,
            "video.width": width,
            "video.codec": CODEC,
            "video.pix_fmt": PIXELS,
            "video.is_depth_map": False,
            "video.fps": fps,
            "video.channels": 3,
            "has_audio": False,
        },
    }


def write_tasks(path: Path, instructions: Sequence[str]) -> None:
    """Write the table of instructions, which pandas reads as its index.

    Raises:
        OSError: it cannot be written.
    """
    index = "__index_level_0__"
    table = pa.table({
        "task_index": pa.array(range(len(instructions)), pa.int64()),
        index: pa.array(instructions, pa.string()),
    })  # fmt: skip
    described = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [
            _pandas_column("task_index", "task_index", "int64", "int64"),
            _pandas_column(None, index, "unicode", "object"),
        ],
        "pandas_version": "2.0.0",
    }
    schema = table.schema.with_metadata({"pandas": json.dumps(described)})
    _write_whole(path, [table.cast(schema)])


def write_episodes(path: Path, rows: Iterable[tuple[Row, Placed]], cameras: Sequence[str]) -> None:
    """Write one row for each episode: where it lies, whence it comes, and its statistics.

    Raises:
        OSError: it cannot be written.
    """
    described = (_episode(row, placed, cameras) for row, placed in rows)
    some = iter(lambda: list(islice(described, ROWS)), [])
    _write_whole(path, (pa.Table.from_pylist(each) for each in some))


def _episode(row: Row, placed: Placed, cameras: Sequence[str]) -> Row:
    facts: Row = {
        "episode_index": row["origin"]["episode_index"],
        "tasks": [row["instruction"]],
        "length": row["ticks"],
        "data/chunk_index": placed.data[0],
        "data/file_index": placed.data[1],
        "dataset_from_index": placed.begins,
        "dataset_to_index": placed.ends,
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
    }
    for camera in cameras:
        names = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
        where = dict(zip(names, placed.videos[camera], strict=True))
        facts |= {f"videos/{VIEW}{camera}/{name}": value for name, value in where.items()}
    facts |= {f"zetta/{k}": v for k, v in row["origin"].items() if k != "episode_index"}
    for feature, stats in row["stats"].items():
        facts |= {f"stats/{feature}/{name}": value for name, value in stats.items()}
    return facts


def _pandas_column(name: str | None, field_name: str, kind: str, numpy_type: str) -> Row:
    return {
        "name": name,
        "field_name": field_name,
        "pandas_type": kind,
        "numpy_type": numpy_type,
        "metadata": None,
    }


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables of one schema into one file, each as a row group of its own.

    Raises:
        OSError: it cannot be written.
    """
    writer = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(path, table.schema, compression="snappy")
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


def _write_whole(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables into one file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    write_tables(temporary, tables)
    temporary.replace(path)
