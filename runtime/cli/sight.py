"""What sees for one episode: the finder of a run, and the roles of the errand at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from zetta.primitives.agent.verifier import Seen
from zetta.primitives.grasps import hand_of
from zetta.primitives.localize.oracle import OracleFinder
from zetta.primitives.localize.role_localizer import RoleLocalizer, TracksState
from zetta.primitives.localize.sensor_noise import as_sensed
from zetta.primitives.localize.sightings import Finder
from zetta.primitives.motions_carrying import Held
from zetta.primitives.robot import LastSeen, Robot
from zetta.primitives.roles import Errand, Role, Roles
from zetta.primitives.takeover import takeover
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.core import (
    ArmState,
    Env,
    Estimate,
    HeightGrid,
    Motion,
    Observation,
    RunSpec,
    Sensing,
)
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.skill_arbiter import SKILL_PREFIX
from zetta.sims.surveyed import Surveyed

DEFAULT_FINDER: Final[Mapping[str, str]] = {"libero": "tiny"}
"""What finds things in pictures, by simulator; `geometry` elsewhere."""


def check_finder(spec: RunSpec) -> None:
    """Refuse an unknown localiser.

    Raises:
        ConfigError: there is none of that name.
    """
    wanted = spec.options.get("localizer")
    if wanted is not None and wanted.partition(":")[0] not in FINDERS:
        raise ConfigError(f"unknown localizer {wanted!r}; {suggest(wanted, FINDERS)}")


@dataclass(frozen=True, slots=True)
class SeenState:
    """Where a thing was, and the arm when it was seen there."""

    estimate: Estimate
    arm: ArmState


@dataclass(frozen=True, slots=True)
class _Binding:
    """An errand of one arm: who finds its things, and who does it."""

    errand: Errand
    localizer: RoleLocalizer
    last_seen: dict[str, LastSeen]
    robot: Robot


@dataclass(frozen=True, slots=True)
class SightState:
    """What a `Sight` remembers between two ticks at which the policy drives."""

    tracks: TracksState
    truth: TracksState | None
    """Tracks of the labels; None while they were not asked for."""
    last_seen: Mapping[str, SeenState]
    """By role."""
    held: Held | None
    """What the last recovery left in the hand; None before the first one."""


class Sight:
    """What sees for one episode: the localiser of the errand at hand, and who asks it."""

    def __init__(self, spec: RunSpec, env: Env, roles: Roles | None) -> None:
        self._env, self._roles = env, roles
        self._finder = _finder(spec, env)
        self._current = self._first = self._localizer(roles)
        self._surveyor: RoleLocalizer | None = None
        self._arm = 0
        """Whose errand is bound."""
        self._last_robot: Robot | None = None
        self._held: Held | None = None
        """What a robot before the first one of this episode held: known after a restore."""
        self._last_seen: dict[str, LastSeen] = {}
        self._first_seen = self._last_seen
        self._bindings: dict[int, _Binding] = {}
        """By arm: what commands have bound."""
        self._picture: Observation | None = None
        self._as_sensed = spec.options.get("depth_noise") == "yes"
        self.level: Sensing = self._finder.level
        self.cameras = tuple(c.name for c in env.spec.cameras if c.mount == "world")
        self.bound: tuple[str, ...] = tuple(roles.phrases) if roles is not None else ()

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        """Return an estimate for each role that the instruction names and that is seen."""
        known = [role for role in roles if role in self.bound]
        found = self._current.locate(self._sensed(observation), known) if known else {}
        arm = observation.proprio.arms[self._arm]
        self._last_seen.update({role: (estimate, arm) for role, estimate in found.items()})
        return found

    def heights(self, observation: Observation) -> HeightGrid | None:
        """Return what stands where."""
        return self._current.heights(self._sensed(observation))

    def _sensed(self, observation: Observation) -> Observation:
        return as_sensed(observation) if self._as_sensed else observation

    def look(self) -> Mapping[str, Estimate]:
        """Look through the cameras now."""
        return self.locate(self._env.observe(self.cameras, depth=True), self.bound)

    def truth(self) -> Mapping[str, Estimate]:
        """Return where things really are, for labels."""
        return self._survey().locate(self._env.observe(), self.bound) if self.bound else {}

    def _survey(self) -> RoleLocalizer:
        if self._surveyor is None:
            finder = OracleFinder(_surveyed(self._env).landmarks)
            self._surveyor = RoleLocalizer(finder, self._roles)
        return self._surveyor

    def robot(self, errand: Errand | None = None) -> Robot:
        """Make the robot of one recovery, for one errand or for the whole instruction."""
        roles = Roles("", (errand,)) if errand is not None else self._roles
        self._last_robot = self._made(roles, 0, self._left_in_hand(), self._last_seen)
        return self._last_robot

    def _left_in_hand(self) -> Held | None:
        return self._held if self._last_robot is None else self._last_robot.held

    def _made(
        self, roles: Roles | None, arm: int, held: Held | None, last_seen: dict[str, LastSeen]
    ) -> Robot:
        wanted = roles.placement if roles is not None else None
        return Robot(
            self._env.spec.action,
            arm,
            self._env.spec.control_hz,
            hand=hand_of(self._env.spec),
            placement="in" if wanted == "in" else "on",
            clockwise=roles is not None and "turn_off" in roles.verbs_about(["part"]),
            before=held,
            last_seen=last_seen.get,
        )

    def bind(self, errand: Errand, arm: int = 0) -> Robot:
        """Let looks mean the things of an errand, and return the robot of an arm for it.

        Bound again, an errand keeps its robot and its tracks. Another errand of the same arm keeps
        the tracks of things that both name, and how what the arm holds lies in the hand.
        """
        binding = self._bindings.get(arm)
        stale = arm == 0 and binding is not None and binding.robot is not self._last_robot
        if binding is None or binding.errand != errand or stale:
            binding = self._bindings[arm] = self._bound_anew(binding, errand, arm)
        self._arm, self._current, self._last_seen = arm, binding.localizer, binding.last_seen
        self.bound = tuple(errand.phrases)
        return binding.robot

    def locator(self, errand: Errand) -> Callable[[], Seen]:
        """Return what looks for the things of an errand, and follows them from look to look."""
        own = self._localizer(errand)
        roles = tuple(errand.phrases)

        def look() -> Seen:
            observation = self._sensed(self.observed())
            return Seen(own.locate(observation, roles), own.heights(observation))

        return look

    def observed(self) -> Observation:
        """Return what the cameras see, drawn once in a tick however many things are looked for."""
        now = self._env.observe().proprio.t
        if self._picture is None or self._picture.proprio.t != now:
            self._picture = self._env.observe(self.cameras, depth=True)
        return self._picture

    def bind_instruction(self) -> None:
        """Let looks mean the things of the whole instruction again, as skills expect."""
        self._arm, self._current, self._last_seen = 0, self._first, self._first_seen
        self.bound = tuple(self._roles.phrases) if self._roles is not None else ()

    def _bound_anew(self, before: _Binding | None, errand: Errand, arm: int) -> _Binding:
        localizer = self._localizer(errand)
        last_seen: dict[str, LastSeen] = {}
        if before is not None:
            kept = _same_things(before.errand, errand)
            state = before.localizer.state()
            tracks = {new: state.tracks[old] for new, old in kept.items() if old in state.tracks}
            inferred = tuple(new for new, old in kept.items() if old in state.inferred)
            localizer.restore(replace(state, tracks=tracks, inferred=inferred))
            seen = before.last_seen
            last_seen.update({new: seen[old] for new, old in kept.items() if old in seen})
        others = None if before is None else before.robot.held
        held = self._left_in_hand() if arm == 0 else others
        robot = self._made(Roles("", (errand,)), arm, held, last_seen)
        if arm == 0:
            self._last_robot = robot
        return _Binding(errand, localizer, last_seen, robot)

    def state(self) -> SightState:
        """Return all that is remembered; while primitives do the whole task there is no copy."""
        robot, surveyor = self._last_robot, self._surveyor
        return SightState(
            tracks=self._current.state(),
            truth=None if surveyor is None else surveyor.state(),
            last_seen={role: SeenState(*seen) for role, seen in self._last_seen.items()},
            held=self._held if robot is None else robot.held,
        )

    def restore(self, state: SightState) -> None:
        """Continue from `state`; what commands had bound is bound anew."""
        self._bindings.clear()
        self.bind_instruction()
        self._current.restore(state.tracks)
        if state.truth is not None:
            self._survey().restore(state.truth)
        # The skills' robots hold the dictionary's `get`, so it is changed in place.
        self._last_seen.clear()
        self._last_seen.update({r: (s.estimate, s.arm) for r, s in state.last_seen.items()})
        self._last_robot, self._held = None, state.held

    def takeover(self) -> MotionOnly:
        """Return the arbiter that lets primitives do the whole task."""
        roles = self._roles
        if roles is None:
            raise ConfigError(
                "the instruction of this task is not understood, so primitives cannot do it; "
                "leave the arm takeover out"
            )

        def begin(index: int) -> None:
            errand = roles.steps[index]
            self._current = self._localizer(errand)
            self.bound = tuple(errand.phrases)

        def motion() -> Motion:
            return takeover(roles.steps, self.robot, begin)

        return MotionOnly(motion, SKILL_PREFIX + "takeover")

    def _localizer(self, roles: Roles | Errand | None) -> RoleLocalizer:
        return RoleLocalizer(self._finder, roles)


def _same_things(before: Errand, now: Errand) -> Mapping[Role, Role]:
    """Return which role of `now` a thing has that `before` named, too, and which it had there."""
    return {
        new: old
        for new, phrase in now.phrases.items()
        for old, other in before.phrases.items()
        if phrase == other
    }


def localizer_of(options: Mapping[str, str], sim: str, sensing: Sensing) -> str:
    """Return what finds things in the pictures of a run.

    >>> localizer_of({}, "libero", "vision"), localizer_of({}, "toy", "oracle")
    ('tiny', 'oracle')
    """
    if sensing == "oracle" and "localizer" not in options:
        return "oracle"
    return options.get("localizer", "") or DEFAULT_FINDER.get(sim, "geometry")


def _finder(spec: RunSpec, env: Env) -> Finder:
    if spec.sensing == "oracle" and "localizer" not in spec.options:
        return OracleFinder(_surveyed(env).landmarks)
    any_profile = spec.options.get("any_profile") == "yes"
    profile = "" if any_profile else env.spec.render_profile
    return finder_named(spec.options.get("localizer", ""), spec.sim, profile)


def finder_named(wanted: str, sim: str, profile: str) -> Finder:
    """Return a localiser's finder; the simulator's own where `wanted` is empty.

    Args:
        wanted: a name of `FINDERS`, or `NAME:FOLDER`.
        sim: the simulator.
        profile: the render profile that it must be made for; empty for any.
    """
    return _load_finder(wanted or DEFAULT_FINDER.get(sim, "geometry"), profile)


def _tiny(folder: str, profile: str) -> Finder:
    from zetta.primitives.localize.tiny.serve import WEIGHTS_FOLDER, load

    return load(Path(folder) if folder else WEIGHTS_FOLDER, profile or None)


def _geometry(folder: str, profile: str) -> Finder:
    from zetta.primitives.localize.geometry import GeometryFinder

    return GeometryFinder()


def _openvocab(folder: str, profile: str) -> Finder:
    from zetta.primitives.localize.openvocab import OpenVocabFinder

    if not folder:
        raise ConfigError("openvocab needs the folder of a detector: --localizer openvocab:FOLDER")
    return OpenVocabFinder.from_folders(folder)


FINDERS: Final[Mapping[str, Callable[[str, str], Finder]]] = {
    "tiny": _tiny,
    "geometry": _geometry,
    "openvocab": _openvocab,
}
"""What finds things in pictures, made from a folder of weights and the name of the render profile;
`NAME:FOLDER` names a folder. Imported late: a run needs one of them."""


@cache
def _load_finder(wanted: str, profile: str) -> Finder:
    """Return a finder, loaded once in a process."""
    kind, _, folder = wanted.partition(":")
    return FINDERS[kind](folder, profile)


def _surveyed(env: Env) -> Surveyed:
    if not isinstance(env, Surveyed):
        raise ConfigError(
            f"the environment {env.spec.name} tells no simulator truth about places; "
            "run with --sensing vision"
        )
    return env
