"""The files of a checkpoint folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zetta.runtime.errors import ConfigError


def read_object(path: Path, advice: str) -> Mapping[str, Any]:
    """Return the object that a JSON file holds.

    Args:
        path: the file.
        advice: ends the sentence when there is none.

    Raises:
        ConfigError: it cannot be read, or holds no object.
    """
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; {advice}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no JSON: {error}; {advice}") from error
    if not isinstance(plain, dict):
        raise ConfigError(f"{path} holds no object; {advice}")
    return plain


def digest_of_files(paths: Iterable[Path], settings: str = "") -> str:
    """Return the SHA-256 of files, in their order, and of how they are run."""
    total = hashlib.sha256(settings.encode())
    for path in paths:
        with path.open("rb") as content:
            total.update(hashlib.file_digest(content, "sha256").digest())
    return total.hexdigest()
