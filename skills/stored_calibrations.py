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

from zetta.runtime.core import PolicySpec
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import LoadedBundle
from zetta.skills.calibrated import CalibrationRecord, read_calibration, write_calibration
from zetta.skills.calibrated_policy import is_of, policy_key

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
    root: Path, bundle: LoadedBundle, name: str, policy: str, spec: PolicySpec | None = None
) -> dict[Path, CalibrationRecord]:
    """Return what is kept for a bundle and a policy in the environment called `name`.

    Args:
        root: where calibrations are kept.
        bundle: whose critics they are of.
        name: of the environment.
        policy: as `zetta run --policy` takes it.
        spec: what that policy is, where it is only the place of a server.

    Raises:
        ConfigError: one of the files cannot be read.
    """
    kept: dict[Path, CalibrationRecord] = {}
    for key in dict.fromkeys((policy_key(policy, spec), policy)):
        if not kept:  # those by the address are from before, and count only without others
            found = sorted(_folder(root, bundle).glob(f"*/{_file(key)}")) if bundle.digest else []
            kept = {path: read_calibration(path, bundle) for path in found}
            kept = {p: r for p, r in kept.items() if _fits(r, name, policy, spec)}
    return kept


def any_stored(root: Path, bundle: LoadedBundle) -> bool:
    """Say whether anything is kept for a bundle."""
    return bool(bundle.digest) and _folder(root, bundle).is_dir()


def _folder(root: Path, bundle: LoadedBundle) -> Path:
    return root / bundle.digest[:_DIGITS]


def _fits(record: CalibrationRecord, name: str, policy: str, spec: PolicySpec | None) -> bool:
    here = record.embodiment is not None and record.embodiment.name == name
    return here and is_of(record, policy, spec)


def _file(policy: str) -> str:
    """Return a file name for a policy: readable, and another one for every policy."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", policy).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(policy.encode()).hexdigest()[:8]}.json"
