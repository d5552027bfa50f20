"""A large run costs a request no more files than a small one; only who may can change anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from zetta.runtime.cli.dashboard_campaigns import CampaignPages
from zetta.runtime.cli.dashboard_library import LibraryPages
from zetta.runtime.cli.made_runs import Made, add_made_episode, write_made_run
from zetta.runtime.dashboard.app import make_app
from zetta.runtime.dashboard.board import Board, Handed
from zetta.runtime.dashboard.films import Films
from zetta.runtime.dashboard.security import Access
from zetta.runtime.dashboard.store import Store

HOST = "127.0.0.1:5690"
SMALL, LARGE = 20, 200


class Opened:
    """Counts the files of a folder that are opened, and the listings of its folders."""

    def __init__(self, root: Path) -> None:
        self.root, self.paths = str(root), list[str]()
        self.counts = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, values: tuple[Any, ...]) -> None:
        if self.counts and event in ("open", "os.listdir", "os.scandir"):
            path = str(values[0])
            if path.startswith(self.root):
                self.paths.append(path)

    def by(self, client: TestClient, address: str) -> int:
        """Return how many are opened while a request is answered."""
        self.paths.clear()
        self.counts = True
        answer = client.get(address)
        self.counts = False
        assert answer.status_code == 200, answer.text
        return len(self.paths)


def board_at(root: Path, home: Path) -> Board:
    handed = Handed(None, CampaignPages(), LibraryPages(home / "library"))
    board = Board(root, Store(home / "index.sqlite"), Films(home / "films", None), handed)
    board.indexer.lap()
    return board


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Board]]:
    """Return a client whose board is read once and then stands still."""
    home = tmp_path_factory.mktemp("scale")
    root = home / "runs"
    write_made_run(root / "large", Made(LARGE))
    write_made_run(root / "small", Made(SMALL, seed=1))
    board = board_at(root, home)
    app = make_app(board, Access((HOST,), "secret"))
    yield TestClient(app, base_url=f"http://{HOST}"), board
    board.store.close()


def test_no_request_opens_logs_except_the_one_that_it_is_about(
    client: tuple[TestClient, Board],
) -> None:
    page, board = client
    opened = Opened(board.root)
    runs = {row["name"]: row["id"] for row in page.get("/api/fleet").json()["runs"]}
    for name in ("large", "small"):
        asked = f"run={runs[name]}"
        for address in (
            "/api/fleet", f"/api/runs/{runs[name]}", f"/api/episodes?{asked}",
            f"/api/episodes?{asked}&outcome=failed&q=cube&sort=ticks&offset=10",
            f"/api/facets?{asked}", "/api/library", "/api/compare/sides", "/api/campaigns",
            f"/api/compare?first={runs['large']}&second={runs['small']}",
        ):  # fmt: skip
            assert opened.by(page, address) == 0, (address, opened.paths[:3])
        episode = page.get(f"/api/episodes?{asked}&limit=1").json()["rows"][0]["id"]
        assert 0 < opened.by(page, f"/api/episodes/{episode}") <= 6


def test_a_lap_over_a_run_that_stands_still_opens_none_of_its_logs(
    tmp_path: Path,
) -> None:
    root = tmp_path / "runs"
    write_made_run(root / "small", Made(SMALL))
    board = board_at(root, tmp_path)
    opened = Opened(root)
    add_made_episode(root / "small", SMALL, Made(SMALL))
    opened.counts = True
    board.indexer.lap()
    opened.counts = False
    board.store.close()

    logs = {path.parent.name for path in map(Path, opened.paths) if path.parts[-3] == "episodes"}
    assert logs == {f"{SMALL:05d}"}


def test_pairs_of_a_page_are_found_again_without_pairing_twice(
    client: tuple[TestClient, Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    from zetta.runtime.dashboard import compare

    page, _ = client
    runs = {row["name"]: row["id"] for row in page.get("/api/fleet").json()["runs"]}
    address = f"/api/compare?first={runs['large']}&second={runs['small']}"
    first = page.get(address).json()
    monkeypatch.setattr(compare, "compare_runs", None)

    assert page.get(f"{address}&offset=5").json()["counts"] == first["counts"]
    assert page.get(f"{address}&outcome=wn").json()["error"] == (
        "unknown outcome 'wn'; did you mean 'win'?"
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": f"http://{HOST}"}, 401),
        ({"Origin": "http://evil.example", "Authorization": "Bearer secret"}, 403),
        ({"Origin": f"http://{HOST}", "Authorization": "Bearer wrong"}, 401),
        ({"Origin": f"http://{HOST}", "Authorization": "Bearer secret"}, 400),
    ],
)
def test_only_our_own_page_with_the_token_is_asked_what_to_roll_back(
    client: tuple[TestClient, Board], headers: dict[str, str], status: int
) -> None:
    page, board = client
    answer = page.post("/api/library/rollback", json={"to": ""}, headers=headers)

    assert answer.status_code == status
    assert not (board.root.parent / "library").exists()


def test_a_wish_to_roll_back_names_its_version_and_is_short(
    client: tuple[TestClient, Board],
) -> None:
    page, _ = client
    headers = {"Origin": f"http://{HOST}", "Authorization": "Bearer secret"}
    for body in ("", "[]", json.dumps({"to": 7}), json.dumps({"to": "a", "why": "x" * 500})):
        said = page.post("/api/library/rollback", content=body, headers=headers)
        assert said.status_code == 400
        assert "say what to use and why" in said.json()["error"]
    huge = page.post("/api/library/rollback", content="x" * 9000, headers=headers)
    assert "at most 4096 bytes" in huge.json()["error"]
    unknown = page.post("/api/library/rollback", json={"to": "abcd"}, headers=headers)
    assert "'abcd' is no version of the library" in unknown.json()["error"]


def test_where_skills_are_used_comes_from_the_index(client: tuple[TestClient, Board]) -> None:
    page, board = client
    used = page.get("/api/library").json()["used"]
    helped = board.store.rows("SELECT count(*) AS n FROM episodes WHERE skills != ''")[0]["n"]

    assert sum(each["episodes"] for each in used["skills"].values()) == helped
    assert used["bundles"]["b" * 64]["runs"] == 2
    assert {each["name"] for each in used["bundles"]["b" * 64]["named"]} == {"large", "small"}
