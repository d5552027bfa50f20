"""`zetta run --signals`: what the robot feels and sees, on stderr, while an episode runs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final

from zetta.runtime.cli import colours, output
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick
from zetta.runtime.signals import SIGNALS

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

REDRAW_S: Final = 0.2
PLAIN_S: Final = 1.0
"""Seconds between two lines where stderr is no terminal."""
CELL_WIDTH: Final = 40
"""Columns of a terminal that one signal takes."""
HEADLINES: Final = (
    "ee_speed", "gripper_opening", "holding", "closed_on_nothing", "slip", "stalled_for", "wander",
    "chunk_disagreement", "dispersion", "object_distance", "object_age", "object_to_receptacle",
    "since_handback",
)  # fmt: skip
"""What a plain line shows, where it is known."""


class LiveSignals:
    """A sink that shows every signal of the present tick; use it as a context.

    It takes the place of `LiveLine`: two displays cannot share a terminal.
    """

    def __init__(self, label: str) -> None:
        """`label` says which episode this is."""
        self._label = label
        self._console: Console | None = None
        self._live: Live | None = None
        self._shown = 0.0
        self._max_steps = 0
        self._instruction = ""
        self._said = ""

    def __enter__(self) -> LiveSignals:
        if colours.lively(sys.stderr):
            from rich.console import Console
            from rich.live import Live

            self._console = Console(stderr=True)
            self._live = Live(
                console=self._console, transient=True, auto_refresh=False,
                vertical_overflow="crop",
            )  # fmt: skip
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Say what begins."""
        self._max_steps, self._instruction = scene.task.max_steps, instruction
        self._shown, self._said = 0.0, ""
        if self._live is None:
            output.note(f"{self._label}: {instruction}")

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Show the tick, not more often than an eye follows; a verdict stays until the next."""
        for verdict in tick.verdicts:
            self._said = f"{verdict.decision} {verdict.critic}: {verdict.reason}".rstrip(": ")
        now = time.monotonic()
        if now - self._shown < (PLAIN_S if self._live is None else REDRAW_S):
            return
        self._shown = now
        where = f"{self._label}  tick {tick.index + 1}/{self._max_steps}  {tick.source}"
        if self._live is None or self._console is None:
            output.note("  ".join((where, *_headlines(tick.signals))))
            return
        title = "  ".join(filter(None, (where, self._said or self._instruction)))
        self._live.update(_picture(title, tick.signals, self._console.width), refresh=True)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Leave the last word to the caller."""


def _headlines(signals: Mapping[str, float]) -> Iterator[str]:
    for name in HEADLINES:
        value = signals.get(name, math.nan)
        if math.isfinite(value):
            yield f"{name} {_number(value)}"


def _number(value: float) -> str:
    """Return a value as a reader wants it: three digits after the point, whole ones bare.

    >>> [_number(v) for v in (1.0, 0.12345, float("nan"))]
    ['1', '0.123', '-']
    """
    if not math.isfinite(value):
        return "-"
    return f"{value:.0f}" if value == int(value) else f"{value:.3f}"


def _picture(title: str, signals: Mapping[str, float], width: int) -> Group:
    """Return the title over all signals, column after column, as many as `width` holds."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    columns = max(width // CELL_WIDTH, 1)
    table = Table(box=None, pad_edge=False)
    for _ in range(columns):
        table.add_column("signal", no_wrap=True)
        table.add_column("value", justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
    rows = -(-len(signals) // columns)
    cells = [_cells(name, value) for name, value in signals.items()]
    for k in range(rows):
        table.add_row(*_joined(cells[k::rows]))
    return Group(Text(title, no_wrap=True, overflow="ellipsis"), table)


def _cells(name: str, value: float) -> tuple[str, str, str]:
    spec = SIGNALS.get(name)
    return name, _number(value), spec.unit if spec is not None else ""


def _joined(cells: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    for cell in cells:
        yield from cell
