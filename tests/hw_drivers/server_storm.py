"""A server of an arm in bad weather: hostile messages, a clock that leaps, stops and clears."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.hw_drivers.safe_runs import excesses, sent
from tests.hw_drivers.storms import Storm
from zetta.hw_drivers.arm import ArmTarget, PoseTarget
from zetta.hw_drivers.arm_guard import KernelGuard
from zetta.hw_drivers.arm_limits import Limits, load_limits
from zetta.hw_drivers.arm_messages import ARM_PROTOCOL, Command, Endpoints, command_to_wire, sealed
from zetta.hw_drivers.arm_server import ArmServer, ServerSettings
from zetta.hw_drivers.audit import Changes
from zetta.hw_drivers.decisions import AuditEntry, Decision
from zetta.hw_drivers.decisions import Command as Asked
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.tracking import quat_of_rotvec
from zetta.runtime.wire import Request, read_reply, request_frames

LIMITS = load_limits("simple")
TURN_S = 0.007
DRIVERS = ("policy", "policy", "person", "skill:regrasp", "agent:a", "agent:b")
NO_DRIVERS = ("oracle", "policy:x", "", "agent:" + "x" * 100)
NO_OPENINGS = (0.2, -0.1, np.nan, np.inf)


class Recorded(SimpleSide):
    """Writes down what it was told, beside the decision that made the server say so."""

    def __init__(self, clock: Callable[[], float], entries: list[AuditEntry]) -> None:
        super().__init__(clock=clock)
        self._entries = entries
        self.got: list[tuple[int, PoseTarget] | None] = []
        """Number of the newest decision, and the target; None where it was told to hold or stop."""

    def send(self, target: ArmTarget) -> None:
        assert isinstance(target, PoseTarget)
        self.got.append((len(self._entries) - 1, target))
        super().send(target)

    def hold(self) -> None:
        self._broken()
        super().hold()

    def stop(self) -> None:
        self._broken()
        super().stop()

    def _broken(self) -> None:
        if self.got and self.got[-1] is not None:
            self.got.append(None)


class Replies:
    """Stands where the socket is and keeps the last answer."""

    def __init__(self) -> None:
        self.value: object = None

    def send(self, peer: bytes, frames: list[bytes]) -> None:
        del peer
        reply = read_reply(frames)
        self.value = reply.value if reply.error is None else reply.error


class ServerStorm:
    """One server, driven through its messages by a clock of our own."""

    def __init__(self, seed: int, limits: Limits = LIMITS) -> None:
        self.weather = Storm(seed, limits)
        self.rng = np.random.default_rng(seed + 1000)
        self.limits = limits
        self.now = 50.0
        self.entries: list[AuditEntry] = []
        self.kept: list[AuditEntry] = []
        changes = Changes(self.kept.append)

        def audit(entry: AuditEntry) -> None:
            self.entries.append(entry)
            changes(entry)

        self.side = Recorded(lambda: self.now, self.entries)
        guard = KernelGuard(limits, self.side.facts, audit, after_kernel=seed % 2 == 1)
        settings = ServerSettings(Endpoints.on(port=0), state_hz=20.0)
        self.server = ArmServer(self.side, guard, settings, clock=lambda: self.now)
        self.replies = Replies()
        self.session = self.ask("hello", arm_protocol=ARM_PROTOCOL, robot="")["session"]
        self.lease, self.seq, self.asked = "", 0, 0
        self._take_hold()

    def run(self, commands: int) -> None:
        """Send so many commands."""
        last = np.array([*self.side.read().ee_pos, np.pi, 0.0, 0.0])
        while self.asked < commands:
            self.weather.last = self._last(last)
            ask, driver = self.weather._weather(), str(self.rng.choice(DRIVERS))
            for _ in range(int(self.rng.integers(1, 40))):
                self.weather.last = self._last(last)
                command = ask()
                if command is not None:
                    self._command(command, driver)
                self._pass_time()
                self._people()

    def close(self) -> None:
        self.server.close()

    def ask(self, do: str, **given: object) -> Any:
        """Ask the command socket something and return the answer, or the error."""
        self.replies.value = None
        message = [b"peer", *request_frames(Request(1, do, given))]
        self.server._answer(self.replies, message, self.server._asked)  # type: ignore[arg-type]
        return self.replies.value

    # ------------------------------------------------------------------ parts

    def _last(self, otherwise: np.ndarray) -> np.ndarray:
        entry = self.entries[-1] if self.entries else None
        return otherwise if entry is None or entry.sent is None else entry.sent.values

    def _take_hold(self) -> None:
        answer = self.ask("lease", session=self.session, owner="storm")
        if isinstance(answer, dict):
            self.lease, self.seq = answer["lease"], 0

    def _command(self, command: Asked, driver: str) -> None:
        """Send one command as a hostile client would; a few carry the marks of another one."""
        self.asked += 1
        self.seq += 1
        draw = self.rng.random()
        deadline = self.now + (-0.01 if draw < 0.01 else 5.0 if draw < 0.02 else 0.1)
        seq = self.seq - 1 if 0.02 < draw < 0.03 else self.seq
        lease = "0" * 32 if 0.03 < draw < 0.04 else self.lease
        target = _target(command, self.rng)
        with contextlib.suppress(TypeError, ValueError):
            if self.rng.random() < 0.03:
                driver = str(self.rng.choice(NO_DRIVERS))
            wire = command_to_wire(Command(self.session, lease, seq, deadline, target, driver))
            self.ask("command", **wire)

    def _pass_time(self) -> None:
        """Let the server turn until the next message; at times it does not run at all."""
        draw = self.rng.random()
        if draw < 0.005:
            self.now += float(self.rng.uniform(0.06, 1.5))  # frozen
        length = float(self.rng.choice([0.001, 0.02, 0.05, 0.05, 0.05, 0.08]))
        if draw > 0.995:
            length = 0.3  # silence
        end = self.now + length
        while self.now < end:
            self.now += min(TURN_S, max(end - self.now, 1e-4)) * float(self.rng.uniform(0.9, 1.0))
            self._turn()

    def _turn(self) -> None:
        self.server._act()
        self.server._look_after()

    def _people(self) -> None:
        if self.rng.random() < 0.01:
            self.server._answer(
                self.replies,  # type: ignore[arg-type]
                [b"peer", *request_frames(Request(1, "stop", {"by": "Ada", "reason": "storm"}))],
                self.server._stopped,
            )
            self._turn()
        if self.server._latch.reason and self.rng.random() < 0.2:
            self.ask("clear", by="Ada", stop=self.server._latch.stop)
            self._take_hold()
        if self.rng.random() < 0.7:
            return
        held = self.ask("beat", **sealed({"lease": self.lease}))
        if not isinstance(held, dict) or not held["held"]:
            self._take_hold()


def _target(command: Asked, rng: np.random.Generator) -> PoseTarget:
    opening = float(rng.choice(NO_OPENINGS if rng.random() < 0.03 else (0.0, 0.04, 0.08)))
    try:
        values = np.asarray(command.values, dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if values.shape != (6,):
        return PoseTarget(values, np.array([0.0, 0.0, 0.0, 1.0]), opening)
    with np.errstate(all="ignore"), contextlib.suppress(OverflowError, ValueError):
        quat = np.array(quat_of_rotvec(tuple(values[3:].tolist())))  # type: ignore[arg-type]
        return PoseTarget(values[:3], quat, opening)
    return PoseTarget(values[:3], np.full(4, np.nan), opening)


def received(storm: ServerStorm) -> list[Decision | None]:
    """Return what the side got as the sequences that limits are about; None ends one.

    A kernel that rests is not sent again and again, so a gap between two targets is either a rest,
    at which every tick was decided, or time in which the server did not run.
    """
    rows: list[Decision | None] = []
    before: tuple[int, Decision] | None = None
    for got in storm.side.got:
        if got is None:
            rows.append(None)
            before = None
            continue
        number, target = got
        entry = storm.entries[number]
        assert entry.sent is not None
        np.testing.assert_allclose(target.ee_pos, entry.sent.values[:3], rtol=0, atol=1e-12)
        anew = False
        if before is not None:
            gap = entry.tick - before[1].tick
            if gap == 0:  # called too early: the same again
                np.testing.assert_array_equal(entry.sent.values, sent(before[1]))
                continue
            decided = [e for e in storm.entries[before[0] + 1 : number] if e.event == "decision"]
            anew = len({e.tick for e in decided}) < gap - 1
            if not anew:
                rows += [
                    Decision(before[1].sent, "held", (), before[1].tick + k) for k in range(1, gap)
                ]
        decision = Decision(entry.sent, "as asked", (), entry.tick, anew)
        rows.append(decision)
        before = (number, decision)
    return rows


def assert_recorded(storm: ServerStorm) -> None:
    """Whatever was not sent as asked is in the log of changes, with its reason."""
    changed = [e for e in storm.entries if e.event != "decision" or e.verdict != "as asked"]
    kept = {id(entry) for entry in storm.kept}
    assert all(id(entry) in kept for entry in changed)
    assert all(any(entry.reasons) for entry in changed)
    assert not any("internal error" in reason for e in storm.entries for reason in e.reasons)


def worst(storm: ServerStorm) -> dict[str, float]:
    """Return the greatest share of each limit that the side saw used."""
    return excesses(received(storm), storm.limits)
