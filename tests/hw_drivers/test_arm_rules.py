"""The link's rules without sockets: leases, what counts, clocks, and what crosses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hw_drivers.arm_parts import pose
from zetta.hw_drivers.arm import JointTarget
from zetta.hw_drivers.arm_lease import MAX_TTL_S, Ownership
from zetta.hw_drivers.arm_messages import (
    COUNTED,
    Command,
    StateMessage,
    command_to_wire,
    opened,
    read_command,
)
from zetta.hw_drivers.clock_offset import ClockOffset
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.errors import InfraError, SpecMismatch
from zetta.runtime.wire import from_wire, pack, to_wire, unpack

COMMANDS = st.lists(
    st.tuples(
        st.integers(0, 30),  # its number
        st.floats(-2.0, 2.0),  # its deadline, from when it is judged
        st.floats(0.0, 0.3),  # how long after the one before it comes
        st.booleans(),  # with the right token
    ),
    max_size=40,
)


@given(COMMANDS)
def test_counted_commands_are_fresh_owned_and_in_order(
    commands: list[tuple[int, float, float, bool]],
) -> None:
    ownership, now = Ownership(1.0), 100.0
    token, counted, until = ownership.take("ada", now), [0], now + 1.0
    for seq, ahead, later, ours in commands:
        now += later
        command = Command("s", token if ours else "x" * 32, seq, now + ahead, pose(), "policy")
        fault = ownership.fault_of(command, now)
        if fault:
            assert fault in COUNTED
            continue
        assert ours
        assert now < until
        assert 0.0 < ahead <= MAX_TTL_S + 1e-9
        assert seq > counted[-1]
        counted.append(seq)


def test_arm_has_one_owner_until_the_lease_ends() -> None:
    ownership = Ownership(1.0)
    first = ownership.take("ada", 0.0)
    with pytest.raises(InfraError, match="held by 'ada'"):
        ownership.take("bob", 0.9)
    assert ownership.renew(first, 0.9)
    assert ownership.owner(1.8) == "ada"
    second = ownership.take("bob", 2.0)
    assert not ownership.renew(first, 2.1)
    assert ownership.renew(second, 2.1)
    ownership.end()
    assert ownership.owner(2.2) == ""


@given(
    st.floats(-1e6, 1e6),
    st.lists(st.tuples(*[st.floats(0.0, 0.5)] * 3), min_size=1, max_size=30),
    st.floats(-5e-5, 5e-5),
)
def test_true_offset_lies_within_the_bound(
    offset: float, exchanges: list[tuple[float, float, float]], drift: float
) -> None:
    estimate, now = ClockOffset(), 50.0

    def theirs(t: float) -> float:
        return t + offset + drift * t

    for there, thinking, back in exchanges:
        received = now + there
        answered = received + thinking
        end = answered + back
        estimate.add(now, theirs(received), theirs(answered), end)
        now = end + 0.2
        # What their clock drifts during one exchange is not in the bound of NTP; it is below 1e-4.
        assert abs(theirs(now) - now - estimate.seconds) <= estimate.bound(now) + 1e-4


def test_offset_is_unknown_before_the_first_exchange() -> None:
    assert ClockOffset().bound(1.0) == float("inf")


@pytest.mark.parametrize("target", [pose(), JointTarget(np.arange(7.0), 0.01)])
def test_command_crosses_unchanged(target: object) -> None:
    command = Command("s", "t", 3, 1.5, target, "agent:a")  # type: ignore[arg-type]
    back = read_command(opened(unpack(pack(command_to_wire(command)))))
    assert to_wire(back) is not None
    assert (back.session, back.lease, back.seq, back.deadline) == ("s", "t", 3, 1.5)
    assert type(back.target) is type(target)
    assert pack(command_to_wire(back)) == pack(command_to_wire(command))


JSON = (
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.floats(), max_size=4)
    | st.dictionaries(st.sampled_from(["ee_pos", "ee_quat", "gripper_opening"]), st.floats())
)
NAMES = st.sampled_from(
    ["session", "lease", "seq", "deadline", "driver", "pose", "joints", "other"]
)


@given(st.dictionaries(NAMES, JSON))
def test_anything_else_is_no_command(given_: dict[str, object]) -> None:
    try:
        command = read_command(given_)
    except SpecMismatch:
        return
    assert isinstance(command, Command)


def test_state_crosses_unchanged() -> None:
    message = StateMessage(1, "s", 4, SimpleSide().read(), "ada", 7, dict.fromkeys(COUNTED, 1))
    raw = pack(to_wire(message))
    assert len(raw) < 1500  # one packet of the network
    assert pack(to_wire(from_wire(StateMessage, unpack(raw)))) == raw
