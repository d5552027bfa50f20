"""Arguments of a tool call, read with care: they come from a language model or from a stranger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from zetta.runtime.errors import ConfigError, suggest

SHOWN: Final = 60
"""Characters of a wrong value that an error shows."""


class Given:
    """The arguments of one call."""

    def __init__(self, tool: str, arguments: Mapping[str, object], known: Sequence[str]) -> None:
        """Take the arguments of a tool.

        Raises:
            ConfigError: it has no such argument.
        """
        self._tool, self._arguments = tool, arguments
        for name in arguments:
            if name not in known:
                hint = suggest(name, known) if known else "it takes none"
                raise ConfigError(f"the tool {tool!r} has no argument {_short(name)}; {hint}")

    def flag(self, name: str, default: bool) -> bool:
        """Return a yes or no.

        Raises:
            ConfigError: it is none.
        """
        value = self._arguments.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def text(self, name: str, most: int) -> str | None:
        """Return a text of at most `most` characters; None where none was given.

        Raises:
            ConfigError: it is no text, or too long.
        """
        value = self._arguments.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(name, "text", value)
        if len(value) > most:
            raise ConfigError(
                f"{name!r} of the tool {self._tool!r} has {len(value)} characters; at most {most}"
            )
        return value

    def texts(self, name: str, most: int, longest: int) -> tuple[str, ...] | None:
        """Return a list of texts; None where none was given.

        Raises:
            ConfigError: it is no such list, is empty, holds more than `most`, or one of them has
                more than `longest` characters.
        """
        value = self._arguments.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not value:
            raise self._wrong(name, "a list of texts, at least one", value)
        if len(value) > most:
            raise ConfigError(
                f"{name!r} of the tool {self._tool!r} has {len(value)} entries; at most {most}"
            )
        texts: list[str] = []
        for each in value:
            if not isinstance(each, str):
                raise self._wrong(name, "a list of texts", each)
            if len(each) > longest:
                raise ConfigError(
                    f"an entry of {name!r} has {len(each)} characters; at most {longest}"
                )
            texts.append(each)
        return tuple(texts)

    def _wrong(self, name: str, expected: str, value: object) -> ConfigError:
        return ConfigError(
            f"{name!r} of the tool {self._tool!r} is {expected}; got {_short(value)}"
        )


def _short(value: object) -> str:
    """Return how a value looks, cut off."""
    # A value may be large: only its beginning is turned into text where that can be told.
    text = repr(value[: SHOWN + 1] if isinstance(value, str | list) else value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
