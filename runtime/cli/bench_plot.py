"""The picture of a benchmark: how far each figure is from its target."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from zetta.runtime.benchmarks import Figure
from zetta.runtime.errors import ConfigError, InfraError

MET, MISSED = "#2a7f62", "#b5482f"
BAR_INCHES: Final = 0.45


def check_plot(plot: Path | None) -> None:
    """Refuse a plot that cannot be drawn, before anything is measured.

    Raises:
        ConfigError: matplotlib is missing, or the name is of no picture.
    """
    if plot is None:
        return
    if plot.suffix not in (".png", ".svg", ".pdf"):
        raise ConfigError(f"--plot takes a .png, .svg or .pdf file, got {str(plot)!r}")
    if find_spec("matplotlib") is None:
        raise ConfigError("--plot draws with matplotlib: pip install 'zetta[evolve]'")


def attained(figure: Figure) -> float | None:
    """Return how many times its target a figure attains; None without a target other than 0.

    >>> attained(Figure("a", 5.0, "ms", target=10.0))
    2.0
    """
    if not figure.target:
        return None
    if figure.ratio is not None:
        return figure.ratio / figure.target
    if figure.higher_is_better:
        return figure.value / figure.target
    return figure.target / figure.value if figure.value > 0 else None


def draw_figures(figures: Sequence[Figure], plot: Path) -> bool:
    """Draw one bar for each figure that has a target; say whether there was any.

    Raises:
        InfraError: the file cannot be written.
    """
    from matplotlib.figure import Figure as Sheet  # late: half a second

    bars = [(each, reached) for each in figures if (reached := attained(each)) is not None]
    if not bars:
        return False
    sheet = Sheet(figsize=(8.0, 1.2 + BAR_INCHES * len(bars)), layout="constrained")
    axes = sheet.subplots()
    labels = [f"{each.name} ({each.value:.3g} {each.unit})" for each, _ in bars]
    colours = [MET if each.met else MISSED for each, _ in bars]
    axes.barh(labels, [reached for _, reached in bars], color=colours)
    axes.axvline(1.0, color="black", linestyle="--", linewidth=1.0)
    axes.set_xlabel("times the target (dashed: just reached)")
    axes.invert_yaxis()
    try:
        sheet.savefig(plot)
    except OSError as error:
        raise InfraError(f"cannot write {plot}: {error.strerror}") from error
    return True
