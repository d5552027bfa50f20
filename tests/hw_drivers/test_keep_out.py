from __future__ import annotations

import numpy as np

from zetta.hw_drivers.keep_out import meets
from zetta.runtime.workspace import Box


def test_a_way_is_held_against_a_box_piece_by_piece() -> None:
    box = Box((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    rng = np.random.default_rng(1)
    for _ in range(300):
        line = rng.uniform(-2.0, 3.0, (2, 3)) * rng.choice([0.0, 1.0], (1, 3), p=[0.2, 0.8])
        shares = np.linspace(0.0, 1.0, 2001)[:, None]
        points = line[0] + shares * (line[1] - line[0])
        inside = ((points >= 0.0) & (points <= 1.0)).all(axis=1)
        if inside.any():
            assert meets(line, box)
        elif meets(line, box):  # a corner that was cut between two of the points
            assert ((points > -0.01) & (points < 1.01)).all(axis=1).any()
    assert meets(np.array([[0.5, 0.5, 0.5]]), box)
    assert not meets(np.array([[1.5, 0.5, 0.5]]), box)
