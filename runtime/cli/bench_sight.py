"""How well a localiser finds what an instruction names, against simulator truth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from zetta.primitives.localize.oracle import OracleFinder
from zetta.primitives.localize.role_localizer import RoleLocalizer
from zetta.primitives.localize.sensor_noise import as_sensed
from zetta.primitives.localize.sightings import Finder
from zetta.primitives.roles import parse_instruction
from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess
from zetta.runtime.cli.sight import finder_named
from zetta.runtime.core import Env, Init, Scene, Simulator
from zetta.runtime.errors import ConfigError
from zetta.sims.surveyed import Surveyed

NEAR_M: Final = 0.015
"""What is found within this distance can be grasped, metres."""
OTHER_M: Final = 0.05
"""What is found further off than this, metres, is something else."""
TWIN_TARGET: Final = 0.95
LOOK_TARGET_MS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Look:
    """One role of one scene, looked for once."""

    role: str
    error: float
    """Horizontal distance from the truth, metres; NaN when it was not found."""
    related: bool
    """The instruction tells it from its like by a relation, such as "next to the ramekin"."""
    cpu_ms: float
    """CPU time of the whole look without drawing."""


def sight_figures(
    sim: str, suite: str, tasks: Sequence[int], scenes: int, localizer: str, noise: bool
) -> list[Figure]:
    """Look at the first `scenes` layouts of each task, each task in a process of its own."""
    looks: list[Look] = []
    for task in tasks:
        with ArmProcess(ArmPlace(sim, suite, task, "fast")) as process:
            said = process.ask("sight", scenes=scenes, localizer=localizer, noise=noise)
            looks += [Look(**each) for each in said]
    return list(_figures(suite, looks))


def _figures(suite: str, looks: Sequence[Look]) -> Iterator[Figure]:
    for role in sorted({look.role for look in looks}):
        own = [look for look in looks if look.role == role]
        found = [look.error for look in own if not math.isnan(look.error)]
        name = f"{suite}_{role}"
        yield Figure(f"{name}_looks", float(len(own)), "")
        yield Figure(f"{name}_found", _share(found, own), "", higher_is_better=True)
        if found:
            p50, p90 = (1000.0 * float(q) for q in np.quantile(found, (0.5, 0.9)))
            yield Figure(f"{name}_xy_p50", p50, "mm")
            yield Figure(f"{name}_xy_p90", p90, "mm")
        near = [error for error in found if error < NEAR_M]
        yield Figure(f"{name}_within_15mm", _share(near, own), "", higher_is_better=True)
    told = [look for look in looks if look.related]
    if told:
        right = [look for look in told if look.error < OTHER_M]
        yield Figure(
            f"{suite}_right_one_by_relation", _share(right, told), f"of {len(told)}",
            target=TWIN_TARGET, higher_is_better=True,
        )  # fmt: skip
    cpu = median(look.cpu_ms for look in looks)
    yield Figure(f"{suite}_look_cpu_p50", cpu, "CPU ms", target=LOOK_TARGET_MS)


def _share(part: Sequence[object], whole: Sequence[object]) -> float:
    return len(part) / len(whole)


# --------------------------------------------------------------------------- in the child


def look_at(
    simulator: Simulator, env: Env, place: ArmPlace, request: Mapping[str, Any]
) -> list[dict[str, object]]:
    """Look at scenes and return what `Look` holds, as plain values.

    Raises:
        ConfigError: the environment tells no truth about places.
    """
    if not isinstance(env, Surveyed):
        raise ConfigError(f"the environment {env.spec.name} tells no simulator truth about places")
    finder = finder_named(request["localizer"], place.sim, env.spec.render_profile)
    task = simulator.task(place.suite, place.task)
    looks: list[Look] = []
    for index in range(request["scenes"]):
        env.reset(Scene(task, Init(index)))
        looks += _look_once(env, finder, env.landmarks, request["noise"])
    return [asdict(look) for look in looks]


def _look_once(
    env: Env, finder: Finder, landmarks: Callable[[], Any], noise: bool
) -> Iterator[Look]:
    cameras = [c.name for c in env.spec.cameras if c.mount == "world"]
    observation = env.observe(cameras, depth=True)
    roles = parse_instruction(observation.instruction)
    truth = RoleLocalizer(OracleFinder(landmarks), roles).locate(observation, list(roles.phrases))
    sensed = as_sensed(observation) if noise else observation
    start = time.process_time()
    found = RoleLocalizer(finder, roles).locate(sensed, list(roles.phrases))
    cpu_ms = 1000.0 * (time.process_time() - start)
    for role, phrase in roles.phrases.items():
        if role not in truth:
            continue
        error = math.nan
        if role in found:
            error = math.dist(found[role].position[:2], truth[role].position[:2])
        yield Look(role, error, phrase.relation is not None, cpu_ms)
