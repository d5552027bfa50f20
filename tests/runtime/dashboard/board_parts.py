"""Runs on disk for tests of the dashboard, and a browser without a screen."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from zetta.runtime.core import EpisodeResult, Init, Scene, Task
from zetta.runtime.dashboard.app import make_app
from zetta.runtime.dashboard.board import Board, Handed
from zetta.runtime.dashboard.films import Films
from zetta.runtime.dashboard.indexer import Indexer
from zetta.runtime.dashboard.security import Access
from zetta.runtime.dashboard.store import Store
from zetta.runtime.episode_log import EpisodeHeader, RunFacts
from zetta.runtime.records import to_json
from zetta.sims.toy import ToySimulator

TOKEN = "a-token-that-nobody-knows"
HOST = "127.0.0.1:5690"
ORIGIN = f"http://{HOST}"
PATIENCE_S = 100.0


def header(number: int = 0, success: bool = True, **result: Any) -> EpisodeHeader:
    """Return the header of an episode in the toy world; `result` changes its result."""
    simulator = ToySimulator()
    task = simulator.task("toy_pick", 0)
    scene = Scene(Task(task.suite, task.index, task.instruction, task.max_steps), Init(number % 10))
    came = EpisodeResult(
        scene, success, "success" if success else "truncated", 40 + number, {"policy": 40 + number},
        0, 1.5, scene_digest=f"{number % 10:064x}",
    )  # fmt: skip
    came = replace(came, **result)
    facts = RunFacts("toy/reach", bundle="starter", versions={"zetta": "0"}, command="zetta run")
    spec = simulator.make(task.suite, task.index).spec
    return EpisodeHeader(
        scene, task.instruction, spec, facts, came, came.reason != "error", sim="toy"
    )


def write_episode(folder: Path, number: int = 0, success: bool = True, **result: Any) -> Path:
    """Write an episode of which only the header is there; the folder appears whole."""
    fresh = folder.with_name(f".{folder.name}.partial-test")
    fresh.mkdir(parents=True)
    plain = to_json(header(number, success, **result))
    (fresh / "episode.json").write_text(json.dumps(plain), encoding="utf-8")
    fresh.rename(folder)
    return folder


def write_run(folder: Path, outcomes: str) -> Path:
    """Write a run: `s` is a solved episode, `f` a failed one, `e` one with an error."""
    folder.mkdir(parents=True)
    (folder / ".lock").touch()
    for number, outcome in enumerate(outcomes):
        changes = {"reason": "error", "detail": "the renderer died"} if outcome == "e" else {}
        write_episode(folder / "episodes" / f"{number:03d}", number, outcome == "s", **changes)
    return folder


def indexed(root: Path, cache: Path) -> tuple[Indexer, Store]:
    """Return an index of `root` after one lap."""
    store = Store(cache / "index.sqlite")
    indexer = Indexer(root, store)
    indexer.lap()
    return indexer, store


def board_at(root: Path, cache: Path, handed: Handed | None = None, films: Any = None) -> Board:
    """Return a board of `root`."""
    return Board(
        root.resolve(),
        Store(cache / "index.sqlite"),
        films or Films(cache / "films", None),
        handed or Handed(),
        "test",
    )


@contextmanager
def browser(board: Board, access: Access | None = None) -> Iterator[TestClient]:
    """Give a client of a board whose index has been round once."""
    app = make_app(board, access or Access((HOST,), TOKEN))
    with TestClient(app, base_url=ORIGIN, follow_redirects=False) as client:
        until(lambda: board.indexer.laps > 0)
        yield client


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds.

    Raises:
        AssertionError: it does not.
    """
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.01)


def age(folder: Path, seconds: float = 60.0) -> None:
    """Let a folder look as if nothing had happened in it for a while."""
    then = time.time() - seconds
    os.utime(folder, (then, then))
