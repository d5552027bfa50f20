"""The two who can drive: a policy through its chunks, and a motion through its yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np

from zetta.runtime.core import (
    Action,
    ActionChunk,
    ActionSpec,
    Array,
    Env,
    Estimate,
    HeightGrid,
    Localizer,
    Look,
    Motion,
    Observation,
    Outcome,
    Policy,
    Proprio,
    Sense,
    Wait,
)
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.snapshots import DriverState, ReseededPolicy, restore, saved
from zetta.runtime.tracking import converter

TOLERANCE = 1e-6
"""How far an action may lie outside its spec, as a share of the span, for the sake of rounding."""

MAX_LOOKS = 16
"""Looks of one motion within one tick; more means that it will never act."""


Left: TypeAlias = Callable[[], float | None]
"""Says how long an action may still be waited for, seconds; None for as long as it takes."""


def endless() -> None:
    """Return None: an action is waited for as long as it takes."""


@dataclass(frozen=True, slots=True)
class Late:
    """Whoever drives has no action for this tick."""

    reason: str
    blind: bool = False
    """Nobody sees what the robot does: it shall stop where it is, and not settle gently."""


@runtime_checkable
class AheadPolicy(Policy, Protocol):
    """A policy that thinks beside the loop."""

    every_tick: bool
    """It is asked at every tick, not only when its last chunk is spent."""

    def looks(self, t: float) -> bool:
        """Say whether it wants pictures now; without, it answers with what it has."""
        ...

    def answer(self, observation: Observation, within_s: float | None) -> ActionChunk | None:
        """Return the chunk to use now, or None where there is none so soon."""
        ...


@runtime_checkable
class LinkedPolicy(Policy, Protocol):
    """A policy behind a connection."""

    def lost(self) -> bool:
        """Say whether who thinks went away since it was last asked. Takes no time."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """What a look came to."""

    estimates: Mapping[str, Estimate]
    heights: HeightGrid | None


@runtime_checkable
class AsideLocalizer(Localizer, Protocol):
    """A localizer that looks beside the loop."""

    def begin(self, observation: Observation, roles: Sequence[str]) -> None:
        """Begin to look; a look that is still under way is forgotten."""
        ...

    def found(self, within_s: float | None) -> Found | None:
        """Return what came of the look, or None where it takes longer."""
        ...


def rows_passed(t_obs: float, t: float, hz: float) -> int:
    """Return how many rows of a chunk belong to ticks before the one at `t`.

    >>> rows_passed(1.0, 1.15, 20.0)
    3
    """
    return max(0, round((t - t_obs) * hz))


class ActionCheck:
    """Refuses what is not an action of a spec: wrong length, not finite, out of range."""

    def __init__(self, spec: ActionSpec, what: str) -> None:
        self._what = what
        self._names = spec.names
        low, high = np.array(spec.low, dtype=np.float64), np.array(spec.high, dtype=np.float64)
        slack = np.where(np.isfinite(high - low), TOLERANCE * (high - low), 0.0)
        self._low, self._high = low, high
        self._lowest, self._highest = low - slack, high + slack

    def __call__(self, row: Array) -> Action:
        """Return a read-only copy of `row`, inside the spec to the last bit.

        Raises:
            SpecMismatch: wrong length, NaN or infinity, or outside the range.
        """
        if row.shape != self._low.shape:
            raise SpecMismatch(
                f"{self._what} gave an action of shape {row.shape}; expected "
                f"({len(self._names)},): {', '.join(self._names)}; nothing is padded"
            )
        # NaN compares false, so one comparison refuses it together with what is out of range.
        inside = (row >= self._lowest) & (row <= self._highest)
        if not inside.all() or not np.isfinite(row).all():
            i = int(np.argmin(inside & np.isfinite(row)))
            raise SpecMismatch(
                f"{self._what} gave {self._names[i]} = {row[i]:.6g}; expected a finite number "
                f"from {self._low[i]:g} to {self._high[i]:g}"
            )
        action = np.minimum(np.maximum(row, self._low), self._high)
        action.flags.writeable = False
        return action


class PolicyDriver:
    """Asks a policy for chunks and hands out their rows one tick at a time."""

    def __init__(self, policy: Policy, env: Env, instruction: str, seed: int) -> None:
        """Bind `policy` to `env`.

        Raises:
            SpecMismatch: the action conventions cannot be converted.
        """
        self.inferences = 0
        self.policy = policy
        self._env = env
        self._instruction, self._seed = instruction, seed
        self._spec = policy.spec
        self._cameras = tuple(camera.name for camera in self._spec.cameras)
        self._convert = converter(self._spec.action, env.spec.action)
        self._check = ActionCheck(self._spec.action, f"policy {self._spec.name!r}")
        self._ahead = policy if isinstance(policy, AheadPolicy) else None
        self._linked = policy if isinstance(policy, LinkedPolicy) else None
        self._handovers = 0
        self._chunk: ActionChunk | None = None
        self._used, self._until = 0, 0

    @property
    def chunk(self) -> ActionChunk | None:
        """The chunk whose rows are being used, or None when none is pending."""
        return self._chunk

    def reset(self) -> None:
        """Begin anew, at the start or at a hand-back, with a generator seed of its own.

        A hand-back does not repeat the draws of the start: they led to where help was needed.
        """
        seed = self._seed
        if self._handovers:
            sequence = np.random.SeedSequence([self._seed, self._handovers])
            seed = int(sequence.generate_state(1)[0])
        self._handovers += 1
        self.flush()
        self.policy.reset(self._instruction, seed)

    def flush(self) -> None:
        """Drop the rows that were not used."""
        self._chunk, self._used, self._until = None, 0, 0

    def next_action(self, proprio: Proprio) -> Action:
        """Return the next row in the environment's convention, asking the policy when due.

        A chunk that was inferred from an older observation begins with the row of this tick.

        Raises:
            SpecMismatch: the policy's answer is no chunk of its own spec, or is too old.
        """
        action = self.wish(proprio, endless)
        assert not isinstance(action, Late)  # it was waited for
        return action

    def wish(self, proprio: Proprio, left: Left) -> Action | Late:
        """Return the same, unless a policy that thinks beside the loop needs longer than `left`.

        Of a policy whose server went away no further row is used: nobody would correct it.

        Raises:
            SpecMismatch: as `next_action`.
        """
        if self._chunk is not None and self._linked is not None and self._linked.lost():
            self.flush()
        always = self._ahead is not None and self._ahead.every_tick
        if self._chunk is None or always or self._used >= self._until:
            chunk = self._infer(proprio.t, left)
            if chunk is None:
                return Late("the policy thinks")
            self._chunk = chunk
            self._used = rows_passed(self._chunk.t_obs, proprio.t, self._spec.control_hz)
            self._until = min(self._used + self._spec.replan_steps, self._spec.horizon)
            if self._used >= self._spec.horizon:
                raise SpecMismatch(
                    f"policy {self._spec.name!r} answered at {proprio.t:.2f} s to what was seen at "
                    f"{self._chunk.t_obs:.2f} s; all its {self._spec.horizon} rows have passed"
                )
        row = self._check(np.asarray(self._chunk.actions[self._used], dtype=np.float64))
        self._used += 1
        return self._convert(row, proprio)

    def state(self) -> DriverState:
        """Return all that is remembered, the policy's own state included.

        Raises:
            ConfigError: the policy cannot be copied.
        """
        return DriverState(
            seed=self._seed,
            handovers=self._handovers,
            inferences=self.inferences,
            chunk=self._chunk,
            used=self._used,
            until=self._until,
            policy=saved(self.policy, "policy"),
        )

    def restore(self, state: DriverState) -> None:
        """Continue from `state`, with its seed.

        Raises:
            ConfigError: the policy cannot be restored.
            SpecMismatch: it is the state of another policy.
        """
        restore(self.policy, "policy", state.policy)
        self._seed, self._handovers = state.seed, state.handovers
        self.inferences = state.inferences
        self._chunk, self._used, self._until = state.chunk, state.used, state.until

    def reseed(self, seed: int, anew: bool) -> None:
        """Take later draws from `seed`; `anew` resets the policy as at the start of an episode."""
        self._seed = seed
        if anew:
            self._handovers = 0
            self.reset()
        elif isinstance(self.policy, ReseededPolicy):
            self.policy.reseed(seed)

    def _infer(self, t: float, left: Left) -> ActionChunk | None:
        looks = self._ahead is None or self._ahead.looks(t)
        observation = self._env.observe(
            self._cameras if looks else (), depth=self._spec.depth and looks
        )
        if observation.instruction != self._instruction:
            observation = replace(observation, instruction=self._instruction)
        self.inferences += looks
        if self._ahead is None:
            chunk = self.policy.infer(observation)
        else:
            answer = self._ahead.answer(observation, left())
            if answer is None:
                return None
            chunk = answer
        expected = (self._spec.horizon, self._spec.action.size)
        if chunk.actions.shape != expected:
            raise SpecMismatch(
                f"policy {self._spec.name!r} gave a chunk of shape {chunk.actions.shape}; "
                f"its spec says {expected}"
            )
        return chunk


class MotionDriver:
    """Runs one motion: sends it senses, answers its looks, returns its actions."""

    def __init__(self, motion: Motion, source: str, env: Env, localizer: Localizer | None) -> None:
        self.source = source
        self._motion = motion
        self._env = env
        self._localizer = localizer
        self._estimates: dict[str, Estimate] = {}
        self._heights: HeightGrid | None = None
        self._started = False
        self._aside = localizer if isinstance(localizer, AsideLocalizer) else None
        self._looking = False

    def next_action(self, proprio: Proprio) -> Array | Outcome:
        """Return the motion's next action, or how it ended.

        A motion is started without a sense. One that needs the present first yields `Look(())`,
        which renders nothing.

        Raises:
            SpecMismatch: it looks for things and nothing here can find them, or only looks.
        """
        wish = self.wish(proprio, endless)
        assert not isinstance(wish, Late)  # it was waited for
        return wish

    def wish(self, proprio: Proprio, left: Left) -> Array | Outcome | Late:
        """Return the same, unless the motion waits, or a look beside the loop lasts beyond `left`.

        Raises:
            SpecMismatch: as `next_action`.
        """
        for _ in range(MAX_LOOKS + 1):
            if self._looking and not self._look_is_over(left):
                return Late("the localizer looks")
            try:
                if self._started:
                    wish = self._motion.send(Sense(proprio, dict(self._estimates), self._heights))
                else:
                    self._started = True
                    wish = next(self._motion)
            except StopIteration as stop:
                return stop.value if isinstance(stop.value, Outcome) else Outcome(True)
            if not isinstance(wish, Look):
                return np.asarray(wish, dtype=np.float64)
            if isinstance(wish, Wait):
                return Late(wish.reason)
            self._look(wish)
        raise SpecMismatch(
            f"{self.source} looked {MAX_LOOKS} times within one tick without acting; "
            "a motion yields an action between looks"
        )

    def close(self) -> None:
        """Interrupt the motion: its `finally` blocks run, nothing more is asked of it."""
        self._motion.close()

    def _look(self, look: Look) -> None:
        if not look.roles:
            return
        if self._localizer is None:
            raise SpecMismatch(
                f"{self.source} asks where {', '.join(look.roles)} is, "
                "but this episode was started without a localizer"
            )
        every = tuple(camera.name for camera in self._env.spec.cameras)
        cameras = look.cameras or self._localizer.cameras or every
        observation: Observation = self._env.observe(cameras, depth=True)
        if self._aside is not None:
            self._aside.begin(observation, look.roles)
            self._looking = True
            return
        self._estimates.update(self._localizer.locate(observation, look.roles))
        self._heights = self._localizer.heights(observation) or self._heights

    def _look_is_over(self, left: Left) -> bool:
        assert self._aside is not None  # it was begun there
        found = self._aside.found(left())
        if found is None:
            return False
        self._looking = False
        self._estimates.update(found.estimates)
        self._heights = found.heights or self._heights
        return True
