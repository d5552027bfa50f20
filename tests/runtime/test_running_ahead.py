"""A policy that thinks while its last chunk is used: which row is done when, and who waits."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
from scripted_parts import Notebook, ScriptedPolicy, toy

from zetta.runtime import registry
from zetta.runtime.arbiter import PolicyOnly
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import (
    ActionChunk,
    Init,
    Observation,
    PolicySpec,
    Proprio,
    RunSpec,
)
from zetta.runtime.drivers import rows_passed
from zetta.runtime.errors import ConfigError, InfraError, SpecMismatch, Timeout
from zetta.runtime.loop import Episode
from zetta.runtime.running_ahead import InTurn, RunsAhead
from zetta.runtime.thinking import ThinkingThread
from zetta.sims.toy import action_spec

T = TypeVar("T")
HZ = 20.0
REPLAN, HORIZON = 4, 12


def rise(t: float) -> float:
    """A smooth way: the command that belongs to the tick at `t`."""
    return 0.3 * math.sin(2.0 * t)


class Smooth:
    """Predicts `rise` for each tick of its chunk, as well as it can."""

    def __init__(self, error: float = 0.0, **changes: object) -> None:
        spec = PolicySpec("smooth", action_spec(), (), REPLAN, HORIZON)
        self.spec = replace(spec, **changes)
        self.seen: list[float] = []
        self.resets = 0
        self._error = error

    def reset(self, instruction: str, seed: int) -> None:
        self.resets += 1
        self._rng = np.random.default_rng(seed)

    def infer(self, observation: Observation) -> ActionChunk:
        t = observation.proprio.t
        self.seen.append(t)
        off = self._error * self._rng.uniform(-1.0, 1.0)
        rows = np.zeros((self.spec.horizon, 7))
        rows[:, 2] = [rise(t + k / HZ) + off for k in range(self.spec.horizon)]
        return ActionChunk(rows, t)

    def close(self) -> None:
        pass


class ManualClock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep_until(self, t: float) -> bool:
        if t < self.time - 1e-9:
            return False
        self.time = max(self.time, t)
        return True


class Delayed:
    """Thinks for a given time of a manual clock; waiting for a thought lets that time pass."""

    def __init__(self, clock: ManualClock, delay_s: float) -> None:
        self._clock, self._delay_s = clock, delay_s

    def submit(self, work: Callable[[], T]) -> Future[T]:
        return DelayedThought(self._clock, self._clock.time + self._delay_s, work)

    def close(self) -> None:
        pass


class DelayedThought(Future[T]):
    def __init__(self, clock: ManualClock, ready: float, work: Callable[[], T]) -> None:
        super().__init__()
        self._clock, self._ready = clock, ready
        self.set_running_or_notify_cancel()
        try:
            self.set_result(work())
        except InfraError as error:
            self.set_exception(error)

    def done(self) -> bool:
        return self._clock.time >= self._ready - 1e-9

    def exception(self, timeout: float | None = None) -> BaseException | None:
        until = self._ready if timeout is None else min(self._ready, self._clock.time + timeout)
        self._clock.time = max(self._clock.time, until)
        if not self.done():
            raise TimeoutError
        return super().exception(timeout)


def drive(delay_ticks: float, ticks: int = 60, error: float = 0.0) -> tuple[Notebook, Smooth]:
    """Run an episode with a policy that thinks for so many ticks."""
    env, scene = toy(ticks)
    clock, notebook, policy = ManualClock(), Notebook(), Smooth(error)
    ahead = RunsAhead(policy, Delayed(clock, delay_ticks / HZ))
    Episode(env, scene, PolicyOnly(), ahead, sinks=[notebook], clock=clock).run()
    return notebook, policy


# --------------------------------------------------------------------------- which row


@pytest.mark.parametrize("delay_ticks", [0.0, 0.4, 1.0, 2.5, 4.0, 6.0])
def test_what_is_done_at_a_tick_is_the_row_that_was_predicted_for_it(delay_ticks: float) -> None:
    notebook, policy = drive(delay_ticks)

    assert len(policy.seen) > 60 / (REPLAN + delay_ticks + 1) - 1
    assert notebook.rises() == pytest.approx([rise(k / HZ) for k in range(60)], abs=1e-6)


def test_without_dropping_rows_that_have_passed_there_would_be_a_jump() -> None:
    _, policy = drive(6.0)
    starts = [round(t * HZ) for t in policy.seen]
    late = [rise((start + 6) / HZ) - rise(start / HZ) for start in starts]

    assert max(abs(jump) for jump in late) > 0.1


def test_switching_chunks_jumps_by_no_more_than_the_chunks_disagree() -> None:
    error = 0.01
    notebook, _ = drive(5.0, error=error)
    steepest = 0.3 * 2.0 / HZ

    steps = np.abs(np.diff(notebook.rises()))
    assert steps.max() <= steepest + 2.0 * error
    assert steps.max() > steepest  # the chunks do disagree, so there was something to see


def test_an_inference_begins_every_replan_steps_or_when_the_last_one_has_ended() -> None:
    quick, slow = drive(1.0)[1], drive(6.0)[1]

    assert [round(t * HZ) for t in quick.seen[:4]] == [0, 4, 8, 12]
    assert [round(t * HZ) for t in slow.seen[1:5]] == [4, 10, 16, 22]


def test_a_chunk_whose_rows_have_all_passed_is_refused_when_nothing_runs_ahead() -> None:
    class Sleepy(ScriptedPolicy):
        def infer(self, observation: Observation) -> ActionChunk:
            chunk = super().infer(observation)
            return replace(chunk, t_obs=chunk.t_obs - 1.0)

    env, scene = toy()
    with pytest.raises(SpecMismatch, match="all its 6 rows have passed"):
        Episode(env, scene, PolicyOnly(), Sleepy()).run()


@pytest.mark.parametrize(
    ("t_obs", "t", "rows"),
    [(0.0, 0.0, 0), (0.0, 0.15, 3), (1.0, 1.024, 0), (1.0, 1.026, 1), (1.0, 0.9, 0)],
)
def test_rows_are_counted_in_whole_ticks(t_obs: float, t: float, rows: int) -> None:
    assert rows_passed(t_obs, t, HZ) == rows


# --------------------------------------------------------------------------- no row in time


def held_ticks(delay_ticks: float) -> int:
    return drive(delay_ticks)[0].results[0].held_ticks


def test_before_the_first_chunk_nothing_is_held_and_no_tick_is_spent() -> None:
    notebook, _ = drive(5.5)

    assert notebook.results[0].held_ticks == notebook.results[0].late_ticks == 0
    assert notebook.rises()[:3] == pytest.approx([rise(k / HZ) for k in range(3)], abs=1e-6)


def test_the_robot_is_held_only_when_a_chunk_has_not_the_rows_of_two_inferences() -> None:
    """The one during which it is awaited, and the one that it covers."""
    assert [held_ticks(delay) for delay in (0.0, 0.9, 3.0, HORIZON / 2)] == [0, 0, 0, 0]
    assert held_ticks(HORIZON / 2 + 1.5) > 0


def test_a_policy_too_slow_for_its_horizon_is_waited_for_in_ticks_that_hold() -> None:
    notebook, policy = drive(20.0)
    result = notebook.results[0]
    reasons = {tick.held for tick in notebook.ticks}

    assert reasons == {"", "the policy thinks"}
    assert result.held_ticks == sum(bool(tick.held) for tick in notebook.ticks) > 20
    assert (result.late_ticks, result.ticks, result.sources) == (0, 60, {"policy": 60})
    assert result.inferences == len(policy.seen)


def test_rows_of_ticks_in_which_the_robot_is_held_do_not_pass() -> None:
    notebook, policy = drive(20.0)
    ticks = notebook.ticks
    held = [tick.index for tick in ticks if tick.held]
    # The first chunk is used to its end, the second from where the first one ended: it was seen
    # after REPLAN ticks, and the robot moved for HORIZON - REPLAN ticks until it was held.
    again = next(i for i in range(held[0], 60) if not ticks[i].held)
    seen = policy.seen[1]

    assert held[0] == HORIZON
    assert seen == pytest.approx(REPLAN / HZ)
    expected = rise(seen + (HORIZON - REPLAN) / HZ)
    assert notebook.rises()[again] == pytest.approx(expected, abs=1e-6)


def test_a_policy_asked_in_turn_uses_its_chunk_from_the_first_row_after_a_hold() -> None:
    env, scene = toy(40)
    clock, notebook, policy = ManualClock(), Notebook(), Smooth()
    patient = InTurn(policy, Delayed(clock, 5.0 / HZ))
    result = Episode(env, scene, PolicyOnly(), patient, sinks=[notebook], clock=clock).run()

    pattern = [bool(tick.held) for tick in notebook.ticks]
    assert pattern[:18] == ([False] * REPLAN + [True] * 5) * 2
    assert (result.held_ticks, result.late_ticks) == (sum(pattern), 0)
    moved = [up for up, hold in zip(notebook.rises(), pattern, strict=True) if not hold]
    expected = [rise(t + k / HZ) for t in policy.seen for k in range(REPLAN)]
    assert moved == pytest.approx(expected[: len(moved)], abs=1e-6)


def test_a_policy_asked_in_turn_that_is_quick_enough_makes_the_episode_of_one_that_is_not() -> None:
    bare, turned = Notebook(), Notebook()
    for notebook, clock in ((bare, None), (turned, ManualClock())):
        env, scene = toy(30)
        policy: Smooth | InTurn = Smooth(0.01)
        if clock is not None:
            policy = InTurn(policy, Delayed(clock, 0.5 / HZ))
        Episode(env, scene, PolicyOnly(), policy, sinks=[notebook], clock=clock).run()

    assert np.array_equal([t.action for t in bare.ticks], [t.action for t in turned.ticks])
    assert turned.results[0].held_ticks == 0


def test_pictures_are_drawn_only_for_the_looks_of_the_policy() -> None:
    env, scene = toy(24)
    clock, policy, notebook = ManualClock(), ScriptedPolicy(), Notebook()
    ahead = RunsAhead(policy, Delayed(clock, 0.05))
    Episode(env, scene, PolicyOnly(), ahead, sinks=[notebook], clock=clock).run()

    assert [round(seen.proprio.t * HZ) for seen in policy.seen] == [0, 4, 8, 12, 16, 20]
    assert all(set(seen.images) == {"front"} for seen in policy.seen)


# --------------------------------------------------------------------------- episodes


def look(t: float) -> Observation:
    return Observation(Proprio(t, ()), "go")


def test_a_reset_drops_what_was_inferred_for_the_episode_before() -> None:
    clock, policy = ManualClock(), Smooth()
    ahead = RunsAhead(policy, Delayed(clock, 0.2))
    ahead.reset("go", 0)
    ahead.infer(look(0.0))
    ahead.infer(look(0.2))
    ahead.reset("go", 1)

    assert ahead.infer(look(0.0)).t_obs == 0.0
    assert policy.resets == 2


def test_what_was_seen_too_long_ago_is_thought_about_anew() -> None:
    clock, policy = ManualClock(), Smooth()
    ahead = RunsAhead(policy, Delayed(clock, 5.0))
    ahead.reset("go", 0)
    ahead.infer(look(0.0))
    ahead.infer(look(0.2))
    chunk = ahead.infer(look(1.0))

    assert policy.seen == [0.0, 0.2, 1.0]
    assert chunk.t_obs == 1.0


def test_an_error_of_the_policy_reaches_the_loop() -> None:
    class Failing(Smooth):
        def infer(self, observation: Observation) -> ActionChunk:
            if len(self.seen) == 2:
                raise InfraError("the weights melted")
            return super().infer(observation)

    env, scene = toy(30)
    clock = ManualClock()
    ahead = RunsAhead(Failing(), Delayed(clock, 0.1))
    with pytest.raises(InfraError, match="the weights melted"):
        Episode(env, scene, PolicyOnly(), ahead, clock=clock).run()
    ahead.reset("go", 0)  # the next episode does not inherit it


def test_a_policy_that_uses_whole_chunks_cannot_run_ahead() -> None:
    with pytest.raises(SpecMismatch, match="--inference sync"):
        RunsAhead(registry.policy("random"))


def test_such_an_episode_cannot_be_copied_and_says_so() -> None:
    env, scene = toy()
    with Episode(env, scene, PolicyOnly(), RunsAhead(Smooth(), Delayed(ManualClock(), 0.0))) as e:
        e.begin()
        e.tick()
        with pytest.raises(ConfigError, match="RunsAhead keeps no state"):
            e.snapshot()


# --------------------------------------------------------------------------- a real thread


class Held(Smooth):
    """Thinks until it is told to answer; the first chunk comes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = threading.Event()
        self.threads: set[str] = set()

    def infer(self, observation: Observation) -> ActionChunk:
        self.threads.add(threading.current_thread().name)
        if self.seen and not self.may_answer.wait(60.0):
            raise InfraError("nobody let the policy answer")
        return super().infer(observation)


class Watched(ThinkingThread):
    """A thread whose thoughts a test can wait for."""

    def __init__(self) -> None:
        super().__init__()
        self.thoughts: list[Future[Any]] = []

    def submit(self, work: Callable[[], T]) -> Future[T]:
        future = super().submit(work)
        self.thoughts.append(future)
        return future


def test_the_loop_goes_on_while_the_policy_thinks_in_its_thread() -> None:
    env, scene = toy(12)
    policy, thread, notebook = Held(), Watched(), Notebook()
    ahead = RunsAhead(policy, thread)
    with Episode(env, scene, PolicyOnly(), ahead, sinks=[notebook]) as episode:
        episode.begin()
        for _ in range(10):
            episode.tick()
        assert len(policy.seen) == 1  # the second one is still being thought about
        policy.may_answer.set()
        thread.thoughts[1].exception(60.0)
        episode.tick()
        assert policy.seen[1] == pytest.approx(4 / HZ)
    ahead.close()

    assert notebook.rises() == pytest.approx([rise(k / HZ) for k in range(11)], abs=1e-6)
    assert policy.threads == {"zetta-policy"}


def test_a_policy_that_never_answers_is_given_up() -> None:
    policy = Held()
    policy.seen.append(0.0)
    ahead = RunsAhead(policy, deadline_s=0.01)
    ahead.reset("go", 0)
    with pytest.raises(Timeout, match=r"thinking for 0\.01 s"):
        ahead.infer(look(0.0))
    policy.may_answer.set()
    ahead.close()


# --------------------------------------------------------------------------- the command


def assembled(
    clock: ManualClock | None, policy: str = "toy/reach-exact", **options: str
) -> Episode:
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy=policy, options=options)
    return Assembler().assemble(spec, clock=clock).episode


def test_it_needs_ticks_that_are_paced() -> None:
    with pytest.raises(ConfigError, match="needs --realtime"):
        assembled(None, inference="async")
    with pytest.raises(ConfigError, match="did you mean 'async'"):
        assembled(None, inference="asinc")


def test_a_paced_episode_of_the_toy_is_solved_by_a_policy_that_runs_ahead() -> None:
    result = assembled(ManualClock(), inference="async").run()

    assert result.success
    assert result.inferences < result.ticks
