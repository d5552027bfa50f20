"""Paced ticks: what is sensed when, who is named to the environment, how a robot is held."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from scripted_parts import Notebook, ScriptedArbiter, ScriptedPolicy, toy
from test_loop import Finder, lower

from zetta.runtime.arbiter import MotionOnly, PolicyOnly
from zetta.runtime.core import (
    Action,
    ActionChunk,
    ActionSpec,
    ArmState,
    DrivenEnv,
    Estimate,
    Look,
    Motion,
    Observation,
    Outcome,
    Proprio,
    Start,
    Step,
    Tick,
    read_only,
)
from zetta.runtime.drivers import PolicyDriver
from zetta.runtime.errors import InfraError, SpecMismatch, Timeout
from zetta.runtime.holding import Holder
from zetta.runtime.looking import LooksAside
from zetta.runtime.loop import Episode
from zetta.runtime.running_ahead import InTurn
from zetta.runtime.stepping import SETTLING_TICKS
from zetta.runtime.thinking import ThinkingThread
from zetta.runtime.tick_tables import read_ticks, write_ticks
from zetta.sims.toy import ToyEnv, action_spec

T = TypeVar("T")


class Clock:
    """Time that passes only when somebody waits for a tick; `allowed` is set at the time `at`."""

    def __init__(self, allowed: threading.Event | None = None, at: float = 0.0) -> None:
        self.t = 0.0
        self._allowed, self._at = allowed, at

    def now(self) -> float:
        return self.t

    def sleep_until(self, t: float) -> bool:
        self.t = max(self.t, t)
        if self._allowed is not None and self.t > self._at:
            self._allowed.set()
        return True


class Moving(ToyEnv):
    """An arm that moves on while nobody steps it: each look finds it a little higher."""

    def __init__(self, env: ToyEnv) -> None:
        super().__init__(env.toy)
        self.looks = 0

    def observe(self, cameras: Sequence[str] = (), depth: bool = False) -> Observation:
        self.looks += 1
        seen = super().observe(cameras, depth)
        (arm,) = seen.proprio.arms
        up = read_only([*arm.ee_pos[:2], float(self.looks)])
        return replace(seen, proprio=replace(seen.proprio, arms=(replace(arm, ee_pos=up),)))


class Told(ToyEnv):
    """An environment that wants to know who drives."""

    def __init__(self, env: ToyEnv) -> None:
        super().__init__(env.toy)
        self.heard: list[str] = []

    def driven_by(self, source: str) -> None:
        self.heard.append(source)

    def step(self, action: Action) -> Step:
        self.heard.append("step")
        return super().step(action)


class Seeing(ToyEnv):
    """An environment whose camera is silent at some ticks, and that keeps its place by itself."""

    def __init__(self, env: ToyEnv, dark: Sequence[int], gives_up: int = 99) -> None:
        super().__init__(env.toy)
        self.asked, self._dark, self._gives_up = 0, dark, gives_up
        self.kept: list[str] = []

    def watch(self) -> str:
        self.asked += 1
        if self.asked >= self._gives_up:
            raise InfraError("the camera is lost")
        return "no picture" if self.asked in self._dark else ""

    def hold(self, why: str) -> Step:
        self.kept.append(why)
        return super().step(np.array([0.0] * 6 + [-1.0]))


# --------------------------------------------------------------------------- what is sensed


def test_a_paced_tick_is_decided_with_what_is_sensed_after_its_wait() -> None:
    env, scene = toy(3)
    notebook = Notebook()
    motion = MotionOnly(lambda: lower(3), "skill:lower")
    Episode(Moving(env), scene, motion, sinks=[notebook], clock=Clock()).run()

    assert [float(tick.proprio.arms[0].ee_pos[2]) for tick in notebook.ticks] == [1.0, 2.0, 3.0]


def test_without_a_clock_nothing_is_sensed_twice() -> None:
    env, scene = toy(3)
    moving = Moving(env)
    Episode(moving, scene, MotionOnly(lambda: lower(3), "skill:lower")).run()

    assert moving.looks == 0


def test_a_paced_toy_does_what_one_without_a_clock_does() -> None:
    free, paced = Notebook(), Notebook()
    for notebook, clock in ((free, None), (paced, Clock())):
        env, scene = toy(12)
        arbiter = ScriptedArbiter({4: Start(lower(3), "skill:lower")})
        Episode(env, scene, arbiter, ScriptedPolicy(), sinks=[notebook], clock=clock).run()

    assert np.array_equal([t.action for t in free.ticks], [t.action for t in paced.ticks])
    assert np.array_equal(free.poses, paced.poses)
    assert free.sources() == paced.sources()


# --------------------------------------------------------------------------- who drives


def test_environment_hears_who_drives_before_the_first_step_and_at_every_change() -> None:
    env, scene = toy(5)
    told = Told(env)
    arbiter = ScriptedArbiter({1: Start(lower(2), "skill:lower")})
    assert isinstance(told, DrivenEnv)
    Episode(told, scene, arbiter, ScriptedPolicy()).run()

    assert told.heard == [
        *("policy", "step"),
        *("skill:lower", "step", "step"),
        *("policy", "step", "step"),
    ]


def test_every_episode_says_anew_who_drives() -> None:
    env, scene = toy(1)
    told = Told(env)
    for _ in range(2):
        Episode(told, scene, PolicyOnly(), ScriptedPolicy()).run()

    assert told.heard == ["policy", "step"] * 2


# --------------------------------------------------------------------------- looks


class Patient(Finder):
    """Finds things when it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = threading.Event()
        self.threads: set[str] = set()

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        self.threads.add(threading.current_thread().name)
        assert self.allowed.wait(60.0)
        return super().locate(observation, roles)


def looking(places: list[float]) -> Motion:
    """Lower the arm, look, lower it on."""
    yield from lower(2)
    sense = yield Look(("object",))
    places.append(sense.estimates["object"].t)
    places.append(sense.proprio.t)
    yield from lower(2)
    return Outcome(True)


def test_the_robot_is_held_while_a_motion_looks_and_then_the_motion_goes_on() -> None:
    env, scene = toy(30)
    finder, notebook, places = Patient(), Notebook(), list[float]()
    aside = LooksAside(finder)
    motion = MotionOnly(lambda: looking(places), "skill:look")
    with Episode(env, scene, motion, localizer=aside, sinks=[notebook], clock=Clock()) as episode:
        episode.begin()
        for _ in range(8):
            episode.tick()
        finder.allowed.set()
        assert aside.found(None) is not None
        while episode.result is None:
            episode.tick()
    aside.close()

    held = [tick.held for tick in notebook.ticks]
    assert held == ["", "", *["the localizer looks"] * 6, "", ""]
    assert set(notebook.sources()) == {"skill:look"}
    assert places == [notebook.ticks[2].proprio.t, notebook.ticks[8].proprio.t]
    assert finder.threads == {"zetta-localizer"}
    assert episode.result is not None
    assert episode.result.held_ticks == 6
    # The arm stops where it was when the look began, to the slack of its controller.
    heights = [float(tick.proprio.arms[0].ee_pos[2]) for tick in notebook.ticks]
    assert abs(heights[8] - heights[2]) < 0.005


def test_before_anything_moves_a_look_takes_no_tick() -> None:
    env, scene = toy(30)
    finder, notebook, places = Patient(), Notebook(), list[float]()

    def motion() -> Motion:
        sense = yield Look(("object",))
        places.append(sense.estimates["object"].t)
        yield from lower(1)
        return Outcome(True)

    aside, clock = LooksAside(finder), Clock(finder.allowed, 0.12)
    arbiter = MotionOnly(motion, "skill:look")
    Episode(env, scene, arbiter, localizer=aside, sinks=[notebook], clock=clock).run()
    aside.close()

    assert [tick.held for tick in notebook.ticks] == [""]
    assert places == [0.0]


# --------------------------------------------------------------------------- a policy that dies


def test_a_policy_that_dies_while_the_robot_is_held_ends_the_episode_with_its_error() -> None:
    class Dying(ScriptedPolicy):
        def __init__(self) -> None:
            super().__init__()
            self.allowed = threading.Event()

        def infer(self, observation: Observation):  # type: ignore[no-untyped-def]
            if self.seen:
                assert self.allowed.wait(60.0)
                raise InfraError("the server went away")
            return super().infer(observation)

    env, scene = toy(40)
    policy, notebook = Dying(), Notebook()
    turned, clock = InTurn(policy), Clock(policy.allowed, 0.36)
    episode = Episode(env, scene, PolicyOnly(), turned, sinks=[notebook], clock=clock)
    with pytest.raises(InfraError, match="went away"):
        episode.run()
    turned.close()

    (result,) = notebook.results
    assert result.reason == "error"
    assert "went away" in result.detail
    assert result.held_ticks >= 3
    assert notebook.ticks[-1].held == "the policy thinks"


# --------------------------------------------------------------------------- holding


def state(x: float = 0.4) -> ArmState:
    return ArmState(
        read_only([x, 0.0, 0.3]), read_only([1.0, 0.0, 0.0, 0.0]), read_only(np.arange(3)), 0.04
    )


def spec(kind: str, names: tuple[str, ...], span: float = 1.0) -> ActionSpec:
    size = len(names)
    return ActionSpec(kind, names, (-span,) * size, (span,) * size, (1.0,) * size)  # type: ignore[arg-type]


POSE = ("x", "y", "z", "rx", "ry", "rz", "gripper")


def test_a_delta_leads_back_to_where_the_hold_began_and_keeps_the_gripper() -> None:
    holder, last = Holder(action_spec()), np.array([0.5, 0, 0, 0, 0, 0, 0.7])

    first = holder.action(Proprio(0.0, (state(0.40),)), last)
    back = holder.action(Proprio(0.05, (state(0.41),)), first)
    assert first.tolist() == pytest.approx([0, 0, 0, 0, 0, 0, 0.7])
    assert back[0] < 0.0
    assert back[6] == 0.7
    holder.release()
    anew = holder.action(Proprio(0.1, (state(0.45),)), back)
    assert anew[:6].tolist() == pytest.approx([0.0] * 6)


def test_a_target_is_the_pose_at_which_the_hold_began() -> None:
    holder = Holder(spec("target_pose", POSE, 4.0))

    row = holder.action(Proprio(0.0, (state(),)), np.array([0, 0, 0, 0, 0, 0, -1.0]))
    again = holder.action(Proprio(0.1, (state(0.5),)), row)
    assert row.tolist() == pytest.approx([0.4, 0.0, 0.3, np.pi, 0.0, 0.0, -1.0])
    assert np.array_equal(row, again)


def test_a_target_outside_the_range_is_brought_into_it() -> None:
    holder = Holder(spec("target_pose", POSE, 0.35))
    row = holder.action(Proprio(0.0, (state(),)), np.zeros(7))

    assert row[0] == 0.35


def test_joints_keep_their_places_or_stop() -> None:
    names, last = ("a", "b", "c", "gripper"), np.array([0.3, 0.3, 0.3, 0.9])
    proprio = Proprio(0.0, (state(),))

    places = Holder(spec("joint_position", names, 3.0)).action(proprio, last)
    speeds = Holder(spec("joint_velocity", names)).action(proprio, last)
    assert places.tolist() == [0.0, 1.0, 2.0, 0.9]
    assert speeds.tolist() == [0.0, 0.0, 0.0, 0.9]


def test_a_convention_in_which_nobody_can_stand_still_is_refused() -> None:
    with pytest.raises(SpecMismatch, match="stand still in waypoint"):
        Holder(spec("waypoint", ("x", "y"))).action(Proprio(0.0, (state(),)), np.zeros(2))


def test_two_arms_are_held_together() -> None:
    holder = Holder(action_spec(("left", "right")))
    last = np.array([0.0] * 6 + [-1.0] + [0.0] * 6 + [1.0])
    row = holder.action(Proprio(0.0, (state(0.4), state(0.5))), last)

    assert row.tolist() == pytest.approx(last.tolist())


# --------------------------------------------------------------------------- scheduled looks


class Watched(ThinkingThread):
    """A thread whose thoughts a test can wait for."""

    def __init__(self) -> None:
        super().__init__("zetta-localizer")
        self.thoughts: list[Future[Any]] = []

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future = super().submit(work)
        self.thoughts.append(future)
        return future


def test_a_glance_gives_what_the_one_before_it_found_and_waits_for_none_but_the_first() -> None:
    env, scene = toy(30)
    env.reset(scene)
    finder, thread = Patient(), Watched()
    aside = LooksAside(finder, thread)
    glance = aside.glances(env, lambda: ("object",))

    finder.allowed.set()
    assert glance()["object"].t == 0.0
    finder.allowed.clear()
    seen = []
    for k in range(4):
        env.step(np.zeros(7))
        seen.append({role: estimate.t for role, estimate in glance().items()})
        if k == 2:
            finder.allowed.set()
            thread.thoughts[-1].exception(60.0)
    aside.close()

    first = env.spec.control_hz**-1
    assert seen == [{"object": 0.0}, {}, {}, {"object": pytest.approx(first)}]


def test_a_look_that_never_ends_is_given_up() -> None:
    env, scene = toy(3)
    env.reset(scene)
    finder = Patient()
    aside = LooksAside(finder, deadline_s=0.01)

    with pytest.raises(Timeout, match=r"looking for object for 0\.01 s"):
        aside.locate(env.observe(), ("object",))
    finder.allowed.set()
    aside.close()


# --------------------------------------------------------------------------- what is logged


def test_the_log_says_at_which_ticks_the_robot_was_held_and_why(tmp_path: Path) -> None:
    free = Tick(0, Proprio(0.0, (state(),)), np.zeros(7), "policy")
    held = replace(free, index=1, held="the policy thinks")
    write_ticks(tmp_path / "held", [free, held], ["arm"])
    write_ticks(tmp_path / "free", [free], ["arm"])

    assert [tick.held for tick in read_ticks(tmp_path / "held", ["arm"])] == ["", held.held]
    assert [tick.held for tick in read_ticks(tmp_path / "free", ["arm"])] == [""]
    assert "held" not in pq.read_schema(tmp_path / "free").names  # as logs have always been


def test_nobody_goes_on_while_a_camera_is_silent_and_no_row_is_lost() -> None:
    notebook, plain = Notebook(), Notebook()
    env, scene = toy(9)
    dark = Seeing(env, dark=(3, 4))
    Episode(dark, scene, PolicyOnly(), ScriptedPolicy(), sinks=[notebook], clock=Clock()).run()
    env, _ = toy(9)
    Episode(env, scene, PolicyOnly(), ScriptedPolicy(), sinks=[plain], clock=Clock()).run()

    held = [tick.index for tick in notebook.ticks if tick.held]
    assert held == [3, 4]  # nobody is asked before the first tick, when nothing moves
    assert dark.kept == ["no picture", "no picture"]
    gone_on = [tick.action[2] for tick in notebook.ticks if not tick.held]
    assert gone_on == [tick.action[2] for tick in plain.ticks][: len(gone_on)]


def test_a_camera_that_stays_silent_ends_the_episode() -> None:
    env, scene = toy(9)
    seeing = Seeing(env, dark=(), gives_up=2)
    with pytest.raises(InfraError, match="the camera is lost"):
        Episode(seeing, scene, PolicyOnly(), ScriptedPolicy(), clock=Clock()).run()


def test_a_robot_that_can_keeps_its_place_after_it_was_led_to_rest() -> None:
    allowed = threading.Event()
    env, scene = toy(9)
    seeing = Seeing(env, dark=())

    class Slow(ScriptedPolicy):
        def infer(self, observation: Observation) -> ActionChunk:
            assert not self.seen or allowed.wait(60.0)
            return super().infer(observation)

    policy, notebook = InTurn(Slow()), Notebook()
    Episode(
        seeing, scene, PolicyOnly(), policy, sinks=[notebook], clock=Clock(allowed, at=0.4)
    ).run()
    policy.close()

    held = [tick.held for tick in notebook.ticks if tick.held]
    assert len(held) > SETTLING_TICKS
    assert seeing.kept == held[SETTLING_TICKS:]


class Leaving(ScriptedPolicy):
    """A policy whose server may go away."""

    gone = False

    def lost(self) -> bool:
        return self.gone


def test_no_further_row_is_used_of_a_policy_whose_server_went_away() -> None:
    env, scene = toy(9)
    step = env.reset(scene)
    policy = Leaving()
    driver = PolicyDriver(policy, env, scene.task.instruction, 0)
    driver.reset()
    rows = [float(driver.next_action(step.proprio)[2]) for _ in range(2)]
    policy.gone = True
    rows.append(float(driver.next_action(step.proprio)[2]))

    assert rows == pytest.approx([0.010, 0.011, 0.020])  # a row of another chunk
