from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.runtime.errors import ConfigError
from zetta.runtime.rollouts.shards import ShardFolder

PLAN = "a" * 64


def filled(folder: Path, n: int = 2, shard_bytes: int = 3_500_000) -> ShardFolder:
    shards = ShardFolder(folder, PLAN, shard_bytes)
    for number in range(n):
        shards.append({"key": str(number)})
    shards.close()
    return shards


def keys(folder: Path) -> list[str]:
    return [row["key"] for row in ShardFolder(folder, PLAN).rows()]


def test_rows_come_back_in_order_across_processes_and_files(tmp_path: Path) -> None:
    filled(tmp_path, 22, shard_bytes=150)
    files = ShardFolder(tmp_path, PLAN).files()
    assert len(files) > 3
    assert all(path.stat().st_size <= 150 for path in files)
    assert keys(tmp_path) == [str(number) for number in range(22)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a shard of six rows."""
    return filled(tmp_path_factory.mktemp("whole"), 6).files()[0].read_bytes()


def torn(whole: bytes, cut: int, folder: Path) -> list[str]:
    """Write a shard that lacks its last `cut` bytes; return the keys whose lines are complete."""
    kept = whole[: max(1, len(whole) - cut)]
    (folder / "episodes-000.jsonl").write_bytes(kept)
    return [str(number) for number in range(max(0, kept.count(b"\n") - 1))]


@settings(deadline=None)
@given(cut=st.integers(1, 200))
def test_torn_end_loses_only_the_torn_row(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    complete = torn(whole, cut, folder)
    assert keys(folder) == complete


@pytest.mark.parametrize("cut", [1, 8, 13, 140])
def test_shard_with_a_torn_end_is_continued(whole: bytes, tmp_path: Path, cut: int) -> None:
    complete = torn(whole, cut, tmp_path)
    shards = ShardFolder(tmp_path, PLAN)
    shards.append({"key": "next"})
    shards.close()
    assert keys(tmp_path) == [*complete, "next"]


def test_shard_of_another_plan_is_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(ConfigError, match="belongs to another evaluation"):
        ShardFolder(tmp_path, "b" * 64).rows()


def test_damaged_line_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path).files()[0]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[1][:4], *lines[2:]]) + "\n")
    with pytest.raises(ConfigError, match="line 2 is damaged"):
        ShardFolder(tmp_path, PLAN).rows()


def test_number_that_json_does_not_know_is_never_written(tmp_path: Path) -> None:
    shards = ShardFolder(tmp_path, PLAN)
    with pytest.raises(ValueError, match="JSON"):
        shards.append({"dispersion": float("nan")})
    assert json.dumps(shards.rows()) == "[]"
