"""What a bundle deploys: levels, controls, and that nothing sees what it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.scripted_parts import Notebook
from zetta.critics.shadow import replay_verdicts
from zetta.primitives.roles import parse_instruction
from zetta.runtime.cli.deploy import bundle_of, deploy, split_bundle
from zetta.runtime.cli.options import check_options
from zetta.runtime.cli.replay_critics import monitor_of
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import (
    Action,
    EpisodeResult,
    Init,
    Landmark,
    RunSpec,
    Scene,
    Step,
    Truth,
    read_only,
)
from zetta.runtime.errors import ConfigError
from zetta.runtime.loop import Episode
from zetta.runtime.registry import policy
from zetta.sims.toy import ToyEnv, ToySimulator

MARKER = 7.654321
SPEC = RunSpec("toy", "toy_swap", 0, Init(0), policy="toy/reach", bundle="starter")
QUICK = replace(SPEC, sensing="oracle")
"""Where what is sensed does not matter: simulator truth costs less than looking."""


class Planted(ToyEnv):
    """The toy, with a number in its simulator truth that occurs nowhere else."""

    def step(self, action: Action) -> Step:
        return self._planted(super().step(action))

    def reset(self, scene: Scene) -> Step:
        return self._planted(super().reset(scene))

    def landmarks(self) -> tuple[Landmark, ...]:
        mark = read_only([MARKER, -MARKER, MARKER])
        return tuple(replace(each, position=mark) for each in super().landmarks())

    def _planted(self, step: Step) -> Step:
        assert step.truth is not None
        objects = {name: read_only(np.full(7, MARKER)) for name in step.truth.objects}
        return replace(step, truth=Truth(objects, step.truth.predicates, {"joint": MARKER}))


def run(spec: RunSpec, env: ToyEnv | None = None) -> tuple[EpisodeResult, Notebook]:
    simulator = ToySimulator()
    env = env or simulator.make(spec.suite, spec.task)
    scene = Scene(simulator.task(spec.suite, spec.task), spec.layout, spec.seed)
    driver, notebook = policy(spec.policy), Notebook()
    deployed = deploy(spec, env, scene, driver.spec)
    episode = Episode(
        env,
        scene,
        deployed.arbiter,
        None if deployed.alone else driver,
        signals=deployed.signals,
        localizer=deployed.localizer,
        sinks=[notebook],
    )
    return episode.run(), notebook


def actions(notebook: Notebook) -> list[list[float]]:
    return [tick.action.tolist() for tick in notebook.ticks]


def seen(notebook: Notebook) -> list[float]:
    """Return every number that a critic or a skill could have read."""
    return [value for tick in notebook.ticks for value in tick.signals.values()]


def has_marker(values: list[float]) -> bool:
    return bool(np.isclose(np.abs(np.array(values)), MARKER, atol=1e-6).any())


@pytest.mark.parametrize("bundle", ["starter", "takeover"])
def test_at_level_vision_no_simulator_truth_reaches_signals_or_actions(bundle: str) -> None:
    spec = replace(SPEC, bundle=bundle, options={"signals": "yes"})
    env = Planted(ToySimulator().make(spec.suite, spec.task).toy)
    result, notebook = run(spec, env)
    _, untouched = run(spec)
    assert any(source.startswith("skill:") for source in result.sources)
    assert not has_marker(seen(notebook))
    assert actions(notebook) == actions(untouched)


def test_at_level_oracle_the_planted_numbers_are_seen_so_the_check_can_fail() -> None:
    env = Planted(ToySimulator().make(SPEC.suite, SPEC.task).toy)
    _, notebook = run(replace(SPEC, sensing="oracle", options={"signals": "yes"}), env)
    assert has_marker(seen(notebook))


def test_without_a_bundle_the_actions_are_those_of_the_bare_policy() -> None:
    bare = replace(QUICK, bundle="none")
    _, alone = run(bare)
    _, watched = run(replace(bare, options={"signals": "yes"}))
    _, shadowed = run(replace(QUICK, options={"shadow": "yes"}))
    assert actions(alone) == actions(watched) == actions(shadowed)


def test_shadow_mode_records_what_starter_would_have_done() -> None:
    result, _ = run(replace(QUICK, options={"shadow": "yes"}))
    live, _ = run(QUICK)
    assert live.recoveries
    first, real = result.recoveries[0], live.recoveries[0]
    assert (first.tick, first.skill, first.ending) == (real.tick, real.skill, "shadow")


def test_verdicts_of_the_live_run_follow_from_its_log() -> None:
    fired = 0
    for k in range(6):
        spec = replace(QUICK, layout=Init(k))
        _, notebook = run(spec)
        instruction = ToySimulator().task(spec.suite, spec.task).instruction
        monitor = monitor_of(bundle_of("starter"), instruction, 20.0)
        live = [tick.verdicts for tick in notebook.ticks]
        assert list(replay_verdicts(notebook.ticks, monitor, 20.0)) == live
        fired += sum(bool(verdicts) for verdicts in live)
    assert fired


def test_the_share_bounds_what_skills_drive() -> None:
    for share in ("0", "0.1"):
        result, _ = run(replace(QUICK, options={"recovery_share": share}))
        driven = sum(n for source, n in result.sources.items() if source != "policy")
        assert driven <= float(share) * 160


def test_takeover_never_asks_the_policy_and_sham_never_drives() -> None:
    taken, _ = run(replace(QUICK, bundle="takeover"))
    assert set(taken.sources) == {"skill:takeover"}
    assert taken.inferences == 0
    sham, _ = run(replace(QUICK, bundle="sham"))
    assert set(sham.sources) == {"policy"}
    assert sham.interventions == len(sham.recoveries) > 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bundle": "startr"}, "did you mean 'starter'"),
        ({"bundle": "/nowhere/at/all"}, "folder of skills"),
        ({"bundle": "starter", "sensing": "proprio"}, "senses at level 'vision'"),
        ({"options": {"recovery_share": "2"}}, "from 0 to 1"),
        ({"options": {"recovery_share": "much"}}, "from 0 to 1"),
        ({"options": {"localizer": "tinny"}}, "did you mean 'tiny'"),
    ],
)
def test_what_cannot_be_deployed_is_refused(changes: Mapping[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_options(replace(SPEC, **changes))  # type: ignore[arg-type]


def test_an_empty_folder_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no skill"):
        bundle_of(str(tmp_path))


def test_a_control_stands_for_the_starter_bundle_unless_another_follows() -> None:
    assert split_bundle("sham") == ("sham", "starter")
    assert split_bundle("random:my/skills") == ("random", "my/skills")
    assert split_bundle("none") == ("", "none")


@pytest.mark.parametrize(
    ("bundle", "options", "words"),
    [
        ("takeover", {"shadow": "yes"}, "leave --shadow out"),
        ("takeover", {"signals": "yes"}, "leave --signals out"),
        ("random:regrasp", {}, "which the bundle .regrasp. does not hold"),
        ("takeover:none", {}, "a control of nothing"),
        ("none+starter", {}, "among its parts"),
        ("starter+", {}, "among its parts"),
        ("starter", {"calibration": "/dev/null"}, "no regular file"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_built(
    bundle: str, options: Mapping[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_options(replace(SPEC, bundle=bundle, options=options))


def test_a_knob_is_turned_the_way_that_the_instruction_or_the_errand_wants() -> None:
    env = ToySimulator().make(SPEC.suite, SPEC.task)
    both = parse_instruction("turn on the stove and turn off the oven")
    sight = Sight(QUICK, env, both)

    assert not sight.robot().clockwise, "the part is that of the first errand"
    assert [sight.robot(errand).clockwise for errand in both.steps] == [False, True]
    assert Sight(QUICK, env, parse_instruction("switch off the stove")).robot().clockwise
    assert not Sight(QUICK, env, None).robot().clockwise
