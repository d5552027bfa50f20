"""Downloads can be broken off anywhere and gone on with, and nothing but a zip is taken."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.runtime.cli.asset_server import BLOCK, Served, Server, serving, zipped
from zetta.runtime.cli import sims_fetch
from zetta.runtime.cli.sims_fetch import TRIES, Offer, ask, client, fetch
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError

ZIP = zipped({"textures/wall.png": bytes(range(256)) * 1200})
URL = "https://box.example/a.zip"


@contextmanager
def served(*files: Served) -> Iterator[tuple[Server, httpx2.Client]]:
    """Serve files under `0.zip`, `1.zip`, … and open connections to them."""
    named = {f"{i}.zip": file for i, file in enumerate(files)}
    with serving(named) as server, client() as http:
        yield server, http


def got(server: Server, http: httpx2.Client, target: Path, name: str = "0.zip") -> list[float]:
    """Fetch a file and return how long it would have waited between tries."""
    waits: list[float] = []
    fetch(http, f"{server.url}/{name}", target, lambda done, total: None, waits.append)
    assert target.read_bytes() == ZIP
    assert not target.with_suffix(".part").exists()
    return waits


def test_a_download_that_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    file = Served(ZIP, cuts=[BLOCK, 2 * BLOCK])
    with served(file) as (server, http):
        waits = got(server, http, tmp_path / "a.zip")
    assert file.asked == ["", f"bytes={BLOCK}-", f"bytes={3 * BLOCK}-"]
    assert waits == [1.0, 1.0], "each try brought something, so the patience begins anew"


def test_a_server_that_knows_no_ranges_begins_anew(tmp_path: Path) -> None:
    file = Served(ZIP, ranges=False, cuts=[BLOCK])
    with served(file) as (server, http):
        got(server, http, tmp_path / "a.zip")
    assert file.asked == ["", f"bytes={BLOCK}-"]


def test_progress_is_told_in_bytes_from_where_it_goes_on(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with served(Served(ZIP, cuts=[BLOCK])) as (server, http):
        url = f"{server.url}/0.zip"
        fetch(http, url, tmp_path / "a.zip", lambda *at: told.append(at), lambda wait: None)
    assert told[0] == (0, len(ZIP))
    assert (BLOCK, len(ZIP)) in told
    assert told[-1] == (len(ZIP), len(ZIP))


@pytest.mark.parametrize("changed", ["etag", "size"])
def test_a_file_that_has_changed_is_begun_anew(tmp_path: Path, changed: str) -> None:
    older = Served(ZIP + b"more" if changed == "size" else ZIP[::-1])
    newer = Served(ZIP)
    if changed == "etag":
        older.headers["ETag"], newer.headers["ETag"] = '"old"', '"new"'
    older.content = b"PK\x03\x04" + older.content[4:]
    older.cuts = [BLOCK] + [0] * TRIES
    target = tmp_path / "a.zip"
    with served(older) as (server, http):
        url = f"{server.url}/0.zip"
        with pytest.raises(ConnectionLost, match=r"broke off 5 times: .*16 kB of it are kept"):
            fetch(http, url, target, lambda *at: None, lambda wait: None)
        assert target.with_suffix(".part").stat().st_size == BLOCK
        server.files["0.zip"] = newer
        assert got(server, http, target) == [1.0]
    assert newer.asked == [f"bytes={BLOCK}-", ""]


def test_what_another_address_has_begun_is_not_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "a.note").write_text(
        f'{{"url": "{URL}", "size": {len(ZIP)}, "etag": "", "sha256": ""}}'
    )
    file = Served(ZIP)
    with served(file) as (server, http):
        got(server, http, tmp_path / "a.zip")
    assert file.asked == [""]


@pytest.mark.parametrize("note", ["", "{", '{"url": 1}', "[]"])
def test_a_part_without_a_sound_note_is_not_gone_on_with(tmp_path: Path, note: str) -> None:
    (tmp_path / "a.part").write_bytes(b"PK\x03\x04" + bytes(100))
    (tmp_path / "a.note").write_text(note)
    file = Served(ZIP)
    with served(file) as (server, http):
        got(server, http, tmp_path / "a.zip")
    assert file.asked == [""]


def test_a_whole_part_is_not_asked_for_again(tmp_path: Path) -> None:
    file = Served(ZIP)
    with served(file) as (server, http):
        (tmp_path / "a.part").write_bytes(ZIP)
        (tmp_path / "a.note").write_text(
            f'{{"url": "{server.url}/0.zip", "size": {len(ZIP)}, "etag": "", "sha256": ""}}'
        )
        got(server, http, tmp_path / "a.zip")
    assert file.asked == []


def test_a_part_that_is_longer_than_the_file_is_begun_anew(tmp_path: Path) -> None:
    file = Served(ZIP)
    with served(file) as (server, http):
        (tmp_path / "a.part").write_bytes(ZIP + b"more")
        (tmp_path / "a.note").write_text(  # the server had not told its size: it answers 416
            f'{{"url": "{server.url}/0.zip", "size": 0, "etag": "", "sha256": ""}}'
        )
        got(server, http, tmp_path / "a.zip")
    assert file.asked == [f"bytes={len(ZIP) + 4}-", ""]


def test_a_file_whose_length_is_not_told_is_fetched(tmp_path: Path) -> None:
    with served(Served(ZIP, length=False)) as (server, http):
        assert ask(http, f"{server.url}/0.zip").size == len(ZIP), "a range tells it"
        got(server, http, tmp_path / "a.zip")


def test_a_server_that_is_busy_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    with served(Served(ZIP, status=503)) as (server, http):
        waits: list[float] = []
        with pytest.raises(ConnectionLost, match="503 Service Unavailable"):
            fetch(http, f"{server.url}/0.zip", tmp_path / "a.zip", lambda *at: None, waits.append)
        assert waits == [1.0, 2.0, 4.0, 8.0]
        with pytest.raises(ConnectionLost, match="does not answer"):
            ask(http, f"{server.url}/0.zip", lambda wait: None)


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with client() as http, pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:9/a\.zip"):
        ask(http, "http://127.0.0.1:9/a.zip", lambda wait: None)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (Served(ZIP, status=404), r"nothing is at .* \(the server says 404 Not Found\).*--from"),
        (Served(ZIP, status=401), r"not for everybody \(the server says 401\).*browser.*--from"),
        (Served(ZIP, status=403), r"not for everybody"),
        (Served(ZIP, status=410), r"nothing is at"),
        (Served(b"<html>log in</html>", kind="text/html; charset=utf-8"), "no zip, such as a page"),
        (Served(b"", kind="application/zip"), "no zip"),
    ],
)
def test_what_is_no_zip_is_refused_at_once(tmp_path: Path, file: Served, says: str) -> None:
    with served(file) as (server, http):
        url = f"{server.url}/0.zip"
        with pytest.raises(ConfigError, match=says):
            ask(http, url)
        if file.content:
            with pytest.raises(ConfigError, match=says):
                fetch(http, url, tmp_path / "a.zip", lambda *at: None)
    assert not (tmp_path / "a.zip").exists()


def test_a_page_that_calls_itself_a_zip_is_refused(tmp_path: Path) -> None:
    with (
        served(Served(b"<!doctype html>log in")) as (server, http),
        pytest.raises(ConfigError, match="no zip, such as a page"),
    ):
        fetch(http, f"{server.url}/0.zip", tmp_path / "a.zip", lambda *at: None)
    assert not (tmp_path / "a.zip").exists()


def test_the_hash_that_comes_with_the_redirection_is_kept(tmp_path: Path) -> None:
    here = Served(ZIP, redirect="/1.zip", headers={"X-Linked-Etag": f'"{"ab" * 32}"'})
    with served(here, Served(ZIP, headers={"ETag": '"x"'})) as (server, http):
        url = f"{server.url}/0.zip"
        assert ask(http, url) == Offer(url, len(ZIP), '"x"', "ab" * 32)
        got(server, http, tmp_path / "a.zip")
    found = sims_fetch.known(tmp_path / "a.zip")
    assert found is not None
    assert found.sha256 == "ab" * 32


def test_a_redirection_to_where_nothing_is_encrypted_is_refused() -> None:
    def reply(request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme == "https":
            return httpx2.Response(302, headers={"Location": "http://box.example/a.zip"})
        return httpx2.Response(200, content=ZIP)

    transport = httpx2.MockTransport(reply)
    with (
        httpx2.Client(transport=transport, follow_redirects=True) as http,
        pytest.raises(ConfigError, match="not encrypted"),
    ):
        ask(http, URL)


def test_a_circle_of_redirections_is_told() -> None:
    with (
        served(Served(ZIP, redirect="/0.zip")) as (server, http),
        pytest.raises(ConfigError, match="cannot be downloaded"),
    ):
        ask(http, f"{server.url}/0.zip")


def test_a_disk_that_is_full_is_told_and_what_came_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.part").symlink_to("/dev/full")
    with served(Served(ZIP)) as (server, http):
        (tmp_path / "a.note").write_text(
            f'{{"url": "{server.url}/0.zip", "size": {len(ZIP)}, "etag": "", "sha256": ""}}'
        )
        with pytest.raises(InfraError, match="No space left on device"):
            fetch(http, f"{server.url}/0.zip", tmp_path / "a.zip", lambda *at: None)


def test_a_silent_server_is_not_waited_for_for_ever() -> None:
    released = threading.Event()

    def reply(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("timed out", request=request)

    with (
        httpx2.Client(transport=httpx2.MockTransport(reply)) as http,
        pytest.raises(ConnectionLost, match="timed out"),
    ):
        ask(http, URL, lambda wait: released.set())
    assert released.is_set()
    with client() as ours:
        assert ours.timeout.read == 60.0
