"""What an arm and its cameras lack, found by looking only: nothing is taken hold of or moved."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from zetta.hw_drivers.arm import ArmFacts, ArmReading
from zetta.hw_drivers.arm_check_numbers import WIDEST_M, outside, wrong_clock, wrong_numbers
from zetta.hw_drivers.arm_guard import check_fit
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.arm_messages import (
    MAX_BYTES,
    Beat,
    StateMessage,
    Welcome,
    beside,
    opened,
    sealed,
)
from zetta.hw_drivers.arm_person import hello, what_is_stopped
from zetta.hw_drivers.arm_setup import ArmSetup
from zetta.hw_drivers.arm_sockets import Newest
from zetta.hw_drivers.camera_sources import open_camera
from zetta.hw_drivers.clock_offset import ClockOffset
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, ZettaError
from zetta.runtime.transport import Dealer
from zetta.runtime.wire import from_wire, unpack

State: TypeAlias = Literal["good", "note", "wrong"]

WATCHED_S: Final = 1.0
"""How long the stream of states is watched."""
BEATS: Final = 8
OLDEST_S: Final = 0.1
TWIN_MODEL: Final = "twin"
"""How models of arms begin that are not there; their pictures have no noise."""
FIRST_S: Final = 5.0
"""How old the first picture of a camera may be: it is only compared with the next."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    said: str


def check_arm(
    url: str, setup: ArmSetup | None = None, robot: str = "", keys: ClientKeys | None = None
) -> tuple[Finding, ...]:
    """Look at an arm, and at the cameras of its set-up.

    Raises:
        ConfigError: the URL is no place that can be connected to.
        InfraError: nobody answers there.
        SpecMismatch: it is another robot, or speaks another protocol.
    """
    dealer = Dealer(url, keys)
    try:
        welcome = hello(dealer, robot, 5.0)
        offset, trouble = _clocks(dealer)
        found = [
            Finding("robot", "good", f"{welcome.arm.robot} ({welcome.arm.model})"),
            *_limits(welcome.arm),
            _guard(welcome),
            _clock(offset),
            *_states(beside(url, welcome.state_port), welcome, offset, trouble, keys),
            *_stop(url, keys),
        ]
    finally:
        dealer.close()
    if setup is not None:
        found += [*_same_place(url, setup), _own_limits(setup, welcome.arm)]
        if "pose" not in welcome.arm.accepts:
            found.append(Finding("targets", "wrong", f"takes {welcome.arm.accepts}, not poses"))
        drawn = welcome.arm.model.startswith(TWIN_MODEL)
        found += [_camera(name, setup, keys, drawn) for name in setup.cameras]
    return tuple(found)


def _clocks(dealer: Dealer) -> tuple[ClockOffset, str]:
    offset, trouble = ClockOffset(), ""
    for _ in range(BEATS):
        t0 = time.monotonic()
        answer = dealer.call("beat", sealed({"lease": ""}), 2.0)
        t3 = time.monotonic()
        beat = from_wire(Beat, opened(answer))
        offset.add(t0, beat.t_received, beat.t_sent, t3)
        trouble = beat.trouble
    return offset, trouble


def _clock(offset: ClockOffset) -> Finding:
    bound = offset.bound(time.monotonic())
    said = f"known to {1000.0 * bound:.2f} ms"
    return Finding("clock", "good" if bound < 0.01 else "note", said)


def _limits(facts: ArmFacts) -> list[Finding]:
    found = []
    low, high = facts.joint_low, facts.joint_high
    if len(low) != len(facts.joints) or len(high) != len(facts.joints):
        found.append(Finding("joint limits", "wrong", "the driver does not tell them"))
    elif not all(a < b and math.isfinite(b - a) for a, b in zip(low, high, strict=True)):
        found.append(Finding("joint limits", "wrong", f"not from low to high: {low}, {high}"))
    else:
        found.append(Finding("joint limits", "good", f"{len(low)} joints"))
    if len(facts.workspace_low) != 3 or len(facts.workspace_high) != 3:
        found.append(Finding("workspace", "wrong", "no box is declared for the hand"))
    else:
        box = f"{facts.workspace_low} to {facts.workspace_high} m"
        found.append(Finding("workspace", "good", box))
    if not 0.0 < facts.gripper_max < WIDEST_M:
        said = f"opens {facts.gripper_max:g}; metres are wanted"
        found.append(Finding("gripper", "wrong", said))
    return found


def _guard(welcome: Welcome) -> Finding:
    if welcome.limits:
        return Finding("kernel there", "good", f"keeps the limits of {welcome.limits}")
    return Finding("kernel there", "wrong", "nothing at the robot limits what is sent to the arm")


def _same_place(url: str, setup: ArmSetup) -> list[Finding]:
    """Say whether a set-up leads to the arm that was looked at."""
    if not setup.url or _place(setup.url) == _place(url):
        return []
    said = f"looked at {url}, but the set-up drives {setup.url}; put the same into both"
    return [Finding("url", "wrong", said)]


def _place(url: str) -> str:
    return url.strip().rstrip("/").lower().replace("//localhost:", "//127.0.0.1:")


def _own_limits(setup: ArmSetup, facts: ArmFacts) -> Finding:
    """Say whether the limits that a set-up names are there and fit the arm."""
    if not setup.limits:
        return Finding("limits", "wrong", 'limits missing; add limits = "panda" or a file')
    try:
        limits = load_limits(setup.limits)
        check_fit(limits, facts)
    except ConfigError as error:
        return Finding("limits", "wrong", str(error))
    return Finding("limits", "good", f"of {limits.arm}, {setup.limits}")


def _states(
    endpoint: str,
    welcome: Welcome,
    offset: ClockOffset,
    trouble: str,
    keys: ClientKeys | None,
) -> list[Finding]:
    states = Newest(endpoint, keys, MAX_BYTES)
    first: StateMessage | None = None
    last: StateMessage | None = None
    began = until = time.monotonic()
    try:
        while time.monotonic() < until + WATCHED_S:
            raw = states.receive(WATCHED_S)
            if raw is None:
                continue
            last = from_wire(StateMessage, opened(unpack(raw)))
            if first is None:
                first, began = last, time.monotonic()
                until = began
    except (SpecMismatch, InfraError) as error:
        return [Finding("state", "wrong", str(error))]
    finally:
        states.close()
    if first is None or last is None:
        why = trouble or f"nothing came from {endpoint} within {WATCHED_S:g} s; is the port open?"
        return [Finding("state", "wrong", f"no state: {why}")]
    now = time.monotonic()
    age = now + offset.seconds - last.reading.t
    t_passed = last.reading.t - first.reading.t
    odd = wrong_clock(now - began, t_passed, age, offset.bound(now))
    hz = (last.number - first.number) / max(now - began, 1e-9)
    held = f", held by {last.owner}" if last.owner else ", held by nobody"
    return [
        *([Finding("times", "wrong", odd)] if odd else []),
        Finding("state", "good" if age < OLDEST_S else "wrong", f"{1000.0 * age:.0f} ms old{held}"),
        Finding("state rate", "good" if hz > 0.5 * welcome.state_hz else "note", f"{hz:.0f} Hz"),
        _mode(last.reading),
        *units(last.reading, welcome.arm),
    ]


def _stop(url: str, keys: ClientKeys | None) -> list[Finding]:
    """Name the stop that is latched, as the person who clears it has to."""
    try:
        latched = what_is_stopped(url, keys)
    except (InfraError, SpecMismatch) as error:
        return [Finding("stop", "note", str(error))]
    if latched is None:
        return []
    said = f"{latched.said}; look at the arm, then: zetta arms clear {url} --by YOUR-NAME --stop"
    return [Finding("stop", "wrong", f"{said} {latched.stop}")]


def _mode(reading: ArmReading) -> Finding:
    said = f"{reading.mode}: {reading.reason}" if reading.reason else reading.mode
    usable = reading.mode not in ("stopped", "fault")
    return Finding("mode", "good" if usable else "wrong", said)


def units(reading: ArmReading, facts: ArmFacts) -> list[Finding]:
    """Say which numbers of a reading cannot be in the units that they should be in."""
    wrong = wrong_numbers(reading, facts)
    if wrong:
        return [Finding("units", "wrong", "; ".join(wrong))]
    found = [Finding("units", "good", "SI, as far as the numbers tell")]
    far = outside(reading, facts)
    if far > 0.0:
        said = f"{100.0 * far:.1f} cm outside its workspace; guide it back before it is driven"
        found.append(Finding("hand", "note", said))
    return found


def _camera(name: str, setup: ArmSetup, keys: ClientKeys | None, drawn: bool) -> Finding:
    label = f"camera {name}"
    try:
        source = open_camera(name, setup.cameras[name], keys)
    except (ZettaError, ConfigError) as error:
        return Finding(label, "wrong", str(error))
    try:
        first = source.latest(FIRST_S)
        time.sleep(2.0 * setup.max_frame_age_s)  # the first picture says nothing about the next
        frame = source.latest(setup.max_frame_age_s)
    except ZettaError as error:
        return Finding(label, "wrong", str(error))
    finally:
        source.close()
    if int(np.ptp(frame.image)) < 8:
        return Finding(label, "wrong", "the picture has one colour only; is the lens covered?")
    size = f"{frame.image.shape[1]} x {frame.image.shape[0]}"
    if not drawn and frame.t > first.t and np.array_equal(frame.image, first.image):
        said = f"{size}, the same picture again and again; a real camera has noise: is it frozen?"
        return Finding(label, "note", said)
    return Finding(label, "good", f"{size}, {time.monotonic() - frame.t:.2f} s old")
