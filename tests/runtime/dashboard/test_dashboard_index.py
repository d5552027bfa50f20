"""The index holds what the folders hold, and reads nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.runtime.dashboard.board_parts import (
    age,
    board_at,
    header,
    indexed,
    until,
    write_episode,
    write_run,
)
from zetta.runtime.dashboard import indexer as indexer_module
from zetta.runtime.dashboard.indexer import Indexer
from zetta.runtime.dashboard.queries import episodes_page, facets
from zetta.runtime.dashboard.store import Store
from zetta.runtime.errors import ConfigError
from zetta.runtime.records import to_json
from zetta.runtime.rollouts.shards import ShardFolder


def names(store: Store) -> list[str]:
    return [row["name"] for row in store.rows("SELECT name FROM episodes ORDER BY name")]


def test_runs_are_found_below_a_folder_and_counted(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", "ssf")
    write_run(tmp_path / "runs" / "group" / "two", "e")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert {r["name"] for r in store.rows("SELECT name FROM runs")} == {"one", "group/two"}
    page = episodes_page(store, {})
    assert (page["total"], page["solved"], page["scored"], page["errors"]) == (4, 2, 3, 1)


def test_a_single_run_is_its_own_root(tmp_path: Path) -> None:
    write_run(tmp_path / "one", "sf")

    _, store = indexed(tmp_path / "one", tmp_path / "cache")

    assert [(r["name"], r["path"]) for r in store.rows("SELECT * FROM runs")] == [("one", ".")]
    assert names(store) == ["000", "001"]


def test_a_plain_folder_of_logs_is_a_run(tmp_path: Path) -> None:
    write_episode(tmp_path / "logs" / "a")

    _, store = indexed(tmp_path / "logs", tmp_path / "cache")

    assert len(store.rows("SELECT * FROM runs")) == 1
    assert names(store) == ["a"]


def test_an_error_is_no_score(tmp_path: Path) -> None:
    write_run(tmp_path / "one", "e")

    _, store = indexed(tmp_path, tmp_path / "cache")

    row = episodes_page(store, {"outcome": "error"})["rows"][0]
    assert row["success"] is None
    assert row["error"] == "the renderer died"


def test_tasks_with_processes_of_their_own_belong_to_one_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "many", "s")
    write_run(run / "toy_pick-1", "f")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert len(store.rows("SELECT * FROM runs")) == 1
    assert names(store) == ["000", "toy_pick-1/000"]


def test_a_later_lap_reads_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "one", "sss")
    indexer, store = indexed(tmp_path, tmp_path / "cache")
    read: list[str] = []
    real = indexer_module.read_log_row
    monkeypatch.setattr(
        indexer_module,
        "read_log_row",
        lambda root, folder, *rest: (read.append(folder.name), real(root, folder, *rest))[1],
    )

    write_episode(run / "episodes" / "003", 3)
    indexer.lap()

    assert [name for name in read if name.isdecimal()] == ["003"]
    assert len(names(store)) == 4


def test_folders_that_did_not_change_are_not_even_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "runs" / "one", "ss")
    for folder in (run / "episodes", run, run.parent):
        age(folder)
    indexer, _ = indexed(run.parent, tmp_path / "cache")
    listed: list[str] = []
    monkeypatch.setattr(indexer_module.os, "scandir", lambda path: listed.append(str(path)))

    indexer.lap()

    assert listed == []


def test_an_index_from_before_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "runs" / "one", "sf")
    _, store = indexed(tmp_path / "runs", tmp_path / "cache")
    store.close()

    def refuse(root: Path, folder: Path, *rest: object) -> None:
        assert not (folder / "episode.json").exists(), "it was read before"

    monkeypatch.setattr(indexer_module, "read_log_row", refuse)
    _, again = indexed(tmp_path / "runs", tmp_path / "cache")

    assert names(again) == ["000", "001"]


def test_what_is_deleted_is_forgotten(tmp_path: Path) -> None:
    one = write_run(tmp_path / "runs" / "one", "ss")
    write_run(tmp_path / "runs" / "two", "s")
    indexer, store = indexed(tmp_path / "runs", tmp_path / "cache")

    shutil.rmtree(one / "episodes" / "001")
    shutil.rmtree(tmp_path / "runs" / "two")
    indexer.lap()

    assert names(store) == ["000"]
    assert [row["name"] for row in store.rows("SELECT name FROM runs")] == ["one"]


def test_another_episode_of_the_same_name_replaces_the_first(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "s")
    indexer, store = indexed(tmp_path / "runs", tmp_path / "cache")

    write_episode(run / "episodes" / "new", 5, False)
    shutil.rmtree(run / "episodes" / "000")
    (run / "episodes" / "new").rename(run / "episodes" / "000")
    indexer.lap()

    assert [(r["name"], r["success"]) for r in episodes_page(store, {})["rows"]] == [("000", 0)]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "zetta-episode-1"}'])
def test_a_damaged_log_is_a_row_that_says_so(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path / "one", "s")
    broken = run / "episodes" / "009"
    broken.mkdir()
    (broken / "episode.json").write_text(text, encoding="utf-8")

    _, store = indexed(tmp_path, tmp_path / "cache")

    rows = {row["name"]: row for row in episodes_page(store, {})["rows"]}
    assert rows["000"]["success"] == 1
    assert "cannot be read" in rows["009"]["error"]


def test_a_log_of_another_format_says_which(tmp_path: Path) -> None:
    plain = to_json(header()) | {"format": "zetta-episode-9"}
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "episode.json").write_text(json.dumps(plain), encoding="utf-8")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert "'zetta-episode-9'" in episodes_page(store, {})["rows"][0]["error"]


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", "s")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "index.sqlite").write_bytes(b"no database at all" * 99)

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert names(store) == ["000"]


def test_a_name_that_is_no_text_disturbs_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "s")
    for parent in (run.parent, run / "episodes"):
        (parent / os.fsdecode(b"\xff\xfe")).mkdir()

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert names(store) == ["000"]


def test_what_goes_wrong_with_the_index_is_told_and_got_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "runs" / "one", "s")
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    real, broken = board.store.keep_episodes, [True]

    def keep(rows: object) -> None:
        if broken[0]:
            raise sqlite3.OperationalError("database or disk is full")
        real(rows)  # type: ignore[arg-type]

    monkeypatch.setattr(board.store, "keep_episodes", keep)
    board.indexer.start()
    until(lambda: "disk is full" in board.indexer.problem)
    broken[0] = False
    until(lambda: board.indexer.laps > 0)
    assert (board.indexer.problem, names(board.store)) == ("", ["000"])
    board.close()


def test_links_are_not_followed(tmp_path: Path) -> None:
    write_run(tmp_path / "elsewhere", "s")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path / "elsewhere")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert names(store) == []


def test_an_evaluation_is_read_while_it_grows_and_a_torn_line_waits(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "eval"
    shards = ShardFolder(run / "abcdef012345", "abcdef012345")
    run.mkdir(parents=True)
    (run / ".lock").touch()
    shards.append(shard_row("k1", True))
    indexer, store = indexed(tmp_path / "runs", tmp_path / "cache")
    assert episodes_page(store, {})["solved"] == 1

    shards.append(shard_row("k2", False))
    shards.append({"key": "k3", "arm": "none", "spec": SPEC, "error": "the worker died"})
    shards.close()
    with shards.files()[0].open("ab") as file:
        file.write(json.dumps(shard_row("k4", True)).encode())
    indexer.lap()
    page = episodes_page(store, {})
    assert (page["total"], page["scored"], page["errors"]) == (3, 2, 1)

    with shards.files()[0].open("ab") as file:
        file.write(b"\n")
    indexer.lap()
    assert episodes_page(store, {})["total"] == 4


def test_an_evaluation_knows_what_is_planned_until_its_results_are_there(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "eval"
    folder = run / "abcdef012345"
    shards = ShardFolder(folder, "abcdef012345")
    shards.append(shard_row("k1", True))
    shards.close()
    (run / ".lock").touch()
    plan = {
        "sim": "toy", "tasks": ["toy_pick/0", "toy_pick/1"], "starts": [{}, {}, {}],
        "arms_planned": {"none": {"policy": "toy/reach", "bundle": "none"}},
        "policy_seeds": [0], "sensing": "vision", "command": "zetta eval", "versions": {},
    }  # fmt: skip
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    indexer, store = indexed(tmp_path / "runs", tmp_path / "cache")
    (told,) = store.rows("SELECT kind, planned, policy FROM runs")
    assert told == {"kind": "eval", "planned": 6, "policy": "toy/reach"}

    (run / "results.json").write_text("{}", encoding="utf-8")
    indexer.lap()
    assert store.rows("SELECT planned FROM runs") == [{"planned": None}]


SPEC = {
    "sim": "toy", "suite": "toy_pick", "task": 0, "layout": "3", "seed": 0, "policy": "toy/reach",
    "policy_seed": 0, "bundle": "none", "sensing": "vision", "render": "fast", "options": {},
}  # fmt: skip


def shard_row(key: str, success: bool) -> dict[str, object]:
    record = {
        "success": success, "success_at_reset": False, "reason": "success", "ticks": 30,
        "inferences": 3, "interventions": 0, "sources": {"policy": 30}, "scene_digest": "d",
        "wall_s": 1.0, "recoveries": [],
    }  # fmt: skip
    return {"key": key, "arm": "none", "attempts": 1, "spec": SPEC, "record": record}


# ------------------------------------------------------------------ lists


@pytest.fixture
def three(tmp_path: Path) -> Store:
    run = write_run(tmp_path / "runs" / "one", "sfe")
    used = {"sources": {"policy": 9, "skill:regrasp": 3}, "interventions": 1}
    write_episode(run / "episodes" / "003", 3, True, **used)
    return indexed(tmp_path / "runs", tmp_path / "cache")[1]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"outcome": "solved"}, ["000", "003"]),
        ({"outcome": "failed"}, ["001"]),
        ({"outcome": "error"}, ["002"]),
        ({"skill": "regrasp"}, ["003"]),
        ({"skill": "gras"}, []),
        ({"skill": "any"}, ["003"]),
        ({"skill": "none"}, ["000", "001", "002"]),
        ({"source": "skill:regrasp"}, ["003"]),
        ({"suite": "toy_pick", "task": "0"}, ["000", "001", "002", "003"]),
        ({"suite": "other"}, []),
        ({"sensing": "oracle"}, []),
        ({"q": "RENDERER"}, ["002"]),
        ({"q": "%"}, []),
        ({"suite": "' OR 1=1 --"}, []),
    ],
)
def test_filters_find_what_fits(three: Store, asked: dict[str, str], expected: list[str]) -> None:
    page = episodes_page(three, {**asked, "sort": "name", "order": "asc"})

    assert [row["name"] for row in page["rows"]] == expected
    assert page["total"] == len(expected)


def test_pages_cover_everything_once(three: Store) -> None:
    pages = [
        episodes_page(three, {"limit": "3", "offset": str(k), "sort": "name", "order": "asc"})
        for k in (0, 3, 6)
    ]

    assert [[row["name"] for row in page["rows"]] for page in pages] == [
        ["000", "001", "002"], ["003"], [],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "asked",
    [
        {"sort": "success; DROP TABLE episodes"}, {"limit": "-1"}, {"offset": "x"},
        {"outcome": "won"}, {"task": "one"}, {"limit": "1e3"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_words(three: Store, asked: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        episodes_page(three, asked)


def test_a_page_has_a_largest_size(three: Store) -> None:
    assert episodes_page(three, {"limit": "999999"})["limit"] == 500


def test_values_to_filter_by_are_those_that_are_there(three: Store) -> None:
    found = facets(three, {})

    assert found["suite"] == ["toy_pick"]
    assert found["skill"] == ["regrasp"]
    assert found["source"] == ["policy", "skill:regrasp"]


def test_an_arm_is_unknown_until_somebody_judges(tmp_path: Path) -> None:
    plain = to_json(header(success=False)) | {"sim": "arm:bench.toml"}
    folder = tmp_path / "runs" / "one" / "episodes" / "000"
    folder.mkdir(parents=True)
    (folder / "episode.json").write_text(json.dumps(plain), encoding="utf-8")
    store = Store(tmp_path / "cache" / "index.sqlite")
    indexer = Indexer(tmp_path / "runs", store)
    indexer.lap()
    page = episodes_page(store, {"outcome": "unjudged"})
    assert (page["total"], page["scored"]) == (1, 0)

    (folder / "judgement.json").write_text('{"success": true, "by": "Ada"}', encoding="utf-8")
    indexer.lap()
    row = episodes_page(store, {"outcome": "solved"})["rows"][0]
    assert row["judged_by"] == "Ada"
