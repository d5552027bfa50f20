"""A camera that sends 20 pictures a second until it is stopped: prints where."""

from __future__ import annotations

import time

from tests.hw_drivers.camera_parts import picture
from zetta.hw_drivers.camera_stream import CameraPublisher
from zetta.hw_drivers.cameras import Frame

publisher = CameraPublisher("tcp://127.0.0.1:*", "front")
print(publisher.endpoint, flush=True)
number = 0
while True:
    number += 1
    publisher.send(Frame(picture(number), time.monotonic()))
    time.sleep(0.05)
