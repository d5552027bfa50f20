"""One episode, one tick at a time: who drives, what is done, what is recorded.

A tick: its time comes, signals are updated from what is sensed then, the arbiter rules, a running
motion or the policy's chunk gives an action, or none yet and the robot is held; the action is
checked, the environment steps, the tick is handed to the sinks.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import assert_never

import numpy as np

from zetta.runtime.chunk_signals import ChunkSignals
from zetta.runtime.compatibility import check_compatible
from zetta.runtime.core import (
    Abort,
    Action,
    Arbiter,
    Array,
    Clock,
    Continue,
    EndReason,
    Env,
    EpisodeResult,
    EpisodeSink,
    HandBack,
    Localizer,
    Outcome,
    Policy,
    Ruling,
    Scene,
    SignalSource,
    SnapshotEnv,
    Start,
    Step,
    Stop,
    Tick,
)
from zetta.runtime.drivers import Late, MotionDriver, PolicyDriver
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.snapshots import EpisodeSnapshot, policy_identity, restore, saved
from zetta.runtime.stepping import Stepper

POLICY = "policy"
"""Source of the ticks that the policy drives."""


class Episode:
    """One episode of one scene. `run` once; `begin` and `tick` are for those who step it.

    `restore` in place of `begin` goes on from the snapshot of another one.

    Attributes:
        result: what it came to, or None while it runs.
    """

    def __init__(
        self,
        env: Env,
        scene: Scene,
        arbiter: Arbiter,
        policy: Policy | None = None,
        *,
        policy_seed: int = 0,
        instruction: str | None = None,
        signals: SignalSource | None = None,
        localizer: Localizer | None = None,
        sinks: Sequence[EpisodeSink] = (),
        clock: Clock | None = None,
        any_profile: bool = False,
        ends_on_success: bool = True,
    ) -> None:
        """Put the parts together and refuse those that do not fit.

        Args:
            env: the world.
            scene: where it starts.
            arbiter: decides who drives.
            policy: None when only motions drive; the episode then ends with the motion.
            policy_seed: where the policy's draws come from, non-negative.
            instruction: told to the policy instead of the task's own, for control experiments.
            signals: what the arbiter sees; the policy's dispersion by default.
            localizer: answers the looks of motions.
            sinks: receive every tick, in order.
            clock: paces the ticks at the control rate; None runs as fast as it can.
            any_profile: see `check_compatible`.
            ends_on_success: False lets whoever drives say when it is over, which then is no hint
                from simulator truth; the success still counts from the first tick at which the
                goal holds.

        Raises:
            SpecMismatch: policy and environment disagree.
            ConfigError: a negative `policy_seed`.
        """
        if policy_seed < 0:
            raise ConfigError(f"got the policy seed {policy_seed}; a seed is 0 or greater")
        self.result: EpisodeResult | None = None
        self._env, self._scene, self._arbiter = env, scene, arbiter
        self._spec = env.spec
        self._instruction = scene.task.instruction if instruction is None else instruction
        self._signals, self._localizer = signals or ChunkSignals(), localizer
        self._sinks = tuple(sinks)
        self._drawn = env if isinstance(env, SnapshotEnv) else None
        self._stepper = Stepper(env, clock)
        self._policy: PolicyDriver | None = None
        if policy is not None:
            check_compatible(self._spec, policy.spec, self._instruction, any_profile)
            self._policy = PolicyDriver(policy, env, self._instruction, policy_seed)
        self._motion: MotionDriver | None = None
        self._sources: Counter[str] = Counter()
        self._interventions, self._begun = 0, False
        self._last_action: Action | None = None
        self._listening: list[EpisodeSink] = []
        self._stop: Stop | None = None
        self._ends_on_success = ends_on_success
        self._first_success: int | None = None

    @property
    def index(self) -> int:
        """The tick that comes next."""
        return self._sources.total()

    @property
    def source(self) -> str:
        """Who drives now."""
        return self._motion.source if self._motion is not None else POLICY

    def run(self) -> EpisodeResult:
        """Run to the end and return the result.

        An error reaches the sinks as a result with the reason `error`, and then the caller.

        Raises:
            ZettaError: whatever a part could not do.
        """
        with self:
            self.begin()
            while self.result is None:
                self.tick()
        return self.result

    def __enter__(self) -> Episode:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what is open; an episode that was left without a result is recorded as an error."""
        if self._motion is not None:
            self._motion.close()
        if self.result is None and self._listening:
            name = "left before its end" if error is None else type(error).__name__
            self._end("error", f"{name}: {error}" if str(error or "") else name)

    def begin(self) -> None:
        """Settle the scene and tell everybody.

        Raises:
            InfraError: the environment cannot be reset.
            ConfigError: the arbiter cannot serve this scene.
        """
        self._begun = True
        self._start = time.perf_counter()
        self._step = self._env.reset(self._scene)
        self._success_at_reset = self._step.success
        pose = self._pose()
        self._digest = "" if pose is None else hashlib.sha256(pose.tobytes()).hexdigest()
        if self._policy is not None:
            self._policy.reset()
        self._signals.begin(self._scene)
        self._arbiter.begin(self._scene)
        self._tell_sinks()

    def _tell_sinks(self) -> None:
        for sink in self._sinks:
            sink.begin(self._scene, self._spec, self._instruction, self._step)
            self._listening.append(sink)

    def snapshot(self) -> EpisodeSnapshot:
        """Return a copy of everything, between two ticks at which the policy drives.

        An episode of the same parts that restores it gives the same actions, verdicts and success
        as this one. The signals of cameras and the tracks of the localiser go with it; what a
        sink has written and the wall time do not.

        Raises:
            ConfigError: a motion drives, the episode does not run, or a part cannot be copied.
        """
        if not self._begun or self.result is not None:
            raise ConfigError("only a running episode can be copied: after begin, before its end")
        if self._motion is not None or self._policy is None:
            who = "nobody" if self._motion is None else self._motion.source
            raise ConfigError(
                f"{who} drives at tick {self.index} and cannot be copied; take the snapshot "
                "between two ticks at which the policy drives"
            )
        if self._drawn is None:
            raise ConfigError(f"the environment {self._spec.name} cannot be copied")
        return EpisodeSnapshot(
            scene=self._scene,
            instruction=self._instruction,
            policy=policy_identity(self._policy.policy),
            tick=self.index,
            env=self._drawn.snapshot(),
            driver=self._policy.state(),
            signals=saved(self._signals, "signal source"),
            arbiter=saved(self._arbiter, "arbiter"),
            localizer=b"" if self._localizer is None else saved(self._localizer, "localizer"),
            step=self._step,
            last_action=self._last_action,
            sources=dict(self._sources),
            interventions=self._interventions,
            success_at_reset=self._success_at_reset,
            scene_digest=self._digest,
        )

    def restore(self, snapshot: EpisodeSnapshot) -> None:
        """Go on from `snapshot`, in place of `begin`; the next tick is `snapshot.tick`.

        Raises:
            ConfigError: this episode has begun, or a part of it cannot be restored.
            SpecMismatch: the snapshot is one of another scene, policy, bundle or simulator.
        """
        if self._begun:
            raise ConfigError("this episode has begun; restore a snapshot in a new one")
        if self._policy is None or self._drawn is None:
            raise ConfigError("without a policy and a simulator no snapshot can go on")
        mine = (self._scene, self._instruction, policy_identity(self._policy.policy))
        if mine != (snapshot.scene, snapshot.instruction, snapshot.policy):
            raise SpecMismatch(
                f"the snapshot is one of {snapshot.scene}, {snapshot.instruction!r} and the policy "
                f"{snapshot.policy}; this episode has {mine[0]}, {mine[1]!r} and {mine[2]}"
            )
        self._begun = True
        self._start = time.perf_counter()
        self._signals.begin(self._scene)
        self._arbiter.begin(self._scene)
        self._drawn.restore(snapshot.env)
        self._policy.restore(snapshot.driver)
        restore(self._signals, "signal source", snapshot.signals)
        restore(self._arbiter, "arbiter", snapshot.arbiter)
        if self._localizer is not None:
            restore(self._localizer, "localizer", snapshot.localizer)
        # As it was sensed, to the last bit: a simulator recomputes what it restores.
        self._step, self._last_action = snapshot.step, snapshot.last_action
        self._sources = Counter(snapshot.sources)
        self._interventions = snapshot.interventions
        self._success_at_reset, self._digest = snapshot.success_at_reset, snapshot.scene_digest
        self._tell_sinks()

    def reseed(self, seed: int, *, anew: bool = False) -> None:
        """Give the policy other luck from now on; `anew` lets it begin anew as well.

        Without `anew` a policy that keeps its draws to itself (see `ReseededPolicy`) is left as it
        is; only its seeds after later hand-backs change.

        Raises:
            ConfigError: there is no policy, or a negative seed.
        """
        if self._policy is None or seed < 0:
            raise ConfigError(f"got the seed {seed}; a policy and a seed of 0 or more are needed")
        self._policy.reseed(seed, anew)

    def tick(self) -> None:
        """Advance one control tick; afterwards `result` says whether it was the last.

        Raises:
            SpecMismatch: an action was refused.
        """
        if self.result is not None:
            raise ConfigError("this episode is over; start another one")
        self._step = self._stepper.begin_tick(self._step)
        index, proprio = self.index, self._step.proprio
        chunk = self._policy.chunk if self._policy is not None else None
        signals = self._signals.update(index, proprio, self._last_action, chunk, self.source)
        ruling, verdicts = self._arbiter.rule(index, proprio, signals, self.source)
        if verdicts and isinstance(ruling, Abort):
            self._stop = Stop(index, signals, verdicts)
        self._obey(ruling)
        if self.result is not None or (wish := self._next_wish()) is None:
            return
        action, held = self._stepper.action(wish, self.source, self._step, self._last_action)
        sensed, pose, source = self._step.proprio, self._pose(), self.source
        self._step = self._stepper.step(action, source)
        tick = Tick(index, sensed, action, source, signals, verdicts, held, self._step.guard)
        self._last_action = action
        self._sources[tick.source] += 1
        for sink in self._sinks:
            sink.tick(tick, self._step, pose)
        self._end_if_over(self._step)

    def _obey(self, ruling: Ruling) -> None:
        match ruling:
            case Continue():
                pass
            case Start(motion, source):
                self._start_motion(MotionDriver(motion, source, self._env, self._localizer))
            case HandBack():
                if self._motion is not None:
                    self._motion.close()
                    self._hand_back()
            case Abort(reason):
                self._end("abort", reason)
            case _:
                assert_never(ruling)

    def _start_motion(self, motion: MotionDriver) -> None:
        if self._policy is not None:
            self._policy.flush()
            self._interventions += 1
        if self._motion is not None:
            self._motion.close()
        self._motion = motion

    def _hand_back(self) -> None:
        """Give the robot to the policy, which starts anew; its next look is a fresh one."""
        self._motion = None
        if self._policy is not None:
            self._policy.reset()

    def _next_wish(self) -> Array | Late | None:
        """Return the action of whoever drives; None when nobody does any more."""
        wish = self._wish()
        while isinstance(wish, Late) and self._last_action is None:
            # Nothing was commanded yet, so nothing needs to be held, by no tick.
            self._step = self._stepper.begin_tick(self._step)
            wish = self._wish()
        return wish

    def _wish(self) -> Array | Late | None:
        proprio, left = self._step.proprio, self._stepper.left_s
        if self._last_action is not None and (blind := self._stepper.blind()):
            return Late(blind, blind=True)
        if self._motion is not None:
            wish = self._motion.wish(proprio, left)
            if not isinstance(wish, Outcome):
                return wish
            source = self._motion.source
            self._arbiter.motion_ended(source, wish)
            self._hand_back()
            if self._policy is None:
                ending = "completed" if wish.completed else "gave up"
                reason: EndReason = "abort" if self._first_success is None else "success"
                self._end(reason, f"{source} {ending}: {wish.reason}".rstrip(": "))
                return None
        if self._policy is None:
            self._end("abort", "nobody drives: there is no policy and no motion")
            return None
        return self._policy.wish(proprio, left)

    def _end_if_over(self, step: Step) -> None:
        if step.success and self._first_success is None:
            self._first_success = self._sources.total()
        solved = self._first_success is not None
        spent = self._sources.total() >= self._scene.task.max_steps
        if step.success and self._ends_on_success:
            self._end("success")
        elif step.terminated and not solved:
            self._end("terminated", "the environment ended the episode without success")
        elif spent or (step.truncated and self._ends_on_success):
            self._end("success" if solved else "truncated")

    def _end(self, reason: EndReason, detail: str = "") -> None:
        if self._motion is not None:
            self._motion.close()
        self.result = EpisodeResult(
            scene=self._scene,
            success=reason == "success",
            reason=reason,
            success_at_end=self._step.success,
            first_success=self._first_success,
            ticks=self._sources.total(),
            sources=dict(self._sources),
            interventions=self._interventions,
            wall_s=time.perf_counter() - self._start,
            success_at_reset=self._success_at_reset,
            late_ticks=self._stepper.late,
            held_ticks=self._stepper.held,
            inferences=self._policy.inferences if self._policy is not None else 0,
            scene_digest=self._digest,
            detail=detail,
            recoveries=self._arbiter.recoveries(),
            stop=self._stop,
        )
        # After an error the environment may not answer; asking it would hide the first error.
        pose = None if reason == "error" else self._pose()
        for sink in self._listening:
            sink.end(self.result, pose)

    def _pose(self) -> Array | None:
        return None if self._drawn is None else np.array(self._drawn.pose(), dtype=np.float64)
