"""Calibrations that are kept: one for each bundle, embodiment and policy.

    <folder>/<bundle>/<embodiment>/<policy>.json

They lie beside the user's library and not in bundles: what a gate has judged is not changed by
being taken to another arm, and the thresholds of one arm never replace those of another.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import LoadedBundle
from zetta.skills.calibrated import CalibrationRecord, read_calibration, write_calibration

_DIGITS: Final = 16


def store_calibration(root: Path, record: CalibrationRecord) -> Path:
    """Keep a calibration, in place of an earlier one for the same bundle, embodiment and policy.

    Raises:
        ConfigError: it does not say on what its episodes ran.
    """
    if record.embodiment is None:
        raise ConfigError("a calibration without an embodiment is not kept; calibrate again")
    path = root / record.digest[:_DIGITS] / record.embodiment.key / _file(record.policy)
    write_calibration(path, record)
    return path


def stored_calibrations(
    root: Path, bundle: LoadedBundle, name: str, policy: str
) -> dict[Path, CalibrationRecord]:
    """Return what is kept for a bundle and a policy in the environment called `name`.

    Raises:
        ConfigError: one of the files cannot be read.
    """
    if not bundle.digest:
        return {}
    found = sorted((root / bundle.digest[:_DIGITS]).glob(f"*/{_file(policy)}"))
    records = {path: read_calibration(path, bundle) for path in found}
    return {
        path: record
        for path, record in records.items()
        if record.embodiment is not None
        and record.embodiment.name == name
        and record.policy == policy
    }


def _file(policy: str) -> str:
    """Return a file name for a policy: readable, and another one for every policy."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", policy).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(policy.encode()).hexdigest()[:8]}.json"
