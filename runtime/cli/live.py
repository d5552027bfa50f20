"""What a user sees while an episode runs: one line on stderr that moves."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Final

from zetta.runtime.cli import colours, output
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick

if TYPE_CHECKING:
    from rich.live import Live

REDRAW_S: Final = 0.2
PLAIN_S: Final = 10.0
"""Seconds between two lines where stderr is no terminal."""


class LiveLine:
    """A sink that shows tick, source and instruction; use it as a context."""

    def __init__(self, label: str) -> None:
        """`label` says which episode this is."""
        self._label = label
        self._live: Live | None = None
        self._shown = 0.0
        self._max_steps = 0
        self._instruction = ""

    def __enter__(self) -> LiveLine:
        if colours.lively(sys.stderr):
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
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
        self._shown = time.monotonic()
        if self._live is None:
            output.note(f"{self._label}: {instruction}")

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Redraw the line, not more often than an eye follows."""
        now = time.monotonic()
        if now - self._shown < (PLAIN_S if self._live is None else REDRAW_S):
            return
        self._shown = now
        where = f"{self._label}  tick {tick.index + 1}/{self._max_steps}  {tick.source}"
        if self._live is None:
            output.note(where)
            return
        from rich.text import Text

        line = Text(f"{where}  {self._instruction}", no_wrap=True, overflow="ellipsis")
        self._live.update(line, refresh=True)

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Leave the last word to the caller."""
