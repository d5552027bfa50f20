"""What tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.cli.asset_lists import ZIPS, use_list, write_list
from tests.runtime.cli.asset_server import Served, Server, serving
from zetta.runtime.cli import sims_assets_get
from zetta.sims.installs import downloads


@pytest.fixture
def zips() -> Iterator[Server]:
    """Serve the zips of the small list of assets."""
    with serving({name: Served(content) for name, content in ZIPS.items()}) as server:
        yield server


@pytest.fixture
def small_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let one simulator need small things, and the data folder be a new one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("TEST_ASSETS", raising=False)
    monkeypatch.setattr(sims_assets_get, "SPARE", 0)
    before = downloads.FOLDER
    write_list(tmp_path / "lists")
    use_list(tmp_path / "lists")
    yield tmp_path / "lists"
    use_list(before)
