from __future__ import annotations

import subprocess
import sys

import pytest

from zetta.runtime import registry
from zetta.runtime.core import Simulator
from zetta.runtime.errors import ConfigError

ENGINES = ("mujoco", "robosuite", "torch", "onnxruntime", "OpenGL")


def modules_after(code: str) -> set[str]:
    """Return the names of all modules that a fresh process has loaded after `code`."""
    child = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(child.stdout.split())


def test_listing_names_imports_neither_simulators_nor_policies() -> None:
    loaded = modules_after(
        "from zetta.runtime import registry\n"
        "for group in ('sims', 'policies'): registry.names(group)"
    )
    assert "zetta.runtime.registry" in loaded
    ours = {name for name in loaded if name.startswith(("zetta.sims", "zetta.runtime.policies"))}
    assert ours == set()
    assert loaded.isdisjoint(ENGINES)


@pytest.mark.parametrize("sim", sorted(registry.SIMS))
def test_listing_suites_starts_no_engine(sim: str) -> None:
    loaded = modules_after(
        "from zetta.runtime import registry\nfrom zetta.runtime.errors import ZettaError\n"
        f"try: registry.simulator({sim!r}).suites()\nexcept ZettaError: pass"
    )
    assert registry.SIMS[sim].partition(":")[0] in loaded
    assert loaded.isdisjoint(ENGINES)


@pytest.mark.parametrize("name", sorted(registry.SIMS))
def test_simulators_bear_the_name_they_are_registered_under(name: str) -> None:
    simulator: Simulator = registry.simulator(name)
    assert simulator.name == name


@pytest.mark.parametrize(
    ("resolve", "wrong", "near"),
    [
        (registry.simulator, "liberoo", "libero"),
        (registry.simulator, "toi", "toy"),
        (registry.policy, "toy/reech", "toy/reach"),
        (registry.policy, "zetta/tinny", "zetta/tiny"),
    ],
)
def test_unknown_names_suggest_the_nearest(resolve: object, wrong: str, near: str) -> None:
    assert callable(resolve)
    with pytest.raises(ConfigError, match=near) as error:
        resolve(wrong)
    assert wrong in str(error.value)
    assert "\n" not in str(error.value)
