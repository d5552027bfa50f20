"""Where the four sockets of deoxys are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeoxysEndpoints:
    """The four sockets. `deoxys_endpoints` makes them of two addresses and the published ports."""

    command: str
    """Bound here; the robot side subscribes to it."""
    state: str
    """Bound by the robot side."""
    gripper_command: str
    gripper_state: str


def deoxys_endpoints(
    pc: str, nuc: str, ports: tuple[int, int, int, int] = (5555, 5556, 5557, 5558)
) -> DeoxysEndpoints:
    """Return the endpoints for the addresses of this computer and of the robot's computer.

    Args:
        pc: our address on the cable, as the robot side's configuration has it.
        nuc: the address of the computer beside the robot.
        ports: command, state, gripper command, gripper state; the default is what deoxys ships.
    """
    command, state, gripper_command, gripper_state = ports
    return DeoxysEndpoints(
        f"tcp://{pc}:{command}",
        f"tcp://{nuc}:{state}",
        f"tcp://{pc}:{gripper_command}",
        f"tcp://{nuc}:{gripper_state}",
    )
