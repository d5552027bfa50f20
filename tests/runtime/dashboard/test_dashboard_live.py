"""What runs now is shown while it runs, and nobody who watches slowly holds anything up."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.dashboard.board_parts import board_at, browser, until, write_episode, write_run
from zetta.runtime.arbiter import PolicyOnly
from zetta.runtime.cli.run_answer import Answer
from zetta.runtime.core import Array, Init, RunSpec, Scene, Step, Tick
from zetta.runtime.dashboard.events import LISTENERS_MOST, QUEUE, Hub, messages
from zetta.runtime.dashboard.fleet import fleet_of, run_of
from zetta.runtime.dashboard.records import identify
from zetta.runtime.dashboard.watching import (
    LOST_S,
    held_inodes,
    is_held,
    running_episodes,
    state_of,
)
from zetta.runtime.episode_log import EpisodeLog, RunFacts
from zetta.runtime.live_episode import LIVE, LiveFile, live_episode, read_live
from zetta.runtime.loop import Episode
from zetta.runtime.policies.toy_reach import ToyReach
from zetta.sims.toy import ToySimulator

CAMPAIGN = Path(__file__).parents[3] / "results" / "campaigns" / "tiny-lan"
FACTS = RunFacts("toy/reach", bundle="starter", sensing="policy")


def toy(log: Path) -> Episode:
    simulator = ToySimulator()
    scene = Scene(simulator.task("toy_pick", 0), Init(0))
    env = simulator.make("toy_pick", 0)
    return Episode(env, scene, PolicyOnly(), ToyReach(), sinks=[EpisodeLog(log, "toy", FACTS)])


def test_an_unfinished_episode_tells_how_far_it_is_and_a_finished_one_no_more(
    tmp_path: Path,
) -> None:
    log = tmp_path / "runs" / "one" / "episodes" / "000"
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / ".lock").touch()
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    with toy(log) as episode:
        episode.begin()
        episode.tick()
        board.indexer.lap()
        board.look()

        (running,) = board.running
        assert running.id == identify("one/episodes/000")
        assert (running.name, running.known["suite"]) == ("000", "toy_pick")
        assert running.known["sensing"] == "policy"
        assert fleet_of(board)["runs"][0]["state"] == "running"
        assert fleet_of(board)["runs"][0]["policy"] == "toy/reach"
        while episode.result is None:
            episode.tick()

    board.indexer.lap()
    board.look()
    assert board.running == ()
    assert not (log / LIVE).exists()
    assert board.episode(running.id) is not None
    board.store.close()


class Still:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ticks(count: int) -> list[tuple[Tick, Step]]:
    class Kept:
        def __init__(self) -> None:
            self.moments: list[tuple[Tick, Step]] = []

        def begin(self, *given: object) -> None:
            pass

        def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
            self.moments.append((tick, step))

        def end(self, *given: object) -> None:
            pass

    kept = Kept()
    simulator = ToySimulator()
    scene = Scene(simulator.task("toy_pick", 0), Init(0))
    episode = Episode(simulator.make("toy_pick", 0), scene, PolicyOnly(), ToyReach(), sinks=[kept])
    with episode:
        episode.begin()
        for _ in range(count):
            episode.tick()
    return kept.moments


def test_a_live_file_is_written_at_most_twice_a_second(tmp_path: Path) -> None:
    clock, moments = Still(), ticks(4)
    scene = Scene(ToySimulator().task("toy_pick", 0), Init(0))
    known = live_episode(scene, "put it there", "toy", 20.0, ("toy/reach", "none", "vision"))
    live = LiveFile(tmp_path, known, clock)
    for tick, step in moments[:3]:
        clock.now += 0.1
        live.tick(tick, step.success)
    first = read_live(tmp_path)
    clock.now += 0.3
    live.tick(moments[3][0], False)
    later = read_live(tmp_path)

    assert first is not None
    assert later is not None
    assert (first.tick, later.tick) == (-1, 3)
    assert later.sources == {"policy": 4}
    live.close()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_costs_the_episode_nothing(tmp_path: Path) -> None:
    scene = Scene(ToySimulator().task("toy_pick", 0), Init(0))
    known = live_episode(scene, "put it there", "toy", 20.0, ("a", "none", "vision"))
    clock = Still()
    live = LiveFile(tmp_path / "nowhere", known, clock)
    clock.now = 9.0
    tick, step = ticks(1)[0]
    live.tick(tick, step.success)
    live.close()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    scene = Scene(ToySimulator().task("toy_pick", 0), Init(0))
    known = live_episode(scene, "put it there", "toy", 20.0, ("a", "none", "vision"))
    clock = Still()
    live = LiveFile(tmp_path, known, clock)
    clock.now = 9.0
    tick, _ = ticks(1)[0]
    signals = {"slip": np.float32(0.5), "holding": np.bool_(True), "lift": float("nan")}
    live.tick(replace(tick, signals=signals), np.bool_(True))  # type: ignore[arg-type]
    read = read_live(tmp_path)

    assert read is not None
    assert (read.success, read.signals["slip"], read.signals["holding"]) == (True, 0.5, 1.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"sim": 3}', "null"])
def test_a_torn_live_file_is_no_episode(tmp_path: Path, text: str) -> None:
    (tmp_path / LIVE).write_text(text, encoding="utf-8")

    assert read_live(tmp_path) is None


def left_behind(root: Path) -> str:
    folder = root / "one" / "episodes" / ".000.partial-abcdef"
    folder.mkdir(parents=True)
    scene = Scene(ToySimulator().task("toy_pick", 0), Init(0))
    known = live_episode(scene, "put it there", "toy", 20.0, ("a", "none", "vision"))
    LiveFile(folder, known)
    return folder.relative_to(root).as_posix()


@pytest.mark.parametrize(
    ("silent_s", "held", "shown"),
    [(1.0, False, 1), (LOST_S + 9, False, 0), (LOST_S + 9, True, 1)],
)
def test_what_a_killed_run_left_is_shown_no_more(
    tmp_path: Path, silent_s: float, held: bool, shown: int
) -> None:
    path = left_behind(tmp_path)
    now = (tmp_path / path / LIVE).stat().st_mtime + silent_s

    assert len(running_episodes(tmp_path, [(path, "run", held)], now)) == shown


@pytest.mark.parametrize(
    ("held", "done", "planned", "silent_s", "state"),
    [
        (True, 0, None, None, "running"), (False, 3, 5, 1.0, "running"),
        (False, 3, 5, None, "stopped"), (False, 5, 5, None, "finished"),
        (False, 3, None, None, "finished"), (False, 3, 5, 60.0, "stopped"),
    ],
)  # fmt: skip
def test_state_of_a_run(
    held: bool, done: int, planned: int | None, silent_s: float | None, state: str
) -> None:
    assert state_of(held, done, planned, silent_s) == state


def test_a_held_run_is_seen_and_its_lock_is_left_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "one", "s")
    if held_inodes() is None:
        pytest.skip("/proc/locks is missing")
    assert not is_held(run, held_inodes())
    with (run / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert is_held(run, held_inodes())
    assert not is_held(run, held_inodes())


def test_new_episodes_appear_while_somebody_looks(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "sf")
    with browser(board_at(tmp_path / "runs", tmp_path / "cache")) as client:
        assert client.get("/api/episodes").json()["total"] == 2
        write_episode(run / "episodes" / "002", 2)
        until(lambda: client.get("/api/episodes").json()["total"] == 3)
        assert client.get("/api/fleet").json()["all"]["solved"] == 2


def test_rate_and_time_left_come_from_what_is_planned(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "ssff")
    spec = RunSpec("toy", "toy_pick", 0, Init(0))
    plain = Answer(run, spec, "zetta run", planned=10).to_json()
    (run / "run.json").write_text(json.dumps(plain), encoding="utf-8")
    then = time.time() - 60.0
    os.utime(run / ".lock", (then, then))
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    with (run / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        board.indexer.lap()
        board.look()
        if not board.is_running(identify("run", "one")):
            pytest.skip("/proc/locks is missing")
        told = fleet_of(board)["runs"][0]
    assert told["planned"] == 10
    assert told["per_minute"] == pytest.approx(4.0, rel=0.2)
    assert told["eta_s"] == pytest.approx(90.0, rel=0.2)
    board.store.close()


@pytest.mark.parametrize(
    ("record", "state"), [("verdict.json", "finished"), ("branches.json", "stopped")]
)
def test_a_campaign_is_finished_when_its_last_generation_has_a_verdict(
    tmp_path: Path, record: str, state: str
) -> None:
    campaign = tmp_path / "runs" / "lan"
    (campaign / "000").mkdir(parents=True)
    for name in ("manifest.json", "plan.json"):
        shutil.copy(CAMPAIGN / name, campaign / name)
    (campaign / "000" / record).write_text("{}", encoding="utf-8")
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    board.indexer.lap()
    assert [(each["kind"], each["state"]) for each in fleet_of(board)["runs"]] == [
        ("campaign", state)
    ]
    board.store.close()


def test_an_episode_that_could_not_be_carried_out_is_listed_as_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "s")
    report = {"suite": "toy_pick", "task": 3, "init": 1, "seed": 0, "log": None,
              "error": "InfraError: no display"}  # fmt: skip
    (run / "run.json").write_text(json.dumps({"episodes": [report]}), encoding="utf-8")
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    board.indexer.lap()

    told = fleet_of(board)["all"]
    assert (told["errors"], told["scored"], told["solved"]) == (1, 1, 1)
    board.store.close()


def test_a_run_without_an_episode_has_no_policy_yet_and_not_several(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", "")
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    board.indexer.lap()

    told = run_of(board, identify("run", "one"))
    assert (told["n"], told["policy"], told["sim"]) == (0, "", "")
    board.store.close()


# ------------------------------------------------------------------ news


def test_a_page_hears_the_last_news_at_once_and_then_each_change() -> None:
    async def heard() -> list[object]:
        hub = Hub()
        hub.tell({"revision": 1})
        listener = hub.join()
        assert listener is not None
        hub.tell({"revision": 1})  # no news
        hub.tell({"revision": 2})
        stream = messages(hub, listener)
        got = [json.loads((await anext(stream)).data)["revision"] for _ in range(2)]
        await stream.aclose()
        return [*got, hub.listeners]

    assert asyncio.run(heard()) == [1, 2, 0]


def test_a_page_that_does_not_read_is_dropped_and_keeps_nothing() -> None:
    async def watched() -> tuple[bool, int, int]:
        hub = Hub()
        listener = hub.join()
        assert listener is not None
        for number in range(1000):
            hub.tell({"revision": number})
            await asyncio.sleep(0)
        waiting = listener.queue.qsize()
        left = [each async for each in messages(hub, listener)]
        return listener.dropped, waiting, len(left) + hub.listeners

    dropped, waiting, left = asyncio.run(watched())
    assert dropped
    assert waiting <= QUEUE
    assert left == 0


def test_pages_beyond_a_number_are_turned_away() -> None:
    async def joined() -> int:
        hub = Hub()
        return sum(hub.join() is not None for _ in range(LISTENERS_MOST + 5))

    assert asyncio.run(joined()) == LISTENERS_MOST


def test_news_hold_no_number_that_json_has_no_word_for() -> None:
    async def heard() -> str:
        hub = Hub()
        hub.tell({"signals": {"slip": float("nan"), "far": [float("inf"), 1.0]}})
        listener = hub.join()
        assert listener is not None
        return str(await listener.queue.get())

    assert json.loads(asyncio.run(heard())) == {"signals": {"slip": None, "far": [None, 1.0]}}


def test_a_running_episode_is_plain_json(tmp_path: Path) -> None:
    path = left_behind(tmp_path)
    found = running_episodes(tmp_path, [(path, "run", True)])

    json.dumps([asdict(each) for each in found], allow_nan=False)
