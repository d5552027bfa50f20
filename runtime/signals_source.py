"""All signals of an episode, tick by tick: a `core.SignalSource` with a history."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import (
    SENSING_LEVELS,
    Action,
    ActionChunk,
    EnvSpec,
    Estimate,
    PolicySpec,
    Proprio,
    Scene,
    Sensing,
)
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.signals import (
    ARM,
    EPISODE,
    OTHER_ARM,
    POLICY,
    SIGNALS,
    TRUTH,
    VISION,
    SignalHistory,
    SignalSpec,
    check_signals,
)
from zetta.runtime.signals_arm import ArmSignals
from zetta.runtime.signals_episode import EpisodeSignals
from zetta.runtime.signals_gripper import NAN, GripperLimits
from zetta.runtime.signals_policy import PolicySignals
from zetta.runtime.signals_sight import SightSignals

Look = Callable[[], Mapping[str, Estimate]]
"""Says where the things of the task are, by role."""


@runtime_checkable
class ExtraSignal(Protocol):
    """Signals that a person installed, such as a learned detector.

    It keeps nothing from tick to tick: the past is what windows are for.
    """

    @property
    def specs(self) -> Sequence[SignalSpec]:
        """Return what it computes."""
        ...

    def update(
        self, proprio: Proprio, action: Action | None, chunk: ActionChunk | None
    ) -> Mapping[str, float]:
        """Return the signals of this tick by name; what is left out is NaN."""
        ...


def signals_with(extra: Sequence[ExtraSignal]) -> Mapping[str, SignalSpec]:
    """Return every signal, the installed ones included.

    Raises:
        ConfigError: an installed signal has the name of another.
    """
    known = dict(SIGNALS)
    for spec in chain.from_iterable(source.specs for source in extra):
        if spec.name in known:
            raise ConfigError(f"the signal {spec.name!r} is installed, but that name is taken")
        known[spec.name] = spec
    return MappingProxyType(known)


class SignalRow(Mapping[str, float]):
    """The signals of one tick; it never changes."""

    __slots__ = ("_column", "_values")

    def __init__(self, column: Mapping[str, int], values: tuple[float, ...]) -> None:
        self._column = column
        self._values = values

    def __getitem__(self, name: str) -> float:
        return self._values[self._column[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._column)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"SignalRow({dict(self)})"


class _Remembering(Protocol):
    """A part whose memory is a dataclass of plain values."""

    memory: Any

    def begin(self) -> None: ...


@dataclass(slots=True)
class _Now:
    """What a tick is computed from."""

    index: int
    proprio: Proprio
    action: Action | None
    command: list[float] | None
    """`action` as plain floats."""
    chunk: ActionChunk | None
    driving: str


_Part = tuple[Sequence[SignalSpec], Callable[[_Now], Sequence[float]]]
"""Some signals and what computes them."""


class Signals:
    """Computes the signals that are wanted and allowed.

    A pure function of what it is given since `begin`: logged ticks, given again with the source
    of the tick before each, give the logged signals (those of cameras and policy apart, which
    also need the looks and the chunks).

    Attributes:
        history: the last seconds; the tick's row is in it when `update` returns.
        looks: how often the cameras were looked through in this episode.
    """

    def __init__(
        self,
        spec: EnvSpec,
        *,
        max_level: Sensing,
        policy: PolicySpec | None = None,
        look: Look | None = None,
        oracle: Look | None = None,
        arm: int = 0,
        look_every: int = 10,
        wanted: frozenset[str] | None = None,
        extra: Sequence[ExtraSignal] = (),
        limits: GripperLimits | None = None,
    ) -> None:
        """Bind to one arm of a robot.

        Args:
            spec: the environment.
            max_level: nothing above it is computed.
            policy: what drives; None when there is no policy.
            look: sees through cameras. It is called at tick 0 and every `look_every` ticks, if a
                signal of level `vision` is wanted, whoever drives and whatever is armed.
            oracle: asks the simulator, at every tick, for labels.
            arm: which arm the signals are about.
            look_every: ticks between two looks.
            wanted: names to compute; None for all that are to be had here. A wanted name that
                cannot be had (no second arm, policy or look) is NaN.
            extra: installed signals; those above `max_level` are left out.
            limits: of the gripper.

        Raises:
            ConfigError: no such arm or signal, a signal or `oracle` above `max_level`, or a
                `look_every` below 1.
        """
        if not 0 <= arm < len(spec.arms):
            raise ConfigError(f"got the arm {arm}; {spec.name} has {len(spec.arms)}: {spec.arms}")
        if look_every < 1:
            raise ConfigError(f"got {look_every} ticks between looks; expected at least 1")
        if oracle is not None and max_level != "oracle":
            raise ConfigError(
                f"simulator truth was handed to signals of level {max_level!r}; "
                "run with --sensing oracle, or without truth"
            )
        self._max_level, self._look_every = max_level, look_every
        self._look, self._oracle = look, oracle
        self._memories: dict[str, _Remembering] = {}
        self._episode = EpisodeSignals()
        self._sight, self._truth = SightSignals(), SightSignals()
        self._arm = arm
        self.looks = 0
        parts = self._offered(spec, policy, limits)
        parts += [
            (tuple(source.specs), _reader(source))
            for source in extra
            if all(self._allows(spec.level) for spec in source.specs)
        ]
        known = signals_with(extra)
        if wanted is not None:
            self._check_wanted(wanted, known)
            parts = [part for part in parts if any(s.name in wanted for s in part[0])]
        self._parts = [compute for _, compute in parts]
        computed = [s.name for specs, _ in parts for s in specs]
        names = computed if wanted is None else [name for name in known if name in wanted]
        place = {name: i for i, name in enumerate(computed)}
        # A wanted name that cannot be had is read from the NaN that ends every row.
        self._picks = None if names == computed else [place.get(name, -1) for name in names]
        self._column = {name: i for i, name in enumerate(names)}
        self._row = np.full(len(names), np.nan)
        self.history = SignalHistory(names, spec.control_hz)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is returned, in the order of the registry."""
        return self.history.names

    def begin(self, scene: Scene) -> None:
        """Forget the last episode."""
        self.looks = 0
        self.history.clear()
        for part in self._memories.values():
            part.begin()
        self._episode.budget = scene.task.max_steps

    def update(
        self,
        index: int,
        proprio: Proprio,
        action: Action | None,
        chunk: ActionChunk | None,
        driving: str,
    ) -> SignalRow:
        """Return the signals of a tick and add them to the history.

        `action` is the last command, `chunk` the pending one, `driving` the present source: who
        gave the last command.

        Raises:
            SpecMismatch: a look gave an estimate above the level of this run.
        """
        command = None if action is None else action.tolist()
        now = _Now(index, proprio, action, command, chunk, driving)
        values: list[float] = []
        for compute in self._parts:
            values += compute(now)
        if self._picks is not None:
            values.append(NAN)
            values = [values[k] for k in self._picks]
        self._row[:] = values
        self.history.push(self._row)
        return SignalRow(self._column, tuple(values))

    def state(self) -> bytes:
        """Return all that is remembered; `restore` continues bit-exactly."""
        memories = {name: asdict(part.memory) for name, part in self._memories.items()}
        budget = self._episode.budget
        text = json.dumps({"memories": memories, "budget": budget, "looks": self.looks})
        buffer = io.BytesIO()
        parts = {"signals": text.encode(), "history": self.history.snapshot()}
        arrays = {name: np.frombuffer(part, dtype=np.uint8) for name, part in parts.items()}
        np.savez(buffer, **arrays)  # type: ignore[arg-type]  # a keyword may be allow_pickle
        return buffer.getvalue()

    def restore(self, state: bytes) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it is no state, or one of other signals.
        """
        try:
            with np.load(io.BytesIO(state), allow_pickle=False) as saved:
                plain: Any = json.loads(saved["signals"].tobytes())
                history = saved["history"].tobytes()
            memories = {
                name: type(part.memory)(**plain["memories"][name])
                for name, part in self._memories.items()
            }
            budget, looks = int(plain["budget"]), int(plain["looks"])
        except UNREADABLE as error:
            raise SpecMismatch(
                f"{len(state)} bytes are no state of these signals ({error}); "
                "restore it with the same robot, policy and level"
            ) from None
        self.history.restore(history)
        for name, part in self._memories.items():
            part.memory = memories[name]
        self._episode.budget, self.looks = budget, looks

    # ------------------------------------------------------------------ inside

    def _offered(
        self, spec: EnvSpec, policy: PolicySpec | None, limits: GripperLimits | None
    ) -> list[_Part]:
        """Return what can be computed here, in the order of the registry."""
        own = ArmSignals(spec.action, self._arm, spec.control_hz, limits)
        self._memories = {"arm": own, "grip": own.grip, "episode": self._episode}
        parts: list[_Part] = [(ARM, _arm_reader(own, self._arm)), (EPISODE, self._read_episode)]
        second = next((i for i in range(len(spec.arms)) if i != self._arm), None)
        if second is not None:
            other = ArmSignals(spec.action, second, spec.control_hz, limits)
            self._memories |= {"other": other, "other_grip": other.grip}
            parts.append((OTHER_ARM, _arm_reader(other, second)))
        if policy is not None and self._allows("policy"):
            asked = PolicySignals(policy, self._arm)
            self._memories["policy"] = asked
            parts.append((POLICY, lambda now: asked.update(now.proprio.t, now.chunk)))
        if self._look is not None and self._allows("vision"):
            self._memories["sight"] = self._sight
            parts.append((VISION, self._read_sight))
        if self._oracle is not None:
            self._memories["truth"] = self._truth
            parts.append((TRUTH, self._read_truth))
        return parts

    def _allows(self, level: Sensing) -> bool:
        return SENSING_LEVELS.index(level) <= SENSING_LEVELS.index(self._max_level)

    def _check_wanted(self, wanted: frozenset[str], known: Mapping[str, SignalSpec]) -> None:
        check_signals(sorted(wanted), known)
        above = sorted(name for name in wanted if not self._allows(known[name].level))
        if above:
            raise ConfigError(
                f"{above[0]} is a signal of level {known[above[0]].level!r}, this run is of level "
                f"{self._max_level!r}; run with --sensing {known[above[0]].level} or do not want it"
            )

    def _read_episode(self, now: _Now) -> Sequence[float]:
        return self._episode.update(now.index, now.proprio.t, now.driving)

    def _read_sight(self, now: _Now) -> Sequence[float]:
        if now.index % self._look_every == 0 and self._look is not None:
            self.looks += 1
            found = self._look()
            for estimate in found.values():
                if not self._allows(estimate.level):
                    raise SpecMismatch(
                        f"the place of the {estimate.role} was found with level "
                        f"{estimate.level!r}, this run is of level {self._max_level!r}"
                    )
            self._sight.see(found)
        return self._sight.update(now.proprio.t, now.proprio.arms[self._arm].ee_pos.tolist())

    def _read_truth(self, now: _Now) -> Sequence[float]:
        if self._oracle is not None:
            self._truth.see(self._oracle())
        return self._truth.update(now.proprio.t, now.proprio.arms[self._arm].ee_pos.tolist())


def _arm_reader(signals: ArmSignals, arm: int) -> Callable[[_Now], Sequence[float]]:
    return lambda now: signals.update(now.proprio.t, now.proprio.arms[arm], now.command)


def _reader(source: ExtraSignal) -> Callable[[_Now], Sequence[float]]:
    names = [spec.name for spec in source.specs]

    def read(now: _Now) -> Sequence[float]:
        values = source.update(now.proprio, now.action, now.chunk)
        return [float(values.get(name, NAN)) for name in names]

    return read
