"""Picture strips of a campaign, drawn again from its logs; a process draws one task only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, TypeAlias

from zetta.runtime.cli import output
from zetta.runtime.cli.evolve_episodes import Errand, EvolvingEpisodes, sent_on
from zetta.runtime.cli.evolve_rollouts import Nobody, workers_of
from zetta.runtime.cli.evolve_world import SimWorld
from zetta.runtime.core import RunSpec
from zetta.runtime.episode_log import HEADER, read_episode
from zetta.runtime.errors import ZettaError
from zetta.runtime.rollouts.launchers import Job
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.skills.evolve.campaign_records import read_campaign
from zetta.skills.evolve.campaign_report import SHOWN, campaign_report
from zetta.skills.evolve.generation import CANDIDATE
from zetta.skills.evolve.report_views import CampaignReport, StripWish

PICTURES: Final = "pictures"
"""Folder of a campaign; drawn again when it is lost, so nobody needs to keep it."""
MOST: Final = 8
"""Strips of a report."""
Drawing: TypeAlias = tuple[RunSpec, Errand]


def keep_strips(
    folder: Path, pool: PoolSettings | None = None, world: SimWorld | None = None
) -> None:
    """Draw what a report wants to show and nobody has drawn; a note says what went wrong.

    Args:
        folder: of the campaign.
        pool: workers; found by the simulator's name where not given.
        world: runs promoted candidates once more for people to look at; nothing is run without it.
    """
    try:
        report = campaign_report(read_campaign(folder))
        if world is not None:
            _show(folder, report, world)
        drawings = [_drawing(folder, wish) for wish in missing_strips(folder, report)]
        if not drawings:
            return
        what = "a picture" if len(drawings) == 1 else f"{len(drawings)} pictures"
        output.note(f"drawing {what} of failures for the report")
        (folder / PICTURES).mkdir(exist_ok=True)
        _draw(drawings, pool or workers_of(report.manifest.sim, 1, folder))
    except (ZettaError, OSError) as error:
        output.note(f"some pictures of the report cannot be drawn: {error}")


def strips_of(folder: Path, number: int, pool: PoolSettings | None) -> list[Path]:
    """Draw what a report would show of a generation that is under way, and return the strips."""
    keep_strips(folder, pool)
    report = campaign_report(read_campaign(folder))
    wishes = [w for each in report.generations if each.number == number for w in each.strips]
    return [path for wish in wishes if (path := strip_path(folder, wish)).exists()]


def strip_path(folder: Path, wish: StripWish) -> Path:
    """Return where the strip of a wish lies."""
    return folder / PICTURES / f"{wish.name}.png"


def wished(report: CampaignReport) -> list[StripWish]:
    """Return the strips of a report: of recovered episodes and of the latest failures."""
    every = [wish for each in reversed(report.generations) for wish in each.strips]
    kept = sorted(every, key=lambda wish: wish.at is not None)[:MOST]
    return [wish for each in report.generations for wish in each.strips if wish in kept]


def missing_strips(folder: Path, report: CampaignReport) -> list[StripWish]:
    """Return the strips that can be drawn and are not."""
    return [
        wish
        for wish in wished(report)
        if (folder / wish.log / HEADER).exists() and not strip_path(folder, wish).exists()
    ]


def _show(folder: Path, report: CampaignReport, world: SimWorld) -> None:
    for each in report.generations:
        own = folder / f"{each.number:03d}"
        log, candidate = own / SHOWN, own / CANDIDATE
        if each.shown is not None and candidate.exists() and not (log / HEADER).exists():
            world.show(candidate, each.shown, log)


def _drawing(folder: Path, wish: StripWish) -> Drawing:
    log = folder / wish.log
    header = read_episode(log).header
    scene = header.scene
    # No bundle and no planted fault: poses are shown, nothing is run.
    spec = RunSpec(
        header.sim, scene.task.suite, scene.task.index, scene.layout, seed=scene.seed,
        policy=header.run.policy_name, sensing=header.run.sensing, render=header.run.render,
    )  # fmt: skip
    at = -1 if wish.at is None else wish.at
    return spec, Errand(log=str(log), at=at, strip=str(strip_path(folder, wish)))


def _draw(drawings: Sequence[Drawing], pool: PoolSettings | None) -> None:
    if pool is None:
        with closing(EvolvingEpisodes()) as here:
            for number, (spec, errand) in enumerate(drawings, 1):
                output.note(f"drawing strip {number}/{len(drawings)}")
                here.run(sent_on(spec, errand), Nobody())
        return
    jobs = [
        Job(errand.strip, f"{spec.suite}/{spec.task}", sent_on(spec, errand))
        for spec, errand in drawings
    ]
    with Pool(pool) as workers:
        for number, outcome in enumerate(workers.run(jobs), 1):
            if outcome.record is None:
                output.note(f"a picture of the report cannot be drawn: {outcome.error}")
            else:
                output.note(f"strip {number}/{len(jobs)} is drawn")
