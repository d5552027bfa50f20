"""How long to wait for a model, and when to ask again: plain arithmetic, without a clock."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of one question to a model, seconds.

    Raises:
        ConfigError: a limit is not above 0.
    """

    total_s: float = 900.0
    """Until a question is given up, with everything that is tried again."""
    request_s: float = 300.0
    """Of one request."""
    silence_s: float = 60.0
    """Without a byte from the server, until a request is given up and made again. A model that
    thinks is silent too: each time the next request may be silent twice as long, up to
    `request_s`."""
    pause_s: float = 1.0
    """Before the first repetition; doubles each time."""
    pause_most_s: float = 60.0
    """Longest pause that nobody asked for; a server's retry-after may be longer."""

    def __post_init__(self) -> None:
        for name in ("total_s", "request_s", "silence_s", "pause_s", "pause_most_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"got {name} = {getattr(self, name)}; expected more than 0")

    def pause(self, failures: int, retry_after: float | None = None) -> float:
        """Return how long to wait after the k-th failure in a row.

        >>> [Patience().pause(k) for k in (1, 2, 3, 7, 400)]
        [1.0, 2.0, 4.0, 60.0, 60.0]
        >>> Patience().pause(1, retry_after=90.0)
        90.0
        """
        own = min(self.pause_s * 2.0 ** min(failures - 1, 60), self.pause_most_s)
        return own if retry_after is None else max(own, retry_after)

    def silence(self, silences: int) -> float:
        """Return how long a server may be silent after so many silent requests.

        >>> [Patience().silence(k) for k in (0, 1, 2, 3)]
        [60.0, 120.0, 240.0, 300.0]
        """
        return min(self.silence_s * 2.0 ** min(silences, 60), self.request_s)
