"""What a policy server allows; told to every client in the hello."""

from __future__ import annotations

from dataclasses import dataclass

from zetta.runtime.errors import ConfigError
from zetta.runtime.policy_server.batching import BUCKETS


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """How many are served, and for how long a silent one is kept."""

    max_sessions: int = 16
    """Robots at a time."""
    max_rows: int = BUCKETS[-1]
    """Rows of the largest batch; 1 serves one by one."""
    max_wait_s: float = 0.05
    """Longest that one request waits for company, seconds."""
    idle_s: float = 300.0
    """A session that is silent for longer is ended, seconds."""
    drain_s: float = 10.0
    """How long a server that ends lets running requests finish, seconds."""

    def __post_init__(self) -> None:
        if self.max_sessions < 1:
            raise ConfigError(f"a server has at least 1 session, got {self.max_sessions}")
        if self.max_rows not in BUCKETS:
            known = ", ".join(map(str, BUCKETS))
            raise ConfigError(f"a batch has at most {known} rows, got {self.max_rows}")
        if not (0 <= self.max_wait_s < 10 and self.idle_s > 0 and self.drain_s >= 0):
            raise ConfigError(
                f"got the times {self.max_wait_s:g}, {self.idle_s:g} and {self.drain_s:g} s; the "
                "wait for company is below 10 s, the idle time above 0, draining 0 or longer"
            )
