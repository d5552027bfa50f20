"""What counts as done on the served twin, and that the benchmark asks for the twin."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.hw_drivers.frames import Pose
from zetta.hw_drivers.twin.tasks import TASKS
from zetta.hw_drivers.twin.things import THINGS
from zetta.runtime.cli.bench_twin_link import stands
from zetta.runtime.cli.main import main

ERRAND = next(task for task in TASKS if task.on)
UP = np.array([0.0, 0.0, 0.0, 1.0])


def placed(aside: float, lifted: float) -> dict[str, Pose]:
    thing, plate = THINGS[ERRAND.thing].size, THINGS[ERRAND.on].size
    height = plate[2] + thing[2] / 2.0 + lifted
    return {
        ERRAND.on: Pose(np.array([0.5, 0.0, plate[2] / 2.0]), UP),
        ERRAND.thing: Pose(np.array([0.5 + aside, 0.0, height]), UP),
    }


def test_a_thing_stands_on_its_plate_and_neither_hangs_over_it_nor_lies_beside_it() -> None:
    assert stands(ERRAND, placed(0.02, 0.0))
    assert not stands(ERRAND, placed(0.02, 0.05))
    assert not stands(ERRAND, placed(0.2, 0.0))


def test_only_the_twin_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "twin-link", "--sim", "toy"])
    assert ended.value.code == 1
    assert "add --sim twin" in capsys.readouterr().err
