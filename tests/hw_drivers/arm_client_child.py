"""A program that moves an arm to and fro at 20 Hz until somebody ends it: `URL`."""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from zetta.hw_drivers.arm import PoseTarget
from zetta.hw_drivers.zmq_arm import ZmqArm

arm = ZmqArm(sys.argv[1], owner="child")
arm.connect(10.0)
start = time.monotonic()
while True:
    y = 0.1 * math.sin(time.monotonic() - start)
    arm.command(PoseTarget(np.array([0.4, y, 0.3]), np.array([1.0, 0.0, 0.0, 0.0]), 0.08))
    time.sleep(0.05)
