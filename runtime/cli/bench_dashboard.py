"""`zetta bench dashboard`: a run of ten thousand episodes against one of a hundred, in a browser.

Both runs lie in one folder and one server shows them; the pages take turns in one browser, so what
else the machine does hits both alike. A page is painted when its first rows can be read, and a list
is filtered when its new rows can. Afterwards episodes are added while a page is open, and it is
seen whether the server grows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.request import urlopen

from zetta.runtime.benchmarks import Figure
from zetta.runtime.cli import output
from zetta.runtime.cli.made_runs import Made, add_made_episode, write_made_run
from zetta.runtime.errors import ConfigError, Timeout, WorkerDied

if TYPE_CHECKING:
    from playwright.sync_api import Page

MANY, FEW, LIVE = 10_000, 100, 300
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
"""Programs that are Chromium, the distribution's first."""
FLAGS: Final = ("--no-sandbox", "--disable-dev-shm-usage")
"""Containers have neither the namespaces nor the shared memory that it wants."""
RATIO_TARGET: Final = 1 / 3
"""Of a hundred episodes to ten thousand: at most three times slower."""
PAINT_TARGET_MS, FILTER_TARGET_MS = 1000.0, 300.0
GROWTH_TARGET_MB: Final = 2.0
"""Of the server, for a hundred episodes that are added while it is watched."""
WAIT_S: Final = 600.0
BETWEEN_S: Final = 0.02
PAINTED: Final = """() => new Promise((told) => {
  const look = () => {
    if (document.querySelectorAll('tbody tr td').length > 1) told(performance.now());
    else requestAnimationFrame(look);
  };
  look();
})"""
FILTERED: Final = """(outcome) => new Promise((told) => {
  const list = document.querySelector('select[name=outcome]');
  const rows = document.querySelector('tbody');
  const began = performance.now();
  new MutationObserver((_, watch) => {
    watch.disconnect();
    requestAnimationFrame(() => told(performance.now() - began));
  }).observe(rows, {childList: true});
  list.value = outcome;
  list.dispatchEvent(new Event('change'));
})"""
OUTCOMES: Final = ("failed", "solved", "")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many episodes are made."""

    many: int = MANY
    few: int = FEW
    live: int = LIVE


def chromium() -> str:
    """Return the browser.

    Raises:
        ConfigError: there is none.
    """
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise ConfigError(
            "no Chromium was found to look at the dashboard with; install one, for example: "
            "sudo apt-get install chromium"
        )
    return found


def dashboard_figures(blocks: int, sizes: Sizes = Sizes()) -> list[Figure]:
    """Measure pages of a large run against those of a small one, and the server's growth.

    Args:
        blocks: pages of each run that are opened; one more warms up.
        sizes: episodes of the runs.

    Raises:
        ConfigError: there is no browser, or playwright is not installed.
        InfraError: the server did not answer.
    """
    browser = chromium()
    try:
        from playwright.sync_api import sync_playwright  # late: for developers
    except ImportError as error:
        raise ConfigError(
            "this bench drives a browser with playwright; install it with: pip install playwright"
        ) from error
    with tempfile.TemporaryDirectory(prefix="zetta-dashboard-") as name:
        root = Path(name) / "runs"
        many, few = Made(sizes.many), Made(sizes.few, seed=1)
        with output.progress("writing episodes", sizes.many) as advance:
            write_made_run(root / "many", many, lambda finished: advance(finished, ""))
        write_made_run(root / "few", few)
        with _server(root, Path(name)) as url, sync_playwright() as driver:
            output.note("reading them once")
            index_s = _indexed(url, sizes.many + sizes.few)
            opened = driver.chromium.launch(executable_path=browser, args=list(FLAGS))
            page = opened.new_page()
            figures = _speed(page, url, blocks)
            grown = _growth(page, url, lambda n: add_made_episode(root / "many", n, many), sizes)
            opened.close()
    return [*figures, grown, Figure("dashboard_first_reading", index_s, "s")]


# ------------------------------------------------------------------------------ speed


def _speed(page: Page, url: str, blocks: int) -> list[Figure]:
    painted: dict[str, list[float]] = {"many": [], "few": []}
    filtered: dict[str, list[float]] = {"many": [], "few": []}
    runs = {row["name"]: row["id"] for row in _asked(url, "/api/fleet")["runs"]}
    for block in range(blocks + 1):
        for name in ("many", "few") if block % 2 else ("few", "many"):
            page.goto("about:blank")
            page.goto(f"{url}#/run/{runs[name]}")
            paint = float(page.evaluate(PAINTED))
            filters = [float(page.evaluate(FILTERED, outcome)) for outcome in OUTCOMES]
            if block:  # the first one warms up
                painted[name].append(paint)
                filtered[name] += filters
    return [
        *_pair("dashboard_first_paint", painted, PAINT_TARGET_MS),
        *_pair("dashboard_filter", filtered, FILTER_TARGET_MS),
    ]


def _pair(name: str, taken: dict[str, list[float]], target_ms: float) -> list[Figure]:
    """Return the figure against the small run, and the one against the clock."""
    many, few = median(taken["many"]), median(taken["few"])
    return [
        Figure(name, many, "ms", few, few / many, RATIO_TARGET),
        Figure(f"{name}_alone", many, "ms", target=target_ms),
    ]


# ------------------------------------------------------------------------------ memory


def _growth(page: Page, url: str, add: Callable[[int], Path], sizes: Sizes) -> Figure:
    """Return what a hundred added episodes add to the server, while a page watches them."""
    page.goto("about:blank")
    page.goto(f"{url}#/fleet")
    page.evaluate(PAINTED)
    third = max(1, sizes.live // 3)
    _add(url, add, sizes.many, third, sizes)  # buffers find their size
    before = float(_asked(url, "/api/fleet")["memory_mb"])
    rest = sizes.live - third
    _add(url, add, sizes.many + third, rest, sizes)
    after = float(_asked(url, "/api/fleet")["memory_mb"])
    growth = 100 * (after - before) / max(1, rest)
    return Figure("dashboard_growth", growth, "MB for 100 episodes", target=GROWTH_TARGET_MB)


def _add(url: str, add: Callable[[int], Path], first: int, count: int, sizes: Sizes) -> None:
    for number in range(first, first + count):
        add(number)
        time.sleep(BETWEEN_S)  # as they would end one after the other
    _indexed(url, first + count + sizes.few)


# ------------------------------------------------------------------------------ server


@contextmanager
def _server(root: Path, home: Path) -> Iterator[str]:
    """Serve a folder from a process of its own, with an empty cache; yield its URL."""
    log = (home / "server.log").open("w+", encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, "-m", "zetta.runtime.cli.main", "dashboard", str(root), "--port", "0",
         "--json"],
        stdout=log, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env={**os.environ, "XDG_CACHE_HOME": str(home / "cache")},
    )  # fmt: skip
    try:
        yield _url(child, home / "server.log")
    finally:
        child.terminate()
        try:
            child.wait(15.0)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        log.close()


def _url(child: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        said = log.read_text(encoding="utf-8")
        if said.endswith("\n"):
            return str(json.loads(said)["url"])
        if child.poll() is not None:
            raise WorkerDied(f"the dashboard ended with exit code {child.returncode}")
        time.sleep(0.1)
    raise Timeout(f"the dashboard did not listen within {WAIT_S:.0f} s")


def _indexed(url: str, count: int) -> float:
    """Wait until the index holds so many episodes; return how long that took in seconds."""
    began = time.monotonic()
    while time.monotonic() < began + WAIT_S:
        if _asked(url, "/api/fleet")["all"]["total"] >= count:
            return time.monotonic() - began
        time.sleep(0.1)
    raise Timeout(f"the dashboard did not read {count} episodes within {WAIT_S:.0f} s")


def _asked(url: str, path: str) -> Any:
    with urlopen(url.rstrip("/") + path, timeout=60.0) as answer:
        return json.load(answer)
