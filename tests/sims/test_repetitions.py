"""Snapshots of worlds that are begun again and repeated."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.runtime.core import Init, Sampled, Scene, Task
from zetta.runtime.errors import SpecMismatch
from zetta.sims import repetitions


def test_a_snapshot_is_read_as_it_was_written_and_refuses_others() -> None:
    task, rows = Task("robotwin_blocks", 0, "do it", 9), [np.arange(14.0), np.ones(14)]
    for scene in (Scene(task, Init(3)), Scene(task, Sampled(), 7)):
        told = repetitions.dump(scene, rows, {"sapien": "3.0.3"})
        found, actions = repetitions.load(told, task, {"sapien": "3.0.3"})
        assert found == scene
        np.testing.assert_array_equal(actions, rows)
        with pytest.raises(SpecMismatch, match=r"3\.0\.4"):
            repetitions.load(told, task, {"sapien": "3.0.4"})
    empty = repetitions.dump(Scene(task, Init(0)), [], {})
    assert len(repetitions.load(empty, task, {})[1]) == 0
    with pytest.raises(SpecMismatch, match="no snapshot of such a world"):
        repetitions.load(b"anything", task, {})
    with pytest.raises(SpecMismatch, match="robotwin_blocks#1"):
        repetitions.load(empty, Task("robotwin_blocks", 1, "do it", 9), {})
