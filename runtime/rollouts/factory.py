"""What a worker process is given to do, and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zetta.runtime.core import EndReason, EpisodeResult, Recovery, RunSpec, Sensing
from zetta.runtime.errors import SpecMismatch


@dataclass(frozen=True, slots=True)
class Identity:
    """What a factory will run, as it finds itself in the worker."""

    policies: Mapping[str, str] = field(default_factory=dict)
    """Digest of whatever fixes the behaviour, by policy name."""
    bundles: Mapping[str, str] = field(default_factory=dict)
    """Content digest by bundle name."""
    render_profiles: Mapping[str, str] = field(default_factory=dict)
    """Name of the profile by render setting."""
    sensing: Sensing = "vision"
    versions: Mapping[str, str] = field(default_factory=dict)
    conventions: Mapping[str, str] = field(default_factory=dict)
    """Action convention, control rate and other declared settings, as text."""


def merged(identities: Sequence[Identity]) -> Identity:
    """Return what several workers found, one render setting each.

    Raises:
        SpecMismatch: they found different versions.
    """
    first = identities[0]
    for other in identities[1:]:
        if other.versions != first.versions:
            raise SpecMismatch(
                f"two workers found different versions: {dict(first.versions)} and "
                f"{dict(other.versions)}; was something installed meanwhile? Start again"
            )
    return Identity(
        policies={k: v for each in identities for k, v in each.policies.items()},
        bundles={k: v for each in identities for k, v in each.bundles.items()},
        render_profiles={k: v for each in identities for k, v in each.render_profiles.items()},
        sensing=first.sensing,
        versions=first.versions,
        conventions=first.conventions,
    )


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """What is kept of one episode; the scene and the policy are known from its `RunSpec`."""

    success: bool
    success_at_reset: bool
    reason: EndReason
    ticks: int
    inferences: int
    interventions: int
    sources: Mapping[str, int]
    """Ticks driven by each source."""
    scene_digest: str
    wall_s: float
    late_ticks: int = 0
    dispersion: float | None = None
    """Mean dispersion of the chunks in metres; None when the policy has no such notion."""
    predicates: Mapping[str, bool] = field(default_factory=dict)
    """Goal predicates at the last tick: a label for diagnosis, read by no policy or critic."""
    detail: str = ""
    recoveries: tuple[Recovery, ...] = ()
    """What skills did, in order."""
    actions: str = ""
    """SHA-256 of all actions and who gave them; empty when nobody kept it."""
    first_success: int | None = None
    """Ticks after which the goal held for the first time; None where it never did."""
    verified: bool | None = None
    """What the evidence said of a drive in the end, without simulator truth; None elsewhere, and
    where it could not tell."""
    commands: int = 0
    """Commands that an agent carried out."""


def record_of(
    result: EpisodeResult,
    dispersion: float | None = None,
    predicates: Mapping[str, bool] | None = None,
    actions: str = "",
) -> EpisodeRecord:
    """Return what is kept of `result` and of what was seen beside it."""
    return EpisodeRecord(
        success=result.success,
        success_at_reset=result.success_at_reset,
        reason=result.reason,
        ticks=result.ticks,
        inferences=result.inferences,
        interventions=result.interventions,
        sources=dict(sorted(result.sources.items())),
        scene_digest=result.scene_digest,
        wall_s=result.wall_s,
        late_ticks=result.late_ticks,
        dispersion=dispersion,
        predicates=dict(sorted((predicates or {}).items())),
        detail=result.detail,
        recoveries=result.recoveries,
        actions=actions,
        first_success=result.first_success,
    )


class Watch(Protocol):
    """How a factory shows that it is alive."""

    def phase(self, text: str) -> None:
        """Say what begins now, such as `building libero_object/3`."""
        ...

    def tick(self, index: int) -> None:
        """Say that the running episode has reached a tick; may be called at every tick."""
        ...


class EpisodeFactory(Protocol):
    """Runs episodes in one process and keeps what they share.

    All episodes of one process are of one task, so the environment is built once. Workers get
    the dotted name of a function that takes nothing and returns a factory.
    """

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        """Build what `specs` need and say what it is.

        Raises:
            ConfigError: one of them asks for something that does not exist.
            InfraError: the simulator or a policy is not usable here.
        """
        ...

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        """Run one episode.

        Raises:
            InfraError: the machinery failed; the same scene may be tried again.
            ZettaError: any other kind would fail again.
        """
        ...

    def close(self) -> None:
        """Free the environment and the policies."""
        ...
