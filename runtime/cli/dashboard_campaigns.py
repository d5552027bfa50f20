"""What the dashboard shows of campaigns: their records, read by the code that writes the report."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Final, TypeAlias

from zetta.runtime.cli.evolve_strips import PICTURES, strip_path, wished
from zetta.runtime.cli.output import Json
from zetta.runtime.cli.report_campaign import command_of
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json
from zetta.skills.evolve.campaign import MANIFEST
from zetta.skills.evolve.campaign_records import CampaignRead, GenerationRead, read_campaign
from zetta.skills.evolve.campaign_report import campaign_report
from zetta.skills.evolve.evidence import Tally
from zetta.skills.evolve.generation_records import (
    Candidate,
    Developed,
    Development,
    Diagnosed,
    Judged,
)
from zetta.skills.evolve.report_views import BlockRow, CampaignReport, GenerationReport, Rate

KEPT: Final = 16
"""Campaigns whose pages are remembered."""
State: TypeAlias = tuple[tuple[str, int, int], ...]
"""Name, time of change and size of every record."""


class CampaignPages:
    """Reads campaigns for the dashboard; a page is made again when a record is new."""

    def __init__(self) -> None:
        self._pages: dict[Path, tuple[State, Mapping[str, Json]]] = {}
        self._lock = threading.Lock()

    def page(self, folder: Path) -> Mapping[str, Json]:
        """Return everything that is known of a campaign, as JSON.

        Raises:
            ConfigError: there is no campaign, or a record is damaged.
        """
        state = _state(folder)
        with self._lock:  # two readers at once would do the same work twice
            known = self._pages.get(folder)
            if known is not None and known[0] == state:
                return known[1]
            read = read_campaign(folder)
            page = _page(read, campaign_report(read), folder)
            self._pages.pop(folder, None)
            self._pages[folder] = (state, page)
            while len(self._pages) > KEPT:
                del self._pages[next(iter(self._pages))]
            return page

    def summary(self, folder: Path) -> Mapping[str, Json]:
        """Return what a list says of a campaign; an error is part of the answer.

        Only what lies in the page is read, so a campaign that has not changed costs nothing.
        """
        try:
            page = self.page(folder)
        except ConfigError as error:
            return {"error": str(error)}
        return {name: page[name] for name in SUMMARY}

    def picture(self, folder: Path, name: str) -> Path | None:
        """Return the file of a strip; None where there is no such picture."""
        known = self.page(folder)["strips"]
        assert isinstance(known, Sequence)
        names = [each["name"] for each in known if isinstance(each, Mapping) and each["there"]]
        return folder / PICTURES / f"{name}.png" if name in names else None


SUMMARY: Final = (
    "name", "suite", "sim", "policy", "author", "sensing", "complete", "promoted", "decisions",
    "planned_generations", "rollouts", "budget", "alpha", "alpha_spent",
)  # fmt: skip


def _state(folder: Path) -> State:
    found = [folder / MANIFEST, *folder.glob("[0-9]*/*.json"), *folder.glob(f"{PICTURES}/*.png")]
    facts = ((path, path.stat()) for path in sorted(found) if path.exists())
    return tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in facts)


def _page(read: CampaignRead, report: CampaignReport, folder: Path) -> Mapping[str, Json]:
    manifest = report.manifest
    owned = {each.number: each for each in read.generations}
    return {
        "name": report.name,
        "sim": manifest.sim,
        "suite": manifest.suite,
        "tasks": list(manifest.tasks),
        "policy": manifest.policy,
        "author": manifest.author,
        "sensing": manifest.sensing,
        "bundle": manifest.bundle,
        "complete": report.complete,
        "promoted": report.promoted,
        "decisions": [each.decision or "running" for each in report.generations],
        "planned_generations": manifest.generations,
        "budget": manifest.rollouts,
        "rollouts": sum(row.rollouts for row in report.costs),
        "alpha": report.alpha,
        "alpha_spent": report.alpha_spent,
        "openings": plain(report.openings),
        "floor": plain(report.floor),
        "costs": plain(report.costs),
        "author_spend": _summed_spend(report),
        "generations": [_generation(each, owned[each.number]) for each in report.generations],
        "strips": [
            {"name": wish.name, "caption": wish.caption, "generation": int(wish.name[:3]),
             "there": strip_path(folder, wish).exists()}
            for wish in wished(report)
        ],
        "versions": dict(manifest.versions),
        "options": dict(manifest.options),
        "digest": manifest.digest,
        "plan": manifest.plan,
        "command": command_of(manifest),
    }  # fmt: skip


def _generation(report: GenerationReport, own: GenerationRead) -> Json:
    development = own.get("development", Development)
    episodes = () if development is None else development.episodes
    return {
        "number": report.number,
        "complete": report.complete,
        "decision": report.decision or "running",
        "reason": report.reason,
        "about": report.about,
        "stations": _stations(report, own),
        "funnel": _funnel(report, own),
        "clusters": _clusters(own, episodes),
        "support": plain(report.support),
        "development": plain(report.development),
        "tasks": plain(report.tasks),
        "arms": plain(report.arms),
        "gain": None if report.gain is None else list(report.gain),
        "blocks": plain(report.blocks),
        "costs": plain(report.costs),
        "candidate": plain(report.candidate),
    }


def _stations(report: GenerationReport, own: GenerationRead) -> Json:
    """Return how many things passed each station on the way from failures to a verdict."""
    found = own.get("diagnosis", Diagnosed)
    candidate = own.get("candidate", Candidate)
    diagnosed = () if found is None or found.diagnosis is None else found.diagnosis.clusters
    stations: list[Json] = []
    if report.development.runs:
        failed = report.development.runs - report.development.successes
        stations.append(_station("failures", failed, report.development.runs, "episodes"))
    if found is not None:
        question = len(found.failures)
        groups = max(1, len(diagnosed))
        stations.append(_station("clusters", groups, question, "failures in question"))
    if report.support:
        kept = sum(each.finding == "supported" for each in report.support)
        stations.append(_station("recoveries", kept, len(report.support), "tried on branches"))
    if candidate is not None:
        written = int(not candidate.problem)
        stations.append(_station("candidate", written, 1, "written"))
    return stations


def _funnel(report: GenerationReport, own: GenerationRead) -> Json:
    """Return the rows of the funnel; those of the gate with their pairs, once it is decided."""
    judged = own.get("verdict", Judged)
    stages = () if judged is None else judged.verdict.stages
    counted: dict[str, Tally] = {each.stage: each.counts for each in stages}
    rows: list[Json] = []
    for row in report.funnel:
        tally = counted.get(row.stage)
        pairs = plain(tally) if tally is not None and tally.pairs else None
        rows.append({**to_json(row), "pairs": pairs})
    return rows


def _station(name: str, passed: int, of: int, what: str) -> Json:
    return {"name": name, "passed": passed, "of": of, "what": what}


def _clusters(own: GenerationRead, episodes: Sequence[Developed]) -> Json:
    """Return the groups of failures; the one that the generation is about is marked.

    Where no group is large enough, it is about all of them together, which is a row of its own.
    """
    found = own.get("diagnosis", Diagnosed)
    if found is None:
        return []
    logs = {each.name: each.log for each in episodes}
    groups = [] if found.diagnosis is None else list(found.diagnosis.clusters)
    if found.target.index not in {group.index for group in groups}:
        groups.insert(0, found.target)
    return [
        {
            "index": group.index,
            "size": group.size,
            "missing": group.missing,
            "divergence": to_json(group.divergence),
            "away_in": group.away_in,
            "medoid": group.medoid,
            "log": logs.get(group.medoid, ""),
            "target": group.index == found.target.index,
            "recovered": to_json(group.recovered),
            "tasks": dict(group.tasks),
        }
        for group in groups
    ]


def _summed_spend(report: CampaignReport) -> Mapping[str, Json]:
    """Return what authors took over all generations: CPU, and tokens and money of a model."""
    sums: dict[str, float] = {}
    for each in report.generations:
        for what, much in () if each.candidate is None else each.candidate.author_cost.items():
            sums[what] = sums.get(what, 0.0) + much
    return dict(sums)


def plain(value: object) -> Json:
    """Return a part of the report as JSON, with the bounds that it computes of itself.

    >>> plain(Rate(0, 0))
    {'successes': 0, 'runs': 0, 'low': 0.0, 'high': 1.0}
    """
    if isinstance(value, Rate):
        return {"successes": value.successes, "runs": value.runs, "low": value.low,
                "high": value.high}  # fmt: skip
    if is_dataclass(value) and not isinstance(value, type):
        held = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
        return {**held, "noise": to_json(value.noise)} if isinstance(value, BlockRow) else held
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    found: Json = to_json(value)
    return found
