"""The numbers of a program that may be tuned: `params.toml`, each with bounds and a unit."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.critics.problems import MAX_BYTES, Problem, raise_problems, read_program
from zetta.runtime.errors import ConfigError, suggest

FIELDS: Final = ("default", "low", "high", "unit", "doc", "stricter")
STRICTER: Final = ("up", "down")
NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number that a search may change within bounds."""

    name: str
    default: float
    low: float
    high: float
    unit: str = ""
    doc: str = ""
    stricter: str = ""
    """Which way the critic fires less: `up`, `down`, or empty where that has no meaning."""


def read_parameters(path: Path) -> Mapping[str, Parameter]:
    """Return the parameters of a file.

    Raises:
        ConfigError: it cannot be read.
        ScreenError: it says something that is not allowed; each line is named.
    """
    parameters, problems = parse_parameters(read_program(path), str(path))
    raise_problems(problems)
    return parameters


def parse_parameters(
    source: str | bytes, path: str = "params.toml"
) -> tuple[Mapping[str, Parameter], tuple[Problem, ...]]:
    """Return the parameters of a text, and what is wrong with it.

    >>> parse_parameters("[near]\\ndefault = 0.1\\nlow = 0.0\\nhigh = 0.2\\n")[0]["near"].high
    0.2
    """
    raw = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(raw) > MAX_BYTES:
        return {}, (Problem(1, f"the file is longer than {MAX_BYTES} bytes", path),)
    try:
        text = raw.decode("utf-8")
        tables = tomllib.loads(text)
    except UnicodeDecodeError:
        return {}, (Problem(1, "this is no UTF-8; save the file as UTF-8", path),)
    except (ValueError, RecursionError) as error:
        return {}, (Problem(_line_of_error(error), f"this is no TOML: {error}", path),)
    parameters, problems = {}, []
    for name, table in tables.items():
        reason = _reason_to_refuse(name, table)
        if reason:
            problems.append(Problem(_line_of_table(text, name), reason, path))
        else:
            default, low, high = (float(table[key]) for key in ("default", "low", "high"))
            parameters[name] = Parameter(
                name,
                default,
                low,
                high,
                table.get("unit", ""),
                table.get("doc", ""),
                table.get("stricter", ""),
            )
    return parameters, tuple(problems)


def bound_values(
    parameters: Mapping[str, Parameter], values: Mapping[str, float] | None
) -> dict[str, float]:
    """Return a value for every parameter: the one in `values`, else its default.

    Raises:
        ConfigError: unknown name, or a value out of bounds.
    """
    given = values or {}
    for name, value in given.items():
        if name not in parameters:
            raise ConfigError(f"there is no parameter {name!r}; {suggest(name, parameters)}")
        known = parameters[name]
        if not known.low <= value <= known.high:
            raise ConfigError(
                f"the parameter {name!r} was given {value:g}; it lies between {known.low:g} and "
                f"{known.high:g} {known.unit}".rstrip()
            )
    return {name: float(given.get(name, known.default)) for name, known in parameters.items()}


def _reason_to_refuse(name: str, table: object) -> str:
    if not NAME.fullmatch(name):
        return f"the parameter name {name!r} is not of small letters, digits and '_'"
    if not isinstance(table, dict):
        return f"{name!r} is no table; write [{name}] and below it default, low and high"
    for key in table:
        if key not in FIELDS:
            return f"[{name}] has no field {key!r}; {suggest(key, FIELDS)}"
    for key in ("default", "low", "high"):
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"[{name}] needs {key} = a number"
        if abs(value) > 1e9 or not math.isfinite(value):
            return f"[{name}] {key} = {float(value) if abs(value) < 1e300 else 'it'} is too large"
    for key in ("unit", "doc"):
        if not isinstance(table.get(key, ""), str):
            return f"[{name}] {key} is a text in quotes"
    if table.get("stricter", "up") not in STRICTER:
        return f'[{name}] stricter is "up" or "down", got {table["stricter"]!r}'
    low, default, high = table["low"], table["default"], table["high"]
    if not low <= default <= high:
        return f"[{name}] default = {default:g} does not lie between low = {low:g} and {high:g}"
    return ""


def _line_of_table(text: str, name: str) -> int:
    """Return the line where a table begins, or 1."""
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(rf"\s*(\[\s*)?[\"']?{re.escape(name)}\b", line):
            return number
    return 1


def _line_of_error(error: Exception) -> int:
    found = re.search(r"at line (\d+)", str(error))
    return int(found.group(1)) if found else 1
