"""Results on disk while they come: JSON lines, appended one by one and synced.

Every shard file begins with a line that names the plan it belongs to. A process that is killed
while it writes leaves at most one torn last line, which is dropped and redone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from zetta.runtime.errors import ConfigError, InfraError

SHARD_BYTES = 3_500_000
"""A new file is begun at this size: shards are meant to be committed."""


class ShardFolder:
    """The shards of one plan in one folder; one process appends at a time."""

    def __init__(self, folder: Path, plan: str, shard_bytes: int = SHARD_BYTES) -> None:
        """Use `folder`, which need not exist yet; `plan` is the hash its files must name."""
        self.folder = folder
        self.plan = plan
        self._shard_bytes = shard_bytes
        self._file: IO[bytes] | None = None

    def files(self) -> list[Path]:
        """Return the shard files in order."""
        return sorted(self.folder.glob("episodes-*.jsonl"))

    def rows(self) -> list[dict[str, Any]]:
        """Return every complete row in order.

        Raises:
            ConfigError: a file belongs to another plan, or is damaged.
        """
        return [row for path in self.files() for row in self._read(path)]

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row and wait until the disk has it.

        Raises:
            InfraError: the disk refuses.
        """
        line = json.dumps(row, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        try:
            file = self._shard_for(len(line))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            raise InfraError(
                f"cannot write to {self.folder}: {error.strerror}; what is there is kept, "
                "continue with --resume"
            ) from error

    def close(self) -> None:
        """Close the file in hand."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, path: Path) -> list[dict[str, Any]]:
        whole = path.read_bytes()
        lines = whole.split(b"\n")[:-1]  # what follows the last newline was never finished
        if not lines:
            return []
        parsed = [_parse(path, number, line) for number, line in enumerate(lines, start=1)]
        found = str(parsed[0].get("plan"))
        if found != self.plan:
            raise ConfigError(
                f"{path} belongs to another evaluation (plan {found[:12]}, expected "
                f"{self.plan[:12]}); move it away or choose another --out"
            )
        return parsed[1:]

    def _shard_for(self, size: int) -> IO[bytes]:
        if self._file is None:
            self._file = self._open_last()
        if self._file.tell() + size > self._shard_bytes:
            self._file.close()
            self._file = self._begin(len(self.files()))
        return self._file

    def _open_last(self) -> IO[bytes]:
        files = self.files()
        if not files:
            return self._begin(0)
        file = files[-1].open("r+b")
        whole = file.read()
        end = whole.rfind(b"\n") + 1
        file.truncate(end)
        file.seek(end)
        if end == 0:  # torn inside its first line
            file.write(self._header())
        return file

    def _begin(self, number: int) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = (self.folder / f"episodes-{number:03d}.jsonl").open("xb")
        file.write(self._header())
        return file

    def _header(self) -> bytes:
        return json.dumps({"plan": self.plan}).encode() + b"\n"


def _parse(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise ConfigError(f"{path}, line {number} is damaged; restore the file or remove it")
    return row
