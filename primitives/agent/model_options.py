"""How a model is asked, and which of these options a server turned out to refuse."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args

from zetta.runtime.errors import ConfigError

Effort: TypeAlias = Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
_NAMES: Final = {"effort": r"reason|think|effort", "temperature": r"temperature|sampling"}
"""How a server's complaint names an option."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options of every request.

    Raises:
        ConfigError: an option has no such value.
    """

    answer_tokens: int = 8000
    """Of one reply; a model that thinks needs room for that too."""
    temperature: float | None = None
    """None leaves it to the server."""
    effort: Effort = ""
    """How much a model thinks; empty leaves it to the server, `none` asks for no thinking."""
    refused: tuple[str, ...] = ()
    """Names of options that the server refuses: they are not sent."""

    def __post_init__(self) -> None:
        if self.answer_tokens <= 0:
            raise ConfigError(f"got answer_tokens = {self.answer_tokens}; expected more than 0")
        if self.temperature is not None and not 0.0 <= self.temperature <= 2.0:
            raise ConfigError(f"got the temperature {self.temperature}; expected 0 to 2")
        if self.effort not in EFFORTS:
            raise ConfigError(
                f"got the effort {self.effort!r}; expected one of {', '.join(EFFORTS[1:])}"
            )

    @property
    def in_use(self) -> tuple[str, ...]:
        """Options that are sent and may be left out."""
        given = {"effort": bool(self.effort), "temperature": self.temperature is not None}
        return tuple(name for name, sent in given.items() if sent and name not in self.refused)

    @property
    def notes(self) -> tuple[str, ...]:
        """Which options were left out."""
        return tuple(f"the server refuses the option {name}: left out" for name in self.refused)

    def without_refused(self, complaint: str) -> ModelOptions | None:
        """Leave out the option that a complaint names, or the first one; None when none is left.

        >>> options = ModelOptions(temperature=0.0, effort="high")
        >>> options.without_refused("temperature is not supported").in_use
        ('effort',)
        """
        left = self.in_use
        if not left:
            return None
        named = [n for n in left if re.search(_NAMES[n], complaint, re.IGNORECASE)]
        return replace(self, refused=(*self.refused, (named or left)[0]))
