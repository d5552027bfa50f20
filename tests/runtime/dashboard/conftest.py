"""A served dashboard and a browser that looks at it; every page must be quiet and stay at home."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from tests.dashboard_runs import COMMITTED, dashboard_root, zetta
from zetta.runtime.cli.bench_dashboard import FLAGS
from zetta.runtime.cli.bench_dashboard import chromium as find_chromium
from zetta.runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Served:
    """A dashboard that answers."""

    url: str
    """Without a slash at its end."""
    token: str
    root: Path
    library: Path

    def api(self, path: str) -> Any:
        """Return an answer of the API."""
        with urlopen(self.url + path, timeout=20.0) as answer:
            return json.load(answer)

    def run(self, name: str) -> str:
        """Return the id of a run."""
        runs = self.api("/api/fleet")["runs"]
        return next(str(each["id"]) for each in runs if each["name"] == name)

    def episodes(self, run: str) -> list[Any]:
        """Return the first episodes of a run, by name."""
        asked = f"/api/episodes?run={self.run(run)}&sort=name&order=asc"
        return list(self.api(asked)["rows"])


@contextlib.contextmanager
def serving(root: Path, home: Path) -> Iterator[Served]:
    """Serve the dashboard of a folder, read once, whose caches and library lie in `home`."""
    from zetta.runtime.cli.dashboard import board_of
    from zetta.runtime.dashboard.app import make_app
    from zetta.runtime.dashboard.security import Access
    from zetta.runtime.dashboard.serving import serve

    with pytest.MonkeyPatch.context() as patch, socket.socket() as listening:
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
            patch.setenv(name, str(home / name.lower()))
        zetta("skills", "promote", str(COMMITTED / "tiny-lan"), "--json")
        zetta("skills", "promote", "regrasp", "--unproven", "--why", "a try", "--json")
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        board = board_of(root)
        board.indexer.lap()
        ready, stop = threading.Event(), threading.Event()
        app = make_app(board, Access((host,), "secret"))
        thread = threading.Thread(target=serve, args=(app, listening, stop, ready.set))
        thread.start()
        try:
            assert ready.wait(30.0), "the server did not begin to answer"
            library = home / "xdg_data_home" / "zetta" / "library"
            yield Served(f"http://{host}", "secret", root, library)
        finally:
            stop.set()
            thread.join(30.0)


@pytest.fixture(scope="session")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("dashboard")
    root = folder / "runs"
    root.mkdir()
    with serving(dashboard_root(root), folder) as served:
        yield served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Drive a browser; for one module, because its event loop runs in this thread all the while."""
    try:
        found = find_chromium()
    except ConfigError as error:
        pytest.skip(str(error))
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is missing: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass(slots=True)
class Looking:
    """What a page did beside being looked at."""

    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@pytest.fixture
def look(chromium: Any, dashboard: Served) -> Iterator[Callable[..., Any]]:
    """Return a function that opens an address of the dashboard in a page of its own.

    When the test is over every page must have stayed on loopback, without an error.
    """
    looking = Looking()
    contexts = []

    def opened(address: str, token: bool = False, width: int = 1280) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="light"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("request", lambda request: looking.requests.append(request.url))
        page.on("pageerror", lambda error: looking.problems.append(str(error)))
        page.on("dialog", lambda dialog: looking.problems.append(f"dialog {dialog.message}"))
        page.on(
            "console",
            lambda said: looking.problems.append(said.text) if said.type == "error" else None,
        )
        query = f"?token={dashboard.token}" if token else ""
        page.goto(f"{dashboard.url}/{query}{address}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert looking.problems == []
    away = {urlsplit(each).hostname for each in looking.requests} - {"127.0.0.1", None}
    assert away == set(), "a page asked somebody else"
