"""Where derived files may lie: a private temporary folder, never the home folder."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path


@functools.cache
def scratch_folder(name: str) -> Path:
    """Return this user's temporary folder for `name`, which is made when it is missing.

    Another process of the same user gets the same one; when somebody else holds that name, this
    process gets one of its own.
    """
    folder = Path(tempfile.gettempdir()) / f"zetta-{name}-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        folder = Path(tempfile.mkdtemp(prefix=f"zetta-{name}-"))
    return folder
