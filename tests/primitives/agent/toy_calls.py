"""A drive on the toy whose agent decides in calls, in tests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zetta.primitives.agent.mcp_agent import McpAgent
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import Clock, EpisodeResult, Init, RunSpec

PATIENCE_S = 60.0
"""Nothing waits longer in a test, however slow the machine."""


class ToyDrive:
    """One episode in a thread of its own."""

    def __init__(self, log: Path, clock: Clock | None = None, **options: str) -> None:
        self.agent = McpAgent()
        self.log = log
        self.result: EpisodeResult | None = None
        self._spec = RunSpec(
            "toy",
            "toy_pick",
            2,
            Init(0),
            0,
            policy="agent/mcp",
            sensing="oracle",
            options={"step_budget": "5000", **options},
        )
        self._clock = clock
        self.thread = threading.Thread(target=self._run, name="episode")

    def _run(self) -> None:
        assembler = Assembler()
        try:
            made = assembler.assemble(self._spec, self.log, (), self._clock, agent=self.agent)
            self.result = made.episode.run()
        finally:
            self.agent.finish("it broke down")
            assembler.close()


@contextmanager
def toy_drive(log: Path, clock: Clock | None = None, **options: str) -> Iterator[ToyDrive]:
    """Give a drive that goes on, and end it."""
    drive = ToyDrive(log, clock, **options)
    drive.thread.start()
    try:
        yield drive
    finally:
        drive.agent.leave("the test is over")
        drive.thread.join(PATIENCE_S)
        assert not drive.thread.is_alive()
