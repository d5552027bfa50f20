"""The figures of a campaign's report, as SVG for the inside of its page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from zetta.runtime.reporting.plots import INK, LINE, PAPER, SERIES, THIN, svg_of
from zetta.skills.evolve.report_views import CampaignReport, GenerationReport, Rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAIN, NULL = SERIES[0], SERIES[1]
APART: Final = 0.07
"""Blocks that meet at one bundle are drawn side by side."""


def success_curve(report: CampaignReport) -> str:
    """Draw success against the generation.

    A thick line joins parent and candidate on one report block, thin lines are its tasks; sham and
    random are beside the candidate. Hollow: the parent on the development block.
    """

    def draw(axes: Axes) -> None:
        for each in report.generations:
            _development(axes, each)
            if each.arms:
                _block(axes, each)
        _frame(axes, report)

    return svg_of(draw, "generations", 3.4)


def _development(axes: Axes, each: GenerationReport) -> None:
    if each.development.runs:
        _point(axes, each.number, each.development, "o", INK, hollow=True)


def _block(axes: Axes, each: GenerationReport) -> None:
    at = (each.number + APART, each.number + 1 - APART)
    for row in each.tasks:
        arms = row.arms
        if "parent" in arms and "candidate" in arms:
            axes.plot(at, _percent(arms["parent"], arms["candidate"]), color=THIN, lw=0.8, zorder=1)
    rates = {row.arm: row.rate for row in each.arms}
    parent, candidate = rates["parent"], rates["candidate"]
    axes.plot(at, _percent(parent, candidate), color=GAIN, lw=2.8, zorder=3)
    _point(axes, at[0], parent, "o", GAIN)
    _point(axes, at[1], candidate, "o", GAIN)
    for place, (arm, marker) in enumerate((("sham", "s"), ("random", "D"))):
        if arm in rates:
            _point(axes, at[1] - APART * (place + 1), rates[arm], marker, NULL)


def _point(
    axes: Axes, at: float, rate: Rate, marker: str, colour: str, hollow: bool = False
) -> None:
    (value,) = _percent(rate)
    below, above = value - 100 * rate.low, 100 * rate.high - value
    axes.errorbar(
        [at], [value], yerr=[[max(0.0, below)], [max(0.0, above)]], fmt=marker, color=colour,
        mfc=PAPER if hollow else colour, ms=5, capsize=2.5, lw=1.1, zorder=4,
    )  # fmt: skip


def _percent(*rates: Rate) -> Sequence[float]:
    return [100 * rate.value for rate in rates]


def _frame(axes: Axes, report: CampaignReport) -> None:
    last = max(1, len(report.generations))
    axes.set_xlim(-0.3, last + 0.3)
    axes.set_ylim(-3, 103)
    axes.set_xticks(range(last + 1))
    axes.set_xlabel("generation (the parent at its number, the promoted bundle one further)")
    axes.set_ylabel("episodes solved, %")
    axes.grid(axis="y", color=LINE, lw=0.7)
    for marker, colour, fill, label in (
        ("o", GAIN, GAIN, "parent → candidate, report block"),
        ("s", NULL, NULL, "sham"),
        ("D", NULL, NULL, "random moments"),
        ("o", INK, PAPER, "parent, development block"),
    ):
        axes.plot([], [], marker, color=colour, mfc=fill, ms=5, label=label)
    axes.plot([], [], color=THIN, lw=0.8, label="one task")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
