"""What reading a numpy archive raises when its file is damaged, cut short or something else."""

from __future__ import annotations

import zipfile
import zlib

UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)
"""Every one of these was met in files with bytes flipped, cut off or replaced."""
