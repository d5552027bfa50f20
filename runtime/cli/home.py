"""Where the user's own things lie: the one place that knows their folders."""

from __future__ import annotations

import os
from pathlib import Path


def data_home() -> Path:
    """Return the folder of what the user keeps, which need not exist."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_home() -> Path:
    """Return the folder of what can be made again, which need not exist."""
    return _folder("XDG_CACHE_HOME", ".cache")


def home_library() -> Path:
    """Return the folder of the user's library, which need not exist."""
    return data_home() / "library"


def calibrations_folder() -> Path:
    """Return the folder of what `zetta critics calibrate` keeps, which need not exist."""
    return data_home() / "calibrations"


def config_home() -> Path:
    """Return the folder of what the user declares, which need not exist."""
    return _folder("XDG_CONFIG_HOME", ".config")


def arms_folder() -> Path:
    """Return the folder of the set-ups that `--arm` finds by name or address; need not exist."""
    return config_home() / "arms"


def key_path() -> Path:
    """Return where the user's signing key lies."""
    from zetta.skills.signatures import KEY_NAME

    return config_home() / KEY_NAME


def _folder(variable: str, otherwise: str) -> Path:
    """Return our folder in the one that a variable names, if it is absolute, or in the home's."""
    named = os.environ.get(variable, "")
    return (Path(named) if named.startswith("/") else Path.home() / otherwise) / "zetta"
