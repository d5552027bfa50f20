"""The key of a folder of results, from which its fresh scenes are derived."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.campaign import manifest_key

KEY_FILE: Final = "key.json"


def folder_key(folder: Path, words: str) -> str:
    """Return the key of a folder, drawn and kept when there is none: scenes are chosen by nobody.

    Raises:
        ConfigError: the one kept there is another, or cannot be read.
    """
    path = folder / KEY_FILE
    wanted = manifest_key([words]) if words else ""
    if not path.exists():
        key = wanted or secrets.token_hex(32)
        path.write_text(json.dumps({"key": key}) + "\n", encoding="utf-8")
        return key
    try:
        key = str(json.loads(path.read_text(encoding="utf-8"))["key"])
        bytes.fromhex(key)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read as a key: {error}") from None
    if wanted not in ("", key):
        raise ConfigError(
            f"{folder} was begun with other words for its scenes; choose another --out"
        )
    return key
