"""Logs that are damaged, endless or no logs at all are listed as what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.runtime.dashboard.board_parts import indexed, write_run

NESTED: Final = '{"a":' * 50_000


@pytest.mark.parametrize(
    "text",
    [
        NESTED, "[]", "null", '{"half', "\x00",
        '{"format": "\\ud800"}', '{"format": ' + "9" * 400 + "}",
    ],
)  # fmt: skip
def test_a_log_of_anything_is_listed_and_the_others_are_read(tmp_path: Path, text: str) -> None:
    run = write_run(tmp_path / "runs" / "one", "sf")
    broken = run / "episodes" / "777"
    broken.mkdir()
    (broken / "episode.json").write_text(text, encoding="utf-8")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    rows = store.rows("SELECT name, success, error FROM episodes ORDER BY name")
    assert [(row["name"], row["success"]) for row in rows] == [
        ("000", 1),
        ("001", 0),
        ("777", None),
    ]
    assert rows[2]["error"].startswith("the log")


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({"wall_s": float("nan")}, "wall_s is nan"),
        ({"ticks": 1 << 80}, "ticks has 25 digits"),
        ({"sources": ["policy"]}, "not an object"),
    ],
)
def test_a_result_that_no_page_can_hold_is_an_error_of_that_episode(
    tmp_path: Path, changes: dict[str, object], kept: str
) -> None:
    log = write_run(tmp_path / "runs" / "one", "s") / "episodes" / "000" / "episode.json"
    plain = json.loads(log.read_text())
    plain["result"] |= changes
    log.write_text(json.dumps(plain))

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    assert kept in store.rows("SELECT error FROM episodes")[0]["error"]


def test_texts_are_cut_and_half_letters_replaced(tmp_path: Path) -> None:
    log = write_run(tmp_path / "runs" / "one", "s") / "episodes" / "000" / "episode.json"
    plain = json.loads(log.read_text())
    plain["instruction"] = "caf\ud800e" + "x" * 1_000_000
    log.write_text(json.dumps(plain))

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    said = store.rows("SELECT instruction FROM episodes")[0]["instruction"]
    assert said.startswith("caf?ex")
    assert len(said) == 4000


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    run = write_run(tmp_path / "runs" / "one", "s")
    os.mkfifo(run / "run.json")
    (run / "episodes" / "001").mkdir()
    os.mkfifo(run / "episodes" / "001" / "episode.json")

    _, store = indexed(tmp_path / "runs", tmp_path / "cache")

    rows = store.rows("SELECT error FROM episodes ORDER BY name")
    assert rows[0]["error"] == ""
    assert "episode.json is no file" in rows[1]["error"]
