"""The dry run held against what comes of the commands."""

from __future__ import annotations

import numpy as np
import pytest

from zetta.primitives.commands import Move, Rotate
from zetta.runtime.cli.bench_dry_run import Attempt, figures_of, random_command, try_commands
from zetta.runtime.cli.bench_process import ArmPlace
from zetta.runtime.core import Init, Scene
from zetta.runtime.errors import ConfigError
from zetta.sims.toy import ToySimulator

PLACE = ArmPlace("toy", "toy_pick", 0, "fast")


def attempts_in_the_toy() -> list[Attempt]:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    return [Attempt(**each) for each in try_commands(simulator, env, PLACE, {"scenes": 3})]  # type: ignore[arg-type]


def test_commands_are_the_same_in_every_run_and_of_both_kinds() -> None:
    drawn = [random_command(np.random.default_rng(seed)) for seed in range(60)]
    assert drawn == [random_command(np.random.default_rng(seed)) for seed in range(60)]
    assert {type(command) for command in drawn} == {Move, Rotate}


def test_in_the_toy_what_is_accepted_arrives_and_what_is_refused_does_not() -> None:
    attempts = attempts_in_the_toy()
    moves = [attempt for attempt in attempts if " move " in f" {attempt.command}"]
    accepted = [attempt for attempt in moves if attempt.verdict == "accepted"]
    refused = [attempt for attempt in moves if attempt.verdict == "limit"]
    assert accepted
    assert refused
    assert sum(attempt.arrived for attempt in accepted) >= 0.8 * len(accepted)
    assert not any(attempt.arrived for attempt in refused)


def test_figures_count_each_verdict_and_the_share_that_arrived() -> None:
    near, far = ("move x 1", "accepted", "reached", 0.001, 0.0), (0.05, 0.0)
    attempts = [
        Attempt(*near),
        Attempt("move x 2", "accepted", "contact", *far),
        Attempt("move x 9", "limit", "limit", None, None),
    ]
    figures = {figure.name: figure.value for figure in figures_of("s", attempts)}
    assert figures["s_accepted"] == 2
    assert figures["s_accepted_arrived"] == pytest.approx(0.5)
    assert figures["s_accepted_met_nothing_arrived"] == 1.0
    assert figures["s_limit_arrived"] == 0.0
    assert figures["s_unreachable"] == 0
    assert "s_unreachable_arrived" not in figures


def test_two_arms_are_refused_with_the_reason() -> None:
    simulator = ToySimulator()
    env = simulator.make("toy_two_arm", 0)
    env.reset(Scene(simulator.task("toy_two_arm", 0), Init(0)))
    with pytest.raises(ConfigError, match="one arm whose workspace"):
        try_commands(simulator, env, PLACE, {"scenes": 1})
