"""What a counterfactual asks of a logged episode, and which episodes cannot be asked."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from zetta.primitives.roles import roles_or_none
from zetta.runtime import registry
from zetta.runtime.cli.agents import is_agent
from zetta.runtime.cli.deploy import bundle_digest, bundle_of, split_bundle
from zetta.runtime.cli.options import sensing_level
from zetta.runtime.cli.skills import find_skill
from zetta.runtime.core import RunSpec, Sensing
from zetta.runtime.episode_log import HEADER, TICKS, EpisodeHeader, LoggedEpisode
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import NO_BUNDLE
from zetta.skills.package import load_skill

MARK: Final = "counterfactual"
"""The option in the log of a branch, so that nobody takes it for an episode that was run."""
Branch: TypeAlias = Literal["as it was", "with the skill"]
BRANCHES: Final[tuple[Branch, ...]] = get_args(Branch)


@dataclass(frozen=True, slots=True)
class Question:
    """What decides a counterfactual: another one needs a folder of its own."""

    episode: str
    """Folder of the log."""
    log: str
    """SHA-256 of what it holds."""
    tick: int
    skill: str
    folder: str
    """Of the skill's package."""
    package: str
    """SHA-256 of the package."""
    sensing: Sensing
    share: float | None = None
    """Of the step budget, for skills; None is that of the episode."""


def question_of(
    folder: Path,
    record: LoggedEpisode,
    tick: int,
    wanted: str,
    sensing: str | None,
    share: float | None = None,
) -> Question:
    """Check what was asked for, and return it; nothing is built.

    Args:
        folder: of the episode.
        record: the episode.
        tick: where the branches part.
        wanted: name of a skill, or the folder of one.
        sensing: highest level that may be read; None for that of the episode.
        share: of the step budget, for skills; None for that of the episode.

    Raises:
        ConfigError: no such tick, skill or level, the skill is above the level or does not fit the
            instruction, or this kind of episode cannot be branched.
    """
    header = record.header
    _check_kind(header)
    level = sensing_level(sensing or header.run.sensing)
    if not 0 <= tick < len(record.ticks):
        raise ConfigError(
            f"{folder} has the ticks 0-{len(record.ticks) - 1}, got --counterfactual {tick}"
        )
    package = load_skill(find_skill(wanted))
    bundle_of(str(package.folder)).check_level(level)
    if not package.fits(roles_or_none(header.instruction)):
        needs = ", ".join(package.page.roles) or "no role"
        raise ConfigError(
            f"the skill {package.name!r} does not fit the instruction {header.instruction!r}: it "
            f"binds {needs}; choose another skill"
        )
    digest = hashlib.sha256()
    for name in (HEADER, TICKS):
        digest.update((folder / name).read_bytes())
    return Question(
        episode=str(folder.resolve()),
        log=digest.hexdigest(),
        tick=tick,
        skill=package.name,
        folder=str(package.folder),
        package=package.digest,
        sensing=level,
        share=share,
    )


def spec_of(record: LoggedEpisode, question: Question) -> RunSpec:
    """Return what runs an episode again, with every signal, as orders for skills need it.

    An episode in which critics were only heard is one of the policy alone.

    Raises:
        ConfigError: its bundle is not what it was.
    """
    header = record.header
    run, scene = header.run, header.scene
    options = {**run.options, "signals": "yes"}
    if question.share is not None:
        options["recovery_share"] = f"{question.share:g}"
    bundle = run.bundle
    if options.pop("shadow", "") == "yes":
        bundle = NO_BUNDLE
        for name in ("calibration", "critic_isolation"):
            options.pop(name, None)
    spec = RunSpec(
        header.sim, scene.task.suite, scene.task.index, scene.layout, seed=scene.seed,
        policy=run.policy_name, policy_seed=run.policy_seed, bundle=bundle,
        sensing=question.sensing,
        render=run.render, options=options,
    )  # fmt: skip
    if bundle != NO_BUNDLE and bundle_digest(spec) != run.bundle_digest:
        raise ConfigError(
            f"the bundle {bundle!r} is not what it was when the episode ran; put that version "
            "back (zetta skills history, zetta skills rollback), or run the episode again"
        )
    return spec


def _check_kind(header: EpisodeHeader) -> None:
    """Refuse an episode that cannot be run again from its log.

    Raises:
        ConfigError: it cannot.
    """
    run = header.run
    spec = RunSpec(
        header.sim, header.scene.task.suite, header.scene.task.index, header.scene.layout,
        policy=run.policy_name, options=run.options,
    )  # fmt: skip
    reasons = {
        "an arm cannot be taken back to a tick": registry.is_arm(header.sim),
        "it was cut short by an error, so there is nothing to compare with": not header.complete,
        "it is a branch of another one; ask that one": MARK in run.options,
        "an agent drove it, whose answers are not repeated": is_agent(spec),
        "no policy drove it": not registry.infers(run.policy_name),
        "its policy ran ahead in real time, which nothing repeats": (
            run.options.get("inference") == "async"
        ),
        f"it ran under the control {split_bundle(run.bundle)[0]!r}, which is no plain bundle": bool(
            split_bundle(run.bundle)[0]
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise ConfigError(
                f"this episode has no counterfactual: {reason}; take one in which a policy drives "
                "in a simulator"
            )
