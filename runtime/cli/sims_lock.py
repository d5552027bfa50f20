"""One process at a time changes what lies in a simulator's folders; the next one waits."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from zetta.runtime.cli import output
from zetta.runtime.errors import InfraError


@contextmanager
def alone(lock: Path, doing: str) -> Iterator[IO[str]]:
    """Hold a lock file while the block runs.

    The lock belongs to the open file: a child process that is given it holds it on, even when
    this process is killed.

    Args:
        lock: the file; its folder is made.
        doing: what another process does that holds it, such as `installs robosuite`.

    Raises:
        InfraError: the folder cannot be written.
    """
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("a", encoding="utf-8")
    except OSError as error:
        raise InfraError(
            f"cannot write to {lock.parent}: {error.strerror}; set XDG_DATA_HOME to a folder of "
            "yours"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            output.note(f"another process {doing}; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
