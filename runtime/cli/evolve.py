"""`zetta evolve`: a campaign, or what its gate does to candidates whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.campaign import read_manifest
from zetta.skills.evolve.nulls import NullRun, Share, run_null
from zetta.skills.evolve.outcome_models import SceneModel
from zetta.skills.evolve.plans import GatePlan, ReliabilityPlan, plan_gate

if TYPE_CHECKING:
    from zetta.skills.evolve.campaign import Manifest
    from zetta.skills.evolve.campaign_run import CampaignResult

MODEL = "model"
"""Outcomes drawn from a model of scenes; no simulator."""


def command(
    sim: Annotated[str, typer.Option(help="Simulator; with --null also model.")] = MODEL,
    suite: Annotated[
        str | None, typer.Option(help="Suite whose failures are looked at; as in run by default.")
    ] = None,
    tasks: Annotated[str, typer.Option(help="Its tasks, such as 0-4 or 2,8; all by default.")] = "",
    policy: Annotated[str | None, typer.Option(help="The frozen policy.")] = None,
    author: Annotated[
        str, typer.Option(help="Who writes: search, llm, human; or sham, a control.")
    ] = "search",
    generations: Annotated[int, typer.Option(help="Candidates at most.")] = 1,
    budget: Annotated[
        int | None, typer.Option(help="Rollouts at most; 600 for each generation by default.")
    ] = None,
    bundle: Annotated[str, typer.Option(help="What is deployed already.")] = "none",
    sensing: Annotated[str, typer.Option(help="What skills may sense.")] = "vision",
    render: Annotated[str, typer.Option(help="Render setting.")] = "fast",
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for every episode; may be repeated.")
    ] = None,
    development: Annotated[int, typer.Option(help="Episodes in which failures are found.")] = 60,
    search: Annotated[int, typer.Option(help="Continuations of failures, at most.")] = 200,
    model: Annotated[str, typer.Option(help="Author llm: model, such as openai:gpt-5.")] = "",
    base_url: Annotated[str, typer.Option(help="Author llm: a local server's address.")] = "",
    drafts: Annotated[
        Path | None, typer.Option(help="Author human: folder of skill packages.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that run episodes.")] = 1,
    branch_seeds: Annotated[
        int, typer.Option(help="Continuations of each change, for a policy that draws.")
    ] = 1,
    pass_k: Annotated[
        int | None,
        typer.Option(help="Also ask for pass^k: as reliable as the parent."),
    ] = None,
    batch: Annotated[int, typer.Option(help="Pairs of the gate that are run at once.")] = 8,
    out: Annotated[
        Path | None, typer.Option(help="Folder; one with a campaign is gone on with.")
    ] = None,
    reuse: Annotated[
        Path | None, typer.Option(help="Take equal episodes from this campaign's journal.")
    ] = None,
    null: Annotated[
        int | None, typer.Option(help="Instead: send worthless candidates through the gate.")
    ] = None,
    seed: Annotated[str, typer.Option(help="Of every draw; a campaign draws one by itself.")] = "",
    everywhere: Annotated[
        bool, typer.Option(help="Nulls intervene in every scene, not on their target alone.")
    ] = False,
    strip: Annotated[
        bool, typer.Option(help="Draw the report's pictures; the author llm sees its own anyway.")
    ] = True,
    report: Annotated[
        Path | None, typer.Option(help="Instead: write the report of the campaign in this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn failures of a frozen policy into skills that passed an honest gate; or measure it."""
    if null is not None:
        _measure(null, sim, seed, everywhere, as_json)
        return
    if report is not None:
        _report(report, suite, strip, as_json)
        return
    suite = _checked(sim, suite, budget, pass_k)
    _check_counts((generations, workers, batch, development, search, branch_seeds))
    from zetta.runtime.cli import evolve_campaign as campaigns  # late: it needs the whole runtime
    from zetta.runtime.cli.number_lists import named_values

    wish = campaigns.Wish(
        sim=sim,
        suite=suite,
        tasks=tasks,
        policy=campaigns.chosen_policy(sim, policy),
        author=author,
        generations=generations,
        budget=budget,
        bundle=bundle,
        sensing=sensing,
        render=render,
        options=named_values(option or ()),
        seed=seed,
        workers=workers,
        development=development,
        search=search,
        batch=batch,
        branch_seeds=branch_seeds,
        pass_k=pass_k,
        model=model if author == "llm" else "",
    )
    writer = campaigns.find_author(author, model, base_url, drafts)
    _tell(*campaigns.evolve(wish, writer, out, reuse, strip), as_json)


def _checked(sim: str, suite: str | None, budget: int | None, pass_k: int | None) -> str:
    """Return the suite of a campaign, after looking at what is quickly looked at."""
    from zetta.runtime.cli.assemble import find_simulator  # late: it needs the whole runtime
    from zetta.runtime.cli.run_plan import defaults_of

    if sim == MODEL:
        raise ConfigError(
            "name a simulator (zetta evolve --sim libero --suite libero_object_swap), or measure "
            "the gate: zetta evolve --null 2000"
        )
    suite = suite or defaults_of(sim, find_simulator(sim)).suite
    if budget is not None and budget < 1:
        raise ConfigError(f"--budget is a number of rollouts, at least 1; got {budget}")
    if pass_k is not None and not 1 <= pass_k <= ReliabilityPlan().runs:
        raise ConfigError(f"--pass-k is from 1 to {ReliabilityPlan().runs}, got {pass_k}")
    return suite


def _check_counts(counts: Sequence[int]) -> None:
    if min(counts) < 1:
        raise ConfigError(
            "generations, workers, batch, development, search and branch-seeds are at least 1"
        )


def _tell(result: CampaignResult, folder: Path, manifest: Manifest, as_json: bool) -> None:
    from zetta.runtime.cli import evolve_campaign as campaigns  # late: as above
    from zetta.runtime.cli.evolve_report import report_of

    if as_json:
        output.emit(campaigns.answer_of(result, folder, manifest))
        return
    for number, each in enumerate(result.generations):
        output.answer(f"generation {number}: {each.verdict.decision} - {each.verdict.reason}")
    if result.stopped:
        output.answer(result.stopped)
    output.answer(f"{result.promoted} promoted; the bundle is {result.bundle}")
    output.answer(f"look at {report_of(folder) or folder}")


def _report(folder: Path, suite: str | None, strip: bool, as_json: bool) -> None:
    """Write the report of a campaign again; pictures are drawn where that is possible."""
    if suite is not None:
        raise ConfigError(
            "--report writes the report of a campaign that was run; leave --suite out, or run "
            "the campaign without --report: it writes its own"
        )
    from zetta.runtime.cli.evolve_report import write_report  # late: an extra
    from zetta.runtime.cli.evolve_strips import keep_strips

    read_manifest(folder)  # says so when there is no campaign
    if strip:
        keep_strips(folder.resolve())
    path = write_report(folder.resolve())
    if as_json:
        output.emit({"report": str(path)})
        return
    output.answer(f"look at {path}")


def _measure(null: int, sim: str, seed: str, everywhere: bool, as_json: bool) -> None:
    """Measure the gate: how often it promotes nothing, and how often it finds what was planted."""
    if sim not in (MODEL, "toy"):
        raise ConfigError(f"the gate is measured on {MODEL!r} or 'toy', not on {sim!r}")
    if seed and not seed.isdecimal():
        raise ConfigError(f"a null run takes a number as its seed, got {seed!r}")
    plan, number = plan_gate(), int(seed or 0)
    if sim == "toy":
        _measure_on_toy(null, number, plan, as_json)
        return
    scenes = SceneModel(plan.effect.baseline, quiet_elsewhere=not everywhere)
    run = run_null(null, number, plan, scenes)
    if as_json:
        output.emit({**_counts(run), "seed": number, "plan": run.plan, "details": asdict(run)})
        return
    output.answer(output.table(("what", "count", "of", "95 %"), _rows(run)))
    output.answer(
        f"{run.alpha_spent:.3g} alpha spent over {run.reached_gate} openings; at least "
        f"{run.promoted.count} promotions have a chance of {run.chance:.2g} if all of it is real"
    )


def _measure_on_toy(null: int, seed: int, plan: GatePlan, as_json: bool) -> None:
    from zetta.runtime.cli.evolve_toy import (
        planted_among,
        toy_null,
    )  # late: it needs the whole runtime

    with output.progress("through the gate", planted_among(null) + null) as advance:
        run = toy_null(null, seed, plan, advance)
    if as_json:
        output.emit({**asdict(run), "seed": seed, "plan": plan.digest})
        return
    output.answer(
        f"nulls: {run.promoted} of {run.candidates} promoted, {run.reached_gate} reached the "
        f"sealed block ({run.alpha_spent:.3g} alpha); {run.discordant} of {run.pairs} pairs differ"
    )
    output.answer(
        f"planted fixes: {run.planted_promoted} of {run.planted} promoted; "
        f"{run.rollouts} episodes in all"
    )


def _counts(run: NullRun) -> dict[str, output.Json]:
    return {
        "candidates": run.candidates,
        "reached_gate": run.reached_gate,
        "discordant": run.discordant,
        "promoted": run.promoted.count,
        "planted": run.planted,
        "planted_promoted": run.planted_promoted.count,
    }


def _rows(run: NullRun) -> list[tuple[str, ...]]:
    return [
        ("nulls that reached the sealed block", str(run.reached_gate), str(run.candidates), "-"),
        _row("nulls promoted", run.promoted),
        _row("nulls better than the parent, straight on the block", run.alone.superior),
        _row("planted fixes promoted", run.planted_promoted),
        _row("naive gate fooled, each try", run.naive.fooled),
        _row("naive gate fooled, in ten tries", run.naive.campaigns_fooled),
    ]


def _row(what: str, share: Share) -> tuple[str, ...]:
    bounds = f"{100 * share.low:.2g} to {100 * share.high:.3g} %"
    return what, str(share.count), str(share.n), bounds
