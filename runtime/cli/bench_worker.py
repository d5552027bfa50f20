"""`zetta bench worker`: what it costs to have the simulator in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.bench_process import ArmPlace, ArmProcess

TARGET: Final = 0.93
NEVER: Final = 1_000_000
LOOKS: Final = {"steps": NEVER, "steps_look_every_8": 8}
"""Ticks between two looks; the first tick looks in any case."""


def worker_figures(place: ArmPlace, blocks: int, ticks: int) -> list[Figure]:
    """Compare steps per second through the worker process with those of the same environment here.

    Blocks take turns; what counts is wall time, because two processes share the work. The target
    is on bare steps.
    """
    with ArmProcess(place) as raw, ArmProcess(replace(place, worker=True)) as remote:
        output.note("recording the actions of the scripted expert")
        replay = Replay(raw.ask("record", most=ticks), raw.ask("cameras"))
        for process in (raw, remote):
            process.ask("reset")
        figures = []
        for name, every in LOOKS.items():
            output.note(f"replaying {len(replay.actions)} ticks {blocks} times each: {name}")
            own, other = [], []
            for turn in range(blocks):
                if turn % 2:
                    own.append(replay.seconds(remote, every))
                    other.append(replay.seconds(raw, every))
                else:
                    other.append(replay.seconds(raw, every))
                    own.append(replay.seconds(remote, every))
            value, base = (len(replay.actions) / median(times) for times in (own, other))
            target = TARGET if every == NEVER else None
            figures.append(
                Figure(
                    f"worker_{place.sim}_{name}", value, "steps/s", base, value / base, target,
                    higher_is_better=True,
                )
            )  # fmt: skip
    return figures


@dataclass(frozen=True, slots=True)
class Replay:
    """What is replayed."""

    actions: list[list[float]]
    cameras: list[str]

    def seconds(self, process: ArmProcess, look_every: int) -> float:
        """Return the wall seconds of one replay, without its reset."""
        asked = {"actions": self.actions, "cameras": self.cameras, "look_every": look_every}
        return float(process.ask("replay_wall", **asked))
