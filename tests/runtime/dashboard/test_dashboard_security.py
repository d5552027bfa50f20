"""Nobody is answered who calls by another name, and nothing is changed without the token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.runtime.dashboard.board_parts import (
    HOST,
    ORIGIN,
    TOKEN,
    board_at,
    browser,
    until,
    write_run,
)
from zetta.runtime.dashboard.app import STATIC, make_app
from zetta.runtime.dashboard.security import POLICY, Access

REMOTE = Access(("robot.lab:5690",), TOKEN, needs_token=True)


class Changing:
    """A view that changes something."""

    def __init__(self) -> None:
        self.changed = 0

    def routes(self, board: object) -> list[Route]:
        def change(request: Request) -> JSONResponse:
            self.changed += 1
            return JSONResponse({"changed": True})

        return [Route("/api/change", change, methods=["POST"])]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    write_run(tmp_path / "runs" / "one", "s")
    (tmp_path / "secret.txt").write_text("nobody reads this", encoding="utf-8")
    with browser(board_at(tmp_path / "runs", tmp_path / "cache")) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:80", "localhost.evil.example:5690", ""]
)
def test_another_name_is_not_answered(client: TestClient, host: str) -> None:
    for path in ("/", "/api/fleet", "/static/app.js", "/api/events"):
        assert client.get(path, headers={"Host": host}).status_code == 421


def test_a_page_of_another_origin_is_not_answered(client: TestClient) -> None:
    answer = client.get("/api/fleet", headers={"Origin": "http://evil.example"})

    assert answer.status_code == 403
    assert client.get("/api/fleet", headers={"Origin": ORIGIN}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_somebody_else_makes_nothing_be_drawn(client: TestClient, site: str) -> None:
    sent = {"Sec-Fetch-Site": site}
    episode = client.get("/api/episodes").json()["rows"][0]["id"]

    assert client.get(f"/api/episodes/{episode}/film?draw=1", headers=sent).status_code == 403
    assert client.get("/", headers=sent).status_code == 200
    assert client.get("/api/fleet", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/api/fleet", "/static/app.js", "/api/nothing", "/static/../../secret.txt"):
        answer = client.get(path)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in answer.headers
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py",
        "/static//etc/passwd", "/static/....//app.py", "/api/episodes/../../secret.txt",
        "/api/episodes/..%2f..%2fsecret.txt", "/api/runs/%2e%2e", "/api/episodes/..%00/film.mp4",
        "/api/episodes/%2e%2e%2f%2e%2e%2fsecret.txt/film.mp4",
    ],
)  # fmt: skip
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code in (400, 404)
    assert "nobody reads this" not in answer.text
    assert "def make_app" not in answer.text
    assert "root:" not in answer.text


def test_what_is_not_there_is_said_in_one_sentence(client: TestClient) -> None:
    answer = client.get("/api/episodes/0123456789abcdef")

    assert answer.status_code == 404
    assert "no such episode" in answer.json()["error"]


def changing(tmp_path: Path, access: Access) -> tuple[TestClient, Changing]:
    write_run(tmp_path / "runs" / "one", "s")
    view = Changing()
    app = make_app(board_at(tmp_path / "runs", tmp_path / "cache"), access, (view,))
    return TestClient(app, base_url=ORIGIN, follow_redirects=False), view


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": ORIGIN}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 403),
        ({"Origin": ORIGIN, "Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example", "Authorization": f"Bearer {TOKEN}"}, 403),
        ({"Origin": "null", "Authorization": f"Bearer {TOKEN}"}, 403),
        ({"Origin": ORIGIN, "Authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
def test_a_change_needs_the_token_and_our_own_origin(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    client, view = changing(tmp_path, Access((HOST,), TOKEN))
    with client:
        assert client.post("/api/change", headers=headers).status_code == status
    assert view.changed == (status == 200)


def test_the_first_call_with_the_token_sets_a_cookie_and_hides_it(tmp_path: Path) -> None:
    client, view = changing(tmp_path, Access((HOST,), TOKEN))
    with client:
        assert not client.get("/api/about").json()["may_change"]
        welcome = client.get(f"/?token={TOKEN}")
        assert welcome.status_code == 303
        assert welcome.headers["location"] == "/"
        assert "HttpOnly" in welcome.headers["set-cookie"]
        assert "SameSite=strict" in welcome.headers["set-cookie"]
        assert client.get("/api/about").json()["may_change"]
        assert client.post("/api/change", headers={"Origin": ORIGIN}).status_code == 200
        assert client.get("/?token=wrong").status_code == 401
    assert view.changed == 1


def test_a_welcome_never_leads_to_another_host(tmp_path: Path) -> None:
    client, _ = changing(tmp_path, Access((HOST,), TOKEN))
    with client:
        answer = client.get(f"//evil.example/?token={TOKEN}")
        location = answer.headers.get("location", "/")
        assert not location.startswith("//")
        assert "evil.example" not in location.removeprefix("/evil.example")


def test_from_elsewhere_even_looking_needs_the_token(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "one", "s")
    board = board_at(tmp_path / "runs", tmp_path / "cache")
    app = make_app(board, REMOTE)
    with TestClient(app, base_url="http://robot.lab:5690", follow_redirects=False) as client:
        for path in ("/", "/api/fleet", "/static/app.js", "/api/events"):
            assert client.get(path).status_code == 401
        client.get(f"/?token={TOKEN}")
        assert client.get("/api/fleet").status_code == 200


def test_pages_hold_no_script_and_fetch_nothing_from_elsewhere() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert " onclick" not in page
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        assert "innerHTML" not in text, path
        assert "insertAdjacentHTML" not in text, path
        assert "document.write" not in text, path
        assert "eval(" not in text, path
        for scheme in ("https://", "http://"):
            assert text.count(scheme) == text.count(f"{scheme}www.w3.org/2000/svg"), path


def test_a_name_with_markup_travels_as_plain_text(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "<img src=x onerror=alert(1)>", "s")
    with browser(board_at(tmp_path / "runs", tmp_path / "cache")) as client:
        answer = client.get("/api/fleet")
        until(lambda: bool(client.get("/api/fleet").json()["runs"]))
        assert answer.headers["content-type"].startswith("application/json")
