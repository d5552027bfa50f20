"""Figures of reports as SVG that stands inside the page and follows its colours.

Colours are written as the page's own variables, so a figure is dark where the page is. Every
series differs in its marker or its dashes too, for print and for eyes that see few colours.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from zetta.runtime.reporting.page import missing_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, LINE, THIN, PAPER = "#1f2933", "#e4e7eb", "#9fb3c8", "#fefefe"
SERIES: Final = ("#0b7a75", "#b45309", "#3b5bdb", "#a61e4d", "#5f3dc4", "#2b8a3e")
VARIABLES: Final[Mapping[str, str]] = {
    INK: "--ink", LINE: "--line", THIN: "--thin", PAPER: "--paper",
    **{colour: f"--series-{i}" for i, colour in enumerate(SERIES)},
}  # fmt: skip
DASHES: Final = ("-", "--", "-.", ":")
MARKERS: Final = "osD^vP"
ASIDE: Final = 0.12
"""Walks that go the same way are drawn side by side."""
HATCHES: Final = ("", "///", "...", "xx", "\\\\\\", "++")
WIDTH: Final = 7.6
"""Inches."""
MOST_LABEL: Final = 40
"""Letters of a label; longer ones are cut."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point with its interval."""

    label: str
    value: float
    low: float
    high: float
    series: int = 0


@dataclass(frozen=True, slots=True)
class Curve:
    """A rising step function: what share of episodes was solved after so many ticks."""

    label: str
    ticks: tuple[int, ...]
    """At which one more was solved, ascending."""
    runs: int


@dataclass(frozen=True, slots=True)
class Walk:
    """Pairs that differed, in order, on their way to a boundary."""

    label: str
    wins: tuple[bool, ...]
    """Of each pair that differed, whether it was a win."""


def svg_of(draw: Callable[[Axes], None], name: str, height: float, width: float = WIDTH) -> str:
    """Return a figure as SVG for the inside of a page; equal figures give equal texts.

    Args:
        draw: draws on the axes.
        name: begins every identifier, so that figures of one page do not meet.
        height: inches.
        width: inches.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl  # late: an extra, and half a second
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra(error) from error

    settings: dict[Any, Any] = {  # the type of matplotlib lists every name there is
        "svg.hashsalt": "zetta", "svg.fonttype": "none", "font.size": 9, "text.parse_math": False,
        "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK,
        "ytick.color": INK, "figure.facecolor": "none", "axes.facecolor": "none",
        "savefig.facecolor": "none", "hatch.linewidth": 0.6, "hatch.color": PAPER,
    }  # fmt: skip
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), name)


def forest(estimates: Sequence[Estimate], axis: str, name: str, middle: float | None = None) -> str:
    """Draw estimates under each other with their intervals, in percent or in points."""

    def draw(axes: Axes) -> None:
        for place, each in enumerate(estimates):
            colour, marker = SERIES[each.series % 6], MARKERS[each.series % 6]
            bars = [[max(0.0, each.value - each.low)], [max(0.0, each.high - each.value)]]
            axes.errorbar(
                [each.value], [place], xerr=bars, fmt=marker, color=colour, ms=5, capsize=2.5,
                lw=1.2,
            )  # fmt: skip
        if middle is not None:
            axes.axvline(middle, color=INK, lw=0.9, ls=":")
        axes.set_yticks(range(len(estimates)), [_cut(each.label) for each in estimates])
        axes.set_ylim(len(estimates) - 0.4, -0.6)
        axes.set_xlabel(axis)
        axes.grid(axis="x", color=LINE, lw=0.7)
        if middle is None:
            axes.set_xlim(-2, 102)

    return svg_of(draw, name, 0.75 + 0.27 * max(2, len(estimates)))


def solved_by(curves: Sequence[Curve], name: str) -> str:
    """Draw which share of the episodes was solved within a number of ticks."""

    def draw(axes: Axes) -> None:
        end = max((t for each in curves for t in each.ticks), default=1)
        for place, each in enumerate(curves):
            share = [100 * (k + 1) / each.runs for k in range(len(each.ticks))]
            x = [0, *each.ticks, end]
            y = [0.0, *share, share[-1] if share else 0.0]
            axes.step(
                x, y, where="post", color=SERIES[place % 6], ls=DASHES[place % 4], lw=1.6,
                label=f"{_cut(each.label)} ({len(each.ticks)}/{each.runs})",
            )  # fmt: skip
        axes.set_ylim(-3, 103)
        axes.set_xlim(left=0)
        axes.set_xlabel("control ticks")
        axes.set_ylabel("episodes solved, %")
        axes.grid(color=LINE, lw=0.7)
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, name, 3.0)


def shares(arms: Sequence[tuple[str, Mapping[str, float]]], name: str) -> str:
    """Draw who drove: one bar for each arm, in shares of its ticks."""
    sources = sorted({source for _, own in arms for source in own}, key=_policy_first)

    def draw(axes: Axes) -> None:
        left = [0.0] * len(arms)
        for place, source in enumerate(sources):
            width = [100 * own.get(source, 0.0) for _, own in arms]
            axes.barh(
                range(len(arms)), width, left=left, height=0.62, color=SERIES[place % 6],
                edgecolor=PAPER, hatch=HATCHES[(place + place // 6) % 6], label=_cut(source),
            )  # fmt: skip
            left = [one + more for one, more in zip(left, width, strict=True)]
        axes.set_yticks(range(len(arms)), [_cut(label) for label, _ in arms])
        axes.set_ylim(len(arms) - 0.4, -0.6)
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of control ticks, %")
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, name, 0.75 + 0.36 * max(2, len(arms)))


def stopping(walks: Sequence[Walk], stops: Sequence[tuple[int, int]], name: str) -> str:
    """Draw wins against pairs that differ, and the boundary at which the test stops.

    Args:
        walks: of the candidate against each opponent.
        stops: (pairs that differ, wins that suffice), where a stop is possible.
        name: of the figure.
    """

    def draw(axes: Axes) -> None:
        last = max([1, *(d for d, _ in stops), *(len(each.wins) for each in walks)])
        axes.plot([0, last], [0, last], color=THIN, lw=0.8)
        axes.plot([0, last], [0, last / 2], color=THIN, lw=0.8, ls=":")
        if stops:
            axes.plot(*zip(*stops, strict=True), "_", color=INK, ms=11, mew=1.8, label="boundary")
        for place, each in enumerate(walks):
            wins = [sum(each.wins[:k]) for k in range(len(each.wins) + 1)]
            aside = ASIDE * (place - (len(walks) - 1) / 2)
            axes.plot(
                [k + aside for k in range(len(wins))], wins,
                color=SERIES[place % 6], ls=DASHES[place % 4], marker=MARKERS[place % 6],
                ms=4, lw=1.4, label=_cut(each.label),
            )  # fmt: skip
        axes.set_xlim(-0.3, last + 0.3)
        axes.set_ylim(-0.4, last + 0.4)
        axes.set_xlabel("pairs that differ (solid: all won; dotted: a coin)")
        axes.set_ylabel("pairs won")
        axes.grid(color=LINE, lw=0.7)
        axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))

    return svg_of(draw, name, 3.0)


# ------------------------------------------------------------------------------ inside


def _inlined(svg: str, name: str) -> str:
    """Return the element alone: no prolog, no metadata, no address, identifiers of its own."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'\b(?:xlink:)?href="#', f'href="#{name}-', svg)
    svg = re.sub(r"url\(#", f"url(#{name}-", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)


def _cut(label: str) -> str:
    clean = "".join(letter if letter.isprintable() else " " for letter in label)
    return clean if len(clean) <= MOST_LABEL else clean[: MOST_LABEL - 1] + "…"


def _policy_first(source: str) -> tuple[bool, str]:
    return source != "policy", source
