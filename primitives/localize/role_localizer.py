"""From sightings of named things to estimates by role, and who is who from look to look."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zetta.primitives.localize.clouds import HandShape
from zetta.primitives.localize.heights import Workspace, height_grid
from zetta.primitives.localize.places import placed, whole_of
from zetta.primitives.localize.relations import View, choose
from zetta.primitives.localize.sightings import Finder, Sighting
from zetta.primitives.roles import ROLES, Errand, Phrase, Role, Roles, parse_instruction
from zetta.primitives.roles_names import alternatives
from zetta.runtime.core import Estimate, HeightGrid, Observation, Sensing
from zetta.runtime.errors import ConfigError, suggest

SAME_SPOT = 0.015
"""Sightings whose centres are nearer, metres, are one thing under two names."""
_TWIN_SPOT = 0.03
"""A sighting this near, metres, to where a twin was last seen is the twin."""
_AFAR = 0.08
_SURE_AFAR = 0.65
"""A tracked thing that shows up further than `_AFAR`, metres, from where it may be must be seen
with this confidence."""
_HIDES = 0.12
"""A hand hides what is this near to it across the ground, metres."""
_HIDES_BELOW = 0.15
"""And no further below it than this, metres: from higher up it leaves a thing in sight."""
_LIKELY = 0.75
"""Share of the surest one's confidence that the anchor of a relation must have."""
_INFERRED = 0.6
"""Factor on the confidence of an inferred thing: good enough to go and take it, not to say that
somebody else is wrong."""
_CARRIED = 0.04
"""What is this near, metres, to where the hand would have carried the thing is the thing."""
_AROUND = (0.0025, 0.074)
"""Openings of a hand that may hold something, metres: neither shut nor open."""
_IN_HAND = 0.03
"""Metres by which a thing at the hand must fit better than one at the old place."""


@dataclass(frozen=True, slots=True)
class _Track:
    """What is remembered of a role's thing."""

    sighting: Sighting
    offset: tuple[float, float, float] | None
    """From the nearest hand to the thing when it was last seen; None while no hand was near."""
    twins: tuple[Sighting, ...] = ()
    """Other things of the same name, where each was last seen."""


@dataclass(frozen=True, slots=True)
class TracksState:
    """What is remembered from look to look."""

    tracks: Mapping[Role, _Track]
    with_twins: tuple[str, ...]
    inferred: tuple[Role, ...]
    t: float


class RoleLocalizer:
    """Answers where the things named by roles are.

    Which one of several equal things is meant is decided when it is first seen, and is kept:
    later the same one is the one nearest to where it was, or to where the hand may have taken it.
    What is not seen is absent. An observation earlier than the last one begins a new episode.
    """

    def __init__(
        self,
        finder: Finder,
        roles: Roles | Errand | None = None,
        view: View | None = None,
        workspace: Workspace | None = None,
        shape: HandShape | None = None,
        cameras: Sequence[str] = (),
    ) -> None:
        """Take a finder and what an instruction means.

        Args:
            finder: finds named things in a picture.
            roles: which phrase each role has; None reads the instruction of the observation.
            view: what left and front mean.
            workspace: where things are looked for when heights are measured.
            shape: the room that each hand fills.
            cameras: what is looked through when a look names no camera; none for all.
        """
        self.cameras = tuple(cameras)
        self._finder = finder
        self._given = roles
        self._read: Roles | None = None
        self._view = view or View()
        self._workspace = workspace
        self._shape = shape
        self._tracks: dict[Role, _Track] = {}
        self._inferred: set[Role] = set()
        """Roles whose thing was chosen by an inference."""
        self._with_twins: set[str] = set()
        """Names of which several were seen at once, though none could be told to be meant."""
        self._t = -math.inf
        self.level: Sensing = finder.level

    def begin(self) -> None:
        """Forget the last episode."""
        self._forget_things()
        self._t = -math.inf

    def state(self) -> TracksState:
        """Return all that is remembered; what an instruction means follows from itself."""
        twins, inferred = tuple(sorted(self._with_twins)), tuple(sorted(self._inferred))
        return TracksState(dict(self._tracks), twins, inferred, self._t)

    def restore(self, state: TracksState) -> None:
        """Continue from `state`."""
        self._tracks = dict(state.tracks)
        self._with_twins, self._inferred = set(state.with_twins), set(state.inferred)
        self._t = state.t

    def locate(self, observation: Observation, roles: Sequence[str]) -> Mapping[str, Estimate]:
        """Return an estimate for each role that is named and seen.

        Raises:
            ConfigError: a role that does not exist, or an instruction that is not understood.
        """
        for role in roles:
            if role not in ROLES:
                raise ConfigError(f"there is no role {role!r}; {suggest(role, ROLES)}")
        self._keep_up(observation)
        phrases = self._phrases(observation)
        wanted = {role: phrases[role] for role in ROLES if role in roles and role in phrases}
        if not wanted:
            return {}
        known = _by_name(self._finder.find(observation, self._asked(wanted)))
        found: dict[Role, Sighting] = {}
        for role, phrase in wanted.items():
            taken = [other for r, other in found.items() if phrases[r].name == phrase.name]
            chosen = self._chosen(role, phrase, known, taken, observation)
            if chosen is not None:
                found[role] = chosen
                self._remember(role, chosen, self._seen(phrase.name, known), observation)
        t = observation.proprio.t
        return {
            role: _estimate(role, s, t, self.level, role in self._inferred)
            for role, s in found.items()
        }

    def heights(self, observation: Observation) -> HeightGrid | None:
        """Return what stands where, or None when `observation` holds no depth."""
        return height_grid(observation, workspace=self._workspace, shape=self._shape)

    # ------------------------------------------------------------------ inside

    def _forget_things(self) -> None:
        self._tracks.clear()
        self._inferred.clear()
        self._with_twins.clear()

    def _keep_up(self, observation: Observation) -> None:
        if observation.proprio.t < self._t:
            self.begin()
        self._t = observation.proprio.t

    def _phrases(self, observation: Observation) -> Mapping[Role, Phrase]:
        if self._given is not None:
            return self._given.phrases
        if self._read is None or self._read.instruction != observation.instruction:
            self._read = parse_instruction(observation.instruction)
            self._forget_things()
        return self._read.phrases

    def _asked(self, wanted: Mapping[Role, Phrase]) -> list[str]:
        """Return every name that may have to be known, each once."""
        names: dict[str, None] = {}
        for phrase in wanted.values():
            relation = phrase.relation
            for name in (phrase.name, *(relation.anchors if relation is not None else ())):
                names |= dict.fromkeys(_names(name))
        return list(names)

    def _chosen(
        self,
        role: Role,
        phrase: Phrase,
        known: Mapping[str, Sequence[Sighting]],
        taken: Sequence[Sighting],
        observation: Observation,
    ) -> Sighting | None:
        all_seen = self._seen(phrase.name, known)
        candidates = [s for s in all_seen if not _among(s, taken)]
        track = self._tracks.get(role)
        if candidates and track is not None:
            return _same(candidates, track, observation)
        relation = phrase.relation
        anchors = relation.anchors if relation is not None else ()
        if len(all_seen) > 1:
            self._with_twins.add(phrase.name)
        elif phrase.name in self._with_twins:
            return None  # which one of the twins is left cannot be told
        ground = min((s.bottom for seen in known.values() for s in seen), default=math.inf)
        around = {a: _likely(self._seen(a, known)) for a in anchors}
        choice = choose(candidates, relation, around, self._view, ground)
        if choice is None or (relation is not None and choice.margin == 0.0):
            # A guess between twins would be followed with confidence; better nothing is known.
            return None
        if choice.inferred:
            self._inferred.add(role)
        return choice.best

    def _remember(
        self,
        role: Role,
        chosen: Sighting,
        candidates: Sequence[Sighting],
        observation: Observation,
    ) -> None:
        """Keep the chosen thing and its twins; a twin that is hidden now stays where it was."""
        twins = [s for s in candidates if not _among(s, [chosen])]
        before = self._tracks[role].twins if role in self._tracks else ()
        twins += [t for t in before if not _among(t, [*twins, chosen], _TWIN_SPOT)]
        self._tracks[role] = _Track(chosen, _offset(chosen, observation), tuple(twins))

    def _seen(self, name: str, known: Mapping[str, Sequence[Sighting]]) -> list[Sighting]:
        """Return what is meant by a name: itself, or else a place on the thing it belongs to."""
        groups = alternatives(name)
        for group in groups:
            found = _distinct(s for n in group for s in known.get(n, ()))
            if found:
                return [replace(s, name=name) for s in found]
        for group in groups:
            for known_name in group:
                for whole_name in _wholes(known_name):
                    for whole in known.get(whole_name, ()):
                        place = placed(known_name, whole, self._view)
                        if place is not None:
                            return [replace(place, name=name)]
        return []


def _likely(anchors: Sequence[Sighting]) -> list[Sighting]:
    """Return the anchors without faint likenesses of them, which would decide a relation."""
    surest = max((s.confidence for s in anchors), default=0.0)
    return [s for s in anchors if s.confidence >= _LIKELY * surest]


def _names(name: str) -> list[str]:
    own = [n for group in alternatives(name) for n in group]
    return own + [w for n in own for w in _wholes(n)]


def _wholes(name: str) -> list[str]:
    whole = whole_of(name)
    return [n for group in alternatives(whole) for n in group] if whole else []


def _by_name(sightings: Iterable[Sighting]) -> dict[str, list[Sighting]]:
    known: dict[str, list[Sighting]] = {}
    for sighting in sightings:
        known.setdefault(sighting.name, []).append(sighting)
    return known


def _distinct(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Return each thing once, under the name of which the finder is surest."""
    kept: list[Sighting] = []
    for sighting in sorted(sightings, key=lambda s: -s.confidence):
        if not _among(sighting, kept):
            kept.append(sighting)
    return kept


def _among(sighting: Sighting, others: Iterable[Sighting], within: float = SAME_SPOT) -> bool:
    return any(math.dist(sighting.position, other.position) < within for other in others)


def _offset(sighting: Sighting, observation: Observation) -> tuple[float, float, float] | None:
    """Return the way from the nearest hand to the thing, or None when no hand could hold it."""
    reach = math.hypot(*sighting.extent) / 2.0 + _IN_HAND
    hands = [sighting.position - arm.ee_pos for arm in observation.proprio.arms]
    near = [(math.hypot(*d), d) for d in hands if math.hypot(*d) < reach]
    if not near:
        return None
    x, y, z = min(near, key=lambda pair: pair[0])[1]
    return float(x), float(y), float(z)


def _same(
    candidates: Sequence[Sighting], track: _Track, observation: Observation
) -> Sighting | None:
    """Return the candidate that is the tracked thing, or None where it is hidden."""
    # With the thing itself hidden, what stands where a twin stood is the twin.
    own = [s for s in candidates if not _among(s, track.twins, _TWIN_SPOT)]
    stayed = [s for s in own if _among(s, [track.sighting], _TWIN_SPOT)]
    carried = [s for s in candidates if _from_the_hand(s, track, observation) < _CARRIED]
    if track.offset is not None and _gripped(observation):
        # What comes along with the hand is it, whatever it passes; a twin may be pushed meanwhile.
        own = carried or stayed
    elif not stayed:
        own = carried or own
    nearest = min(own, key=lambda s: _strangeness(s, track, observation), default=None)
    if nearest is None or _strangeness(nearest, track, observation) < _AFAR:
        return nearest
    # A likeness elsewhere is no sighting of what the hand hides, nor is a faint one ever.
    hidden = _under_a_hand(track.sighting, observation)
    return nearest if nearest.confidence >= _SURE_AFAR and not hidden else None


def _under_a_hand(sighting: Sighting, observation: Observation) -> bool:
    at = sighting.position
    return any(
        math.dist(at[:2], arm.ee_pos[:2]) < _HIDES and float(arm.ee_pos[2] - at[2]) < _HIDES_BELOW
        for arm in observation.proprio.arms
    )


def _gripped(observation: Observation) -> bool:
    """Return whether the fingers of a hand may be around something."""
    low, high = _AROUND
    return any(low < arm.gripper_opening < high for arm in observation.proprio.arms)


def _from_the_hand(sighting: Sighting, track: _Track, observation: Observation) -> float:
    """Return how far a sighting is from where a hand would have carried the thing, metres."""
    if track.offset is None:
        return math.inf
    at = sighting.position
    return min(math.dist(at, arm.ee_pos + track.offset) for arm in observation.proprio.arms)


def _strangeness(sighting: Sighting, track: _Track, observation: Observation) -> float:
    """Return how far a sighting is from where the tracked thing may be now, metres."""
    costs = [math.dist(sighting.position, track.sighting.position)]
    for arm in observation.proprio.arms:
        if track.offset is not None:
            costs.append(math.dist(sighting.position, arm.ee_pos + track.offset))
        else:
            # It may have been grasped since, somewhere along its height.
            reach = float(sighting.extent[2]) / 2.0
            costs.append(math.dist(sighting.position, arm.ee_pos) - reach + _IN_HAND)
    return min(costs)


def _estimate(role: str, sighting: Sighting, t: float, level: Sensing, inferred: bool) -> Estimate:
    confidence = sighting.confidence * (_INFERRED if inferred else 1.0)
    return Estimate(role, sighting.position, sighting.extent, sighting.yaw, confidence, t, level)
