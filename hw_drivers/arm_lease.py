"""Who may command an arm, and which of the commands count: rules without sockets."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from zetta.hw_drivers.arm_messages import Command
from zetta.runtime.errors import InfraError

MAX_TTL_S: Final = 1.0
"""A command whose time lies further ahead comes from a clock that disagrees."""


@dataclass(frozen=True, slots=True)
class _Lease:
    owner: str
    token: str
    until: float


class Ownership:
    """One owner at a time. A lease ends by itself when it is not renewed."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._lease: _Lease | None = None
        self._seen = 0

    def owner(self, now: float) -> str:
        """Return who holds the arm; empty for nobody."""
        return self._lease.owner if self._lease and now < self._lease.until else ""

    def take(self, owner: str, now: float) -> str:
        """Give the arm to `owner` and return the token that every command must show.

        A name proves nothing: a second program under the same name waits as everybody does.

        Raises:
            InfraError: somebody holds it.
        """
        holder = self.owner(now)
        if holder:
            raise InfraError(
                f"the arm is held by {holder!r}; end that program, or wait until its lease of "
                f"{self._lease_s:g} s runs out"
            )
        token = secrets.token_hex(16)
        self._lease, self._seen = _Lease(owner, token, now + self._lease_s), 0
        return token

    def renew(self, token: str, now: float) -> bool:
        """Prolong the lease of `token`; False where it is not the present one."""
        if not self.holds(token, now):
            return False
        assert self._lease is not None
        self._lease = _Lease(self._lease.owner, token, now + self._lease_s)
        return True

    def holds(self, token: str, now: float) -> bool:
        """Say whether `token` is that of the present lease."""
        lease = self._lease
        return (
            lease is not None
            and now < lease.until
            and secrets.compare_digest(lease.token.encode(), token.encode())
        )

    def end(self) -> None:
        """Take the arm away from whoever holds it."""
        self._lease = None

    def fault_of(self, command: Command, now: float) -> str:
        """Return what is wrong with a command, as `COUNTED` names it; empty when it is good.

        A command that is judged is seen: the next one must have a higher number, also where this
        one came too late.
        """
        if not self.holds(command.lease, now):
            return "owner"
        if command.seq <= self._seen:
            return "duplicate" if command.seq == self._seen else "reordered"
        self._seen = command.seq
        if not now < command.deadline:  # NaN is over as well
            return "expired"
        return "clock" if command.deadline > now + MAX_TTL_S else ""
