"""One tick after the other: who drives, what is refused, what the sinks are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scripted_parts import HORIZON, FixedRows, Notebook, ScriptedArbiter, ScriptedPolicy, toy

from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import (
    Abort,
    Array,
    CameraSpec,
    Estimate,
    HandBack,
    HeightGrid,
    Look,
    Motion,
    Observation,
    Outcome,
    Policy,
    Scene,
    Sense,
    Start,
    Step,
    read_only,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.loop import Episode
from zetta.runtime.policies.toy_reach import load
from zetta.sims.toy import ToyEnv, ToySimulator


def lower(ticks: int, closed: list[str] | None = None) -> Motion:
    """Lower the arm by a command of 0.5 for some ticks."""
    try:
        for _ in range(ticks):
            yield np.array([0.0, 0.0, -0.5, 0.0, 0.0, 0.0, -1.0])
    finally:
        if closed is not None:
            closed.append("closed")
    return Outcome(True, "lowered")


def run(
    policy: Policy | None, arbiter: ScriptedArbiter | MotionOnly | PolicyOnly, max_steps: int = 12
) -> Notebook:
    env, scene = toy(max_steps)
    notebook = Notebook()
    Episode(env, scene, arbiter, policy, sinks=[notebook]).run()
    return notebook


# --------------------------------------------------------------------------- the policy drives


def test_policy_is_asked_again_after_replan_steps() -> None:
    notebook = run(ScriptedPolicy(replan_steps=4), PolicyOnly(), max_steps=10)

    expected = [0.01, 0.011, 0.012, 0.013, 0.02, 0.021, 0.022, 0.023, 0.03, 0.031]
    assert notebook.rises() == expected
    assert notebook.results[0].inferences == 3


def test_policy_sees_exactly_the_cameras_of_its_spec_and_the_instruction() -> None:
    policy = ScriptedPolicy()
    run(policy, PolicyOnly())

    assert [set(observation.images) for observation in policy.seen] == [{"front"}] * 3
    assert {observation.instruction for observation in policy.seen} == {
        "put the red cube on the green plate"
    }
    assert all(not observation.depth for observation in policy.seen)


def test_another_instruction_reaches_the_policy_in_place_of_the_tasks_own() -> None:
    env, scene = toy(3)
    policy = ScriptedPolicy()
    Episode(env, scene, PolicyOnly(), policy, instruction="wave").run()

    assert policy.resets[0][0] == policy.seen[0].instruction == "wave"


def test_dispersion_of_the_chunk_is_a_signal_once_there_is_a_chunk() -> None:
    arbiter = ScriptedArbiter()
    run(ScriptedPolicy(), arbiter, max_steps=3)

    assert arbiter.signals == [{}, {"dispersion": 0.25}, {"dispersion": 0.25}]


def test_equal_seeds_give_bit_equal_episodes() -> None:
    first, second = (run(load("toy/reach"), PolicyOnly(), max_steps=60) for _ in range(2))

    assert np.array_equal(
        [tick.action for tick in first.ticks], [tick.action for tick in second.ticks]
    )
    assert np.array_equal(first.poses, second.poses)
    assert first.results[0].scene_digest == second.results[0].scene_digest != ""


# --------------------------------------------------------------------------- motions


def test_start_flushes_the_pending_chunk_and_the_motion_drives_from_that_tick() -> None:
    arbiter = ScriptedArbiter({2: Start(lower(3), "skill:lower")})
    notebook = run(ScriptedPolicy(replan_steps=4), arbiter, max_steps=8)

    assert notebook.rises() == [0.01, 0.011, -0.5, -0.5, -0.5, 0.02, 0.021, 0.022]
    assert notebook.sources() == ["policy"] * 2 + ["skill:lower"] * 3 + ["policy"] * 3
    assert notebook.ticks[2].verdicts[0].reason == "tick 2"
    assert notebook.results[0].sources == {"policy": 5, "skill:lower": 3}
    assert notebook.results[0].interventions == 1


def test_hand_back_resets_the_policy_which_then_sees_a_fresh_observation() -> None:
    policy = ScriptedPolicy()
    notebook = run(policy, ScriptedArbiter({2: Start(lower(3), "skill:lower")}), max_steps=8)

    assert len(policy.resets) == 2
    assert policy.seen[1].proprio.t == notebook.ticks[5].proprio.t


def test_hand_back_draws_from_another_seed_that_is_the_same_every_time() -> None:
    policies = [ScriptedPolicy(), ScriptedPolicy()]
    for policy in policies:
        run(policy, ScriptedArbiter({1: Start(lower(1), "skill:lower")}))

    first, again = ([seed for _, seed in policy.resets] for policy in policies)
    assert first[0] != first[1]
    assert first == again


def test_arbiter_hears_how_a_motion_ended_and_rules_on_under_the_policy() -> None:
    arbiter = ScriptedArbiter({1: Start(lower(2), "skill:lower")})
    run(ScriptedPolicy(), arbiter, max_steps=5)

    assert arbiter.ended == [("skill:lower", Outcome(True, "lowered"))]
    assert arbiter.driving == ["policy", "policy", "skill:lower", "skill:lower", "policy"]


@pytest.mark.parametrize("ruling", [HandBack("enough"), Abort("enough")])
def test_an_interrupted_motion_runs_its_finally_blocks(ruling: HandBack | Abort) -> None:
    closed: list[str] = []
    arbiter = ScriptedArbiter({0: Start(lower(9, closed), "skill:lower"), 3: ruling})
    notebook = run(ScriptedPolicy(), arbiter, max_steps=6)

    assert closed == ["closed"]
    assert notebook.sources()[:3] == ["skill:lower"] * 3
    assert arbiter.ended == []


def test_a_second_start_interrupts_the_first_motion() -> None:
    closed: list[str] = []
    rulings = {0: Start(lower(9, closed), "skill:one"), 2: Start(lower(9), "skill:two")}
    notebook = run(ScriptedPolicy(), ScriptedArbiter(rulings), max_steps=4)

    assert closed == ["closed"]
    assert notebook.sources() == ["skill:one", "skill:one", "skill:two", "skill:two"]
    assert notebook.results[0].interventions == 2


def test_motion_only_ends_the_episode_with_its_motion() -> None:
    notebook = run(None, MotionOnly(lambda: lower(4), "oracle:lower"))

    result = notebook.results[0]
    assert notebook.sources() == ["oracle:lower"] * 4
    assert (result.reason, result.detail) == ("abort", "oracle:lower completed: lowered")
    assert result.interventions == result.inferences == 0


def test_motion_only_serves_one_episode_after_the_other() -> None:
    arbiter = MotionOnly(lambda: lower(4), "oracle:lower")

    assert [len(run(None, arbiter).ticks) for _ in range(2)] == [4, 4]


def test_without_policy_and_motion_the_episode_ends_before_the_first_tick() -> None:
    notebook = run(None, PolicyOnly())

    assert notebook.ticks == []
    assert notebook.results[0].reason == "abort"


# --------------------------------------------------------------------------- looks


class Finder:
    """Finds everything at the place where it is told to."""

    level = "oracle"
    cameras = ()

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], frozenset[str]]] = []

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        self.asked.append((tuple(roles), frozenset(observation.depth)))
        here = read_only([0.0, 0.0, observation.proprio.t])
        return {
            role: Estimate(role, here, here, 0.0, 1.0, observation.proprio.t, "oracle")
            for role in roles
        }

    def heights(self, observation: Observation) -> HeightGrid | None:
        return HeightGrid(read_only([0.0, 0.0]), 0.01, read_only([[0.25]]), observation.proprio.t)


def test_a_look_is_answered_without_a_tick_and_its_estimates_stay() -> None:
    senses: list[Sense] = []

    def looking() -> Motion:
        for _ in range(2):
            yield np.zeros(7)
        senses.append((yield Look(("object",), ("wrist",))))
        senses.append((yield np.zeros(7)))
        return Outcome(True)

    env, scene = toy(9)
    finder, notebook = Finder(), Notebook()
    arbiter = MotionOnly(looking, "skill:look")
    Episode(env, scene, arbiter, localizer=finder, sinks=[notebook]).run()

    assert finder.asked == [(("object",), frozenset({"wrist"}))]
    assert len(notebook.ticks) == 3
    assert senses[0].proprio.t == senses[0].estimates["object"].t == notebook.ticks[2].proprio.t
    assert senses[1].estimates == senses[0].estimates
    assert senses[0].heights is not None
    assert senses[1].heights is senses[0].heights
    assert senses[1].proprio.t > senses[0].proprio.t


def test_an_empty_look_gives_the_present_and_needs_no_localizer() -> None:
    heights: list[float] = []

    def feeling() -> Motion:
        sense = yield Look(())
        heights.append(float(sense.proprio.arms[0].ee_pos[2]))
        yield np.zeros(7)
        return Outcome(True)

    notebook = run(None, MotionOnly(feeling, "skill:feel"))

    assert heights == [notebook.ticks[0].proprio.arms[0].ee_pos[2]]


def endless_looks() -> Motion:
    while True:
        yield Look(())


def a_look_for_something() -> Motion:
    yield Look(("object",))
    return Outcome(True)


@pytest.mark.parametrize(
    ("motion", "words"),
    [(a_look_for_something, "without a localizer"), (endless_looks, "without acting")],
)
def test_a_look_that_cannot_be_served_is_refused(motion: Callable[[], Motion], words: str) -> None:
    with pytest.raises(SpecMismatch, match=words):
        run(None, MotionOnly(motion, "skill:look"))


# --------------------------------------------------------------------------- what is refused


def chunk(**changes: float) -> Array:
    rows = np.zeros((HORIZON, 7))
    rows[2, int(changes.get("column", 2))] = changes["value"]
    return rows


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (chunk(value=float("nan")), "dz = nan"),
        (chunk(value=float("inf")), "dz = inf"),
        (chunk(value=1.01), "dz = 1.01; expected a finite number from -1 to 1"),
        (chunk(value=-1.5, column=6), "gripper = -1.5"),
        (np.zeros((HORIZON, 6)), r"shape \(6, 6\)"),
        (np.zeros((HORIZON - 1, 7)), r"shape \(5, 7\)"),
        (np.zeros(7), r"shape \(7,\)"),
    ],
)
def test_what_is_no_action_is_refused_before_it_reaches_the_environment(
    rows: Array, words: str
) -> None:
    env, scene = toy()
    notebook = Notebook()
    with pytest.raises(SpecMismatch, match=words):
        Episode(env, scene, PolicyOnly(), FixedRows(rows), sinks=[notebook]).run()

    (result,) = notebook.results
    assert (result.reason, result.success) == ("error", False)
    assert result.detail.startswith("SpecMismatch: ")
    assert result.ticks == len(notebook.ticks) <= 2


def test_rounding_outside_the_range_is_forgiven_and_clipped() -> None:
    notebook = run(FixedRows(chunk(value=1.0 + 1e-7)), PolicyOnly(), max_steps=4)

    assert notebook.ticks[2].action[2] == 1.0


def test_a_motions_action_is_checked_too() -> None:
    def wrong() -> Motion:
        yield np.zeros(3)
        return Outcome(True)

    with pytest.raises(SpecMismatch, match="skill:wrong gave an action of shape"):
        run(None, MotionOnly(wrong, "skill:wrong"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cameras": (CameraSpec("agentview", 48, 64),)}, "needs the camera 'agentview'"),
        ({"cameras": (CameraSpec("front", 96, 96),)}, "96x96"),
        ({"control_hz": 10.0}, "10 Hz"),
        ({"render_profile": "full"}, "the simulator and --render that draw 'full'"),
        ({"replan_steps": HORIZON + 1}, "replan_steps must lie between 1 and 6"),
        ({"replan_steps": 0}, "replan_steps"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_before_the_first_tick(
    changes: Mapping[str, object], words: str
) -> None:
    env, scene = toy()
    policy = ScriptedPolicy(**dict(changes))
    with pytest.raises(SpecMismatch, match=words):
        Episode(env, scene, PolicyOnly(), policy)


def test_an_empty_instruction_is_refused() -> None:
    env, scene = toy()
    with pytest.raises(SpecMismatch, match="empty instruction"):
        Episode(env, scene, PolicyOnly(), ScriptedPolicy(), instruction="  ")


def test_a_foreign_profile_passes_only_when_asked_for() -> None:
    env, scene = toy(2)
    policy = ScriptedPolicy(render_profile="full")

    assert Episode(env, scene, PolicyOnly(), policy, any_profile=True).run().ticks == 2


# --------------------------------------------------------------------------- the end


def test_the_loop_owns_the_step_budget_and_a_timeout_is_no_success() -> None:
    result = run(ScriptedPolicy(), PolicyOnly(), max_steps=7).results[0]

    assert (result.ticks, result.reason, result.success) == (7, "truncated", False)


def test_success_comes_from_the_step_and_ends_the_episode() -> None:
    env, scene = toy(160)
    notebook = Notebook()
    expert = MotionOnly(lambda: ToySimulator().expert(env), "oracle:expert")
    result = Episode(env, scene, expert, sinks=[notebook]).run()

    assert result.success
    assert not result.success_at_reset
    assert [step.success for step in notebook.steps] == [False] * (result.ticks - 1) + [True]


def test_a_goal_that_holds_at_reset_is_recorded_apart() -> None:
    class Solved(ToyEnv):
        def reset(self, scene: Scene) -> Step:
            return replace(super().reset(scene), success=True)

    env, scene = toy(3)
    result = Episode(Solved(env.toy), scene, PolicyOnly(), ScriptedPolicy()).run()

    assert result.success_at_reset
    assert (result.success, result.reason) == (False, "truncated")


def test_abort_ends_the_episode_without_another_step() -> None:
    notebook = run(ScriptedPolicy(), ScriptedArbiter({4: Abort("unsafe")}))

    result = notebook.results[0]
    assert (result.reason, result.detail, result.ticks) == ("abort", "unsafe", 4)


def test_an_ended_episode_is_never_stepped() -> None:
    env, scene = toy(2)
    episode = Episode(env, scene, PolicyOnly(), ScriptedPolicy())
    episode.run()

    with pytest.raises(ConfigError, match="over"):
        episode.tick()


def test_sinks_see_every_tick_with_the_pose_before_its_action() -> None:
    notebook = run(ScriptedPolicy(), PolicyOnly())

    env, scene = toy()
    poses = []
    env.reset(scene)
    for tick in notebook.ticks:
        poses.append(env.pose())
        env.step(tick.action)
    assert [tick.index for tick in notebook.ticks] == list(range(12))
    assert np.array_equal(notebook.poses, poses)
    assert np.array_equal(notebook.last_pose, env.pose())
    assert len(notebook.results) == 1


def test_a_sink_that_fails_ends_the_episode_as_an_error() -> None:
    class Full(Notebook):
        def tick(self, *moment: object) -> None:
            raise OSError("no space left")

    env, scene = toy()
    notebook = Notebook()
    with pytest.raises(OSError, match="no space left"):
        Episode(env, scene, PolicyOnly(), ScriptedPolicy(), sinks=[notebook, Full()]).run()
    assert notebook.results[0].detail == "OSError: no space left"


# --------------------------------------------------------------------------- real time


class SlowClock:
    """Time that passes only in sleep, and where a reading costs what the script says."""

    def __init__(self, late_at: int) -> None:
        self.t = 0.0
        self.waits = 0
        self.deadlines: list[float] = []
        self._late_at = late_at

    def now(self) -> float:
        return self.t

    def sleep_until(self, t: float) -> bool:
        self.waits += 1
        self.deadlines.append(t)
        if self.waits == self._late_at:
            self.t = t + 0.2
            return False
        self.t = t
        return True


def test_a_late_tick_is_counted_and_never_caught_up() -> None:
    env, scene = toy(6)
    clock = SlowClock(late_at=2)
    result = Episode(env, scene, PolicyOnly(), ScriptedPolicy(), clock=clock).run()

    assert result.late_ticks == 1
    assert clock.deadlines == pytest.approx([0.05, 0.10, 0.35, 0.40, 0.45])
