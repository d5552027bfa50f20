"""What tokens cost: a table in a file or an argument, else the list of the client library."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError

MILLION: Final = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens.

    Raises:
        ConfigError: a price is negative or no number.
    """

    input: float
    output: float
    cached: float | None = None
    """Of input that the provider had in its cache; None for the price of any other input."""

    def __post_init__(self) -> None:
        for value in (self.input, self.output, self.cached or 0.0):
            if not (math.isfinite(value) and value >= 0.0):
                raise ConfigError(
                    f"got a price of {value} $ for a million tokens; expected 0 or more"
                )

    def dollars(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return what a request cost; cached tokens are part of the input tokens.

        >>> Price(3.0, 15.0, 0.3).dollars(1_000_000, 100_000, 500_000)
        3.15
        """
        cached = min(cached_tokens, input_tokens)
        rate = self.input if self.cached is None else self.cached
        spent = (input_tokens - cached) * self.input + cached * rate + output_tokens * self.output
        return spent / MILLION


def read_prices(path: Path) -> Mapping[str, Price]:
    """Read a table of prices, by the model's name as it is given to a drive.

    The file is JSON: `{"openai:gpt-5": {"input": 1.25, "output": 10, "cached": 0.125}}`, dollars
    for a million tokens; `cached` may be missing.

    Raises:
        ConfigError: the file cannot be read or is no such table.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read the prices in {path}: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path} holds no table; expected an object of models and prices")
    return {str(name): _price(name, row, path) for name, row in table.items()}


def _price(name: str, row: object, path: Path) -> Price:
    if isinstance(row, dict) and {"input", "output"} <= set(row) <= {"input", "output", "cached"}:
        numbers = {key: value for key, value in row.items() if value is not None}
        if all(isinstance(v, int | float) and not isinstance(v, bool) for v in numbers.values()):
            return Price(**numbers)
    raise ConfigError(
        f"the price of {name!r} in {path} cannot be used; expected "
        '{"input": dollars, "output": dollars, "cached": dollars} for a million tokens'
    )
