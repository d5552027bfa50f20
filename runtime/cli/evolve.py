"""`zetta evolve`: what the gate of the evolution loop does to candidates whose truth is known."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.nulls import NullRun, Share, run_null
from zetta.skills.evolve.outcome_models import SceneModel
from zetta.skills.evolve.plans import GatePlan, plan_gate

MODEL = "model"
"""Outcomes drawn from a model of scenes; no simulator."""


def command(
    null: Annotated[
        int | None, typer.Option(help="Send so many worthless candidates through the gate.")
    ] = None,
    sim: Annotated[
        str, typer.Option(help="Where: model (outcomes drawn, no simulator), or toy.")
    ] = MODEL,
    seed: Annotated[int, typer.Option(help="Of every draw.")] = 0,
    everywhere: Annotated[
        bool, typer.Option(help="Nulls intervene in every scene, not on their target alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the gate: how often it promotes nothing, and how often it finds what was planted."""
    if null is None:
        raise ConfigError(
            "zetta evolve measures the gate so far; say how many worthless candidates it gets: "
            "zetta evolve --null 2000"
        )
    if sim not in (MODEL, "toy"):
        raise ConfigError(f"the gate is measured on {MODEL!r} or 'toy' so far, not on {sim!r}")
    plan = plan_gate()
    if sim == "toy":
        _measure_on_toy(null, seed, plan, as_json)
        return
    scenes = SceneModel(plan.effect.baseline, quiet_elsewhere=not everywhere)
    run = run_null(null, seed, plan, scenes)
    if as_json:
        output.emit({**_counts(run), "seed": seed, "plan": run.plan, "details": asdict(run)})
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
