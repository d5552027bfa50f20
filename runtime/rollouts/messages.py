"""What crosses the pipe between a pool and its workers: one JSON object a line.

JSON keeps a worker's answer readable in a log and can build nothing but numbers, texts and lists.
The pipe is private: whatever a simulator prints on stdout never meets it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from zetta.runtime import errors
from zetta.runtime.core import EndReason, Init, Layout, Recovery, RunSpec, Sampled
from zetta.runtime.errors import ConfigError, InfraError, ZettaError
from zetta.runtime.records import from_json, to_json
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity


def encode(message: Mapping[str, object]) -> bytes:
    """Return one line; NaN has no place in it.

    Raises:
        ValueError: a number is not finite.
    """
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the object of one line.

    Raises:
        ValueError: not a JSON object.
    """
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError(f"expected a JSON object, got {line[:80]!r}")
    return message


def spec_to_json(spec: RunSpec) -> dict[str, Any]:
    """Return `spec` as plain JSON."""
    return {**_plain(spec), "layout": str(spec.layout)}


def spec_from_json(plain: Mapping[str, Any]) -> RunSpec:
    """Undo `spec_to_json`."""
    return RunSpec(**{**plain, "layout": layout_from_text(str(plain["layout"]))})


def layout_from_text(text: str) -> Layout:
    """Return `Init(3)` for `3`, `Sampled()` for `sampled`.

    Raises:
        ValueError: neither.
    """
    return Sampled() if text == "sampled" else Init(int(text))


def record_to_json(record: EpisodeRecord) -> dict[str, Any]:
    """Return `record` as plain JSON; a dispersion that is not a number becomes null."""
    plain = _plain(record)
    if record.dispersion is not None and not math.isfinite(record.dispersion):
        plain["dispersion"] = None
    plain["recoveries"] = to_json(record.recoveries)
    return plain


def record_from_json(plain: Mapping[str, Any]) -> EpisodeRecord:
    """Undo `record_to_json`.

    Raises:
        ValueError: unknown end reason.
        TypeError: a field is missing or unknown.
        SpecMismatch: a recovery is no record of one.
    """
    if plain.get("reason") not in get_args(EndReason):
        raise ValueError(f"unknown end reason {plain.get('reason')!r}")
    recoveries = tuple(from_json(Recovery, each) for each in plain.get("recoveries", ()))
    return EpisodeRecord(**{**plain, "recoveries": recoveries})


def identity_to_json(identity: Identity) -> dict[str, Any]:
    """Return `identity` as plain JSON."""
    return _plain(identity)


def identity_from_json(plain: Mapping[str, Any]) -> Identity:
    """Undo `identity_to_json`."""
    return Identity(**plain)


def error_to_json(error: Exception) -> dict[str, object]:
    """Say what went wrong and, as `again`, whether trying again can help."""
    if isinstance(error, ModuleNotFoundError):
        missing = ConfigError(
            f"a worker cannot import {error.name!r}; `zetta doctor` prints the installing line"
        )
        return error_to_json(missing)
    if isinstance(error, ZettaError):
        again = isinstance(error, InfraError)
        return {"kind": type(error).__name__, "message": str(error), "again": again}
    message = f"unexpected {type(error).__name__}: {error}"
    return {"kind": "InfraError", "message": message, "again": True}


def error_from_json(plain: Mapping[str, Any]) -> ZettaError:
    """Return the error that a worker described, as the class it had there."""
    kind = getattr(errors, str(plain["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, ZettaError)):
        kind = ZettaError
    return kind(str(plain["message"]))


def _plain(record: RunSpec | EpisodeRecord | Identity) -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {k: dict(sorted(v.items())) if isinstance(v, Mapping) else v for k, v in values.items()}
