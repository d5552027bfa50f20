"""The files of a checkpoint folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def digest_of_files(paths: Iterable[Path], settings: str = "") -> str:
    """Return the SHA-256 of files, in their order, and of how they are run."""
    total = hashlib.sha256(settings.encode())
    for path in paths:
        with path.open("rb") as content:
            total.update(hashlib.file_digest(content, "sha256").digest())
    return total.hexdigest()
