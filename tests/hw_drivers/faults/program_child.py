"""A program that sways an arm at 20 Hz through a kernel of its own: `URL LIMITS SENT [KEYS]`.

It writes the number and the time of each command that it sends. Where the arm is lost it connects
again and goes on, as a program does that a person has started anew.
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import numpy as np

from zetta.hw_drivers.arm import PoseTarget
from zetta.hw_drivers.arm_guarded import GuardedArm
from zetta.hw_drivers.arm_limits import load_limits
from zetta.hw_drivers.zmq_arm import ZmqArm
from zetta.runtime.curve_keys import read_client_keys
from zetta.runtime.errors import InfraError, SafetyStop

PERIOD_S = 0.05
REACH_M, TURNS_HZ = 0.12, 0.3


def sway(arm: GuardedArm, link: ZmqArm, sent: int) -> None:
    start = arm.state(1.0)
    begun, tick = time.monotonic(), 0
    while True:
        t = time.monotonic() - begun
        y = REACH_M * math.sin(2.0 * math.pi * TURNS_HZ * t)
        place = start.ee_pos + np.array([0.0, y, 0.0])
        # Before it is sent: who reads must not find a command that nobody sent.
        os.write(sent, f"{time.monotonic():.6f} {link._seq + 1}\n".encode())
        arm.command(PoseTarget(place, start.ee_quat, start.gripper_opening))
        tick = max(tick + 1, int(t / PERIOD_S))
        time.sleep(max(0.0, begun + tick * PERIOD_S - time.monotonic()))


def main() -> None:
    url, limits, sent, *keys = sys.argv[1:]
    file = os.open(sent, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    link = ZmqArm(url, owner="program", keys=read_client_keys(Path(keys[0])) if keys else None)
    arm = GuardedArm(link, load_limits(limits), PERIOD_S)
    while True:
        try:
            arm.connect(10.0)
            sway(arm, link, file)
        except SafetyStop as stop:
            print(f"stopped: {stop}", flush=True)
            time.sleep(0.2)
        except InfraError as error:
            print(f"lost: {error}", flush=True)
            time.sleep(0.05)


if __name__ == "__main__":
    main()
