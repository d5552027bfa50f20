"""The thread that keeps hold of an arm: heartbeats, the clocks' offset, and what became of both.

It renews the lease, and nothing else: it does not feed the watchdog, for a program whose control
loop hangs still has a heartbeat.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

from zetta.hw_drivers.arm_messages import Beat, Welcome, opened, sealed
from zetta.hw_drivers.clock_offset import ClockOffset
from zetta.runtime.errors import ConnectionLost, InfraError, SpecMismatch, ZettaError
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import from_wire

BEATS_A_LEASE: Final = 5
FIRST_BEATS: Final = 8
"""Exchanges before the first command, from which the offset is known well enough."""


class LeaseKeeper:
    """Owns the answered channel of one connection while it lasts."""

    def __init__(
        self,
        dealer: Dealer,
        welcome: Welcome,
        lease: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Exchange the first heartbeats, then go on in a thread.

        Raises:
            InfraError: the server does not answer, or takes the lease back.
        """
        self._dealer, self._welcome, self._lease, self._clock = dealer, welcome, lease, clock
        self.offset = ClockOffset()
        self.lost: ZettaError | None = None
        self.trouble = ""
        self._renewed = clock()
        self._ended = threading.Event()
        for _ in range(FIRST_BEATS):
            self._beat(welcome.lease_s / 2.0)
            if self.lost is not None:
                raise self.lost
        self._thread = threading.Thread(target=self._keep, name="arm-lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Give the lease back and close the channel; calling it again does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(ZettaError):
            self._dealer.call("release", {"lease": self._lease}, 0.5)
        self._dealer.close()

    def _keep(self) -> None:
        while self.lost is None and not self._ended.wait(self._welcome.lease_s / BEATS_A_LEASE):
            try:
                self._beat(self._welcome.lease_s / 2.0)
            except (InfraError, SpecMismatch) as error:
                # One lost or spoiled packet is no lost arm; the lease is over when it could not be
                # renewed.
                if self._clock() - self._renewed > self._welcome.lease_s:
                    self.lost = ConnectionLost(f"lost the arm: {error}; connect again")
            except ZettaError as error:
                self.lost = error

    def _beat(self, within_s: float) -> None:
        t0 = self._clock()
        answer = self._dealer.call("beat", sealed({"lease": self._lease}), within_s)
        t3 = self._clock()
        beat = from_wire(Beat, opened(answer))
        if beat.session != self._welcome.session:
            self.lost = ConnectionLost(
                f"the server of the arm at {self._dealer.endpoint} was restarted; connect again"
            )
        elif not beat.held:
            self.lost = ConnectionLost(
                "this program does not hold the arm any more (a stop was cleared, or it was silent "
                f"for {self._welcome.lease_s:g} s); connect again"
            )
        else:
            self.offset.add(t0, beat.t_received, beat.t_sent, t3)
            self._renewed, self.trouble = t0, beat.trouble
