"""What a person declares of an arm in a TOML file, as a record."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json

T = TypeVar("T")


def read_declared(path: Path, kind: type[T]) -> T:
    """Return the record of type `kind` that the file holds.

    Raises:
        ConfigError: the file cannot be read, or something in it is unknown, missing or odd.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    try:
        return from_json(kind, plain)
    except (SpecMismatch, ConfigError) as error:
        raise ConfigError(f"{path}: {error}") from error
