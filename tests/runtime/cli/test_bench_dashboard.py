"""`zetta bench dashboard`, on runs small enough to be quick."""

from __future__ import annotations

import shutil

import pytest

from zetta.runtime.cli import bench_dashboard
from zetta.runtime.cli.bench_dashboard import Sizes, chromium, dashboard_figures
from zetta.runtime.errors import ConfigError


def test_without_a_browser_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="sudo apt-get install chromium"):
        bench_dashboard.chromium()


@pytest.mark.browser
@pytest.mark.slow
def test_the_bench_gives_every_figure_with_its_target() -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    try:
        chromium()
    except ConfigError as error:
        pytest.skip(str(error))
    figures = {each.name: each for each in dashboard_figures(1, Sizes(60, 20, 6))}

    assert list(figures) == [
        "dashboard_first_paint", "dashboard_first_paint_alone", "dashboard_filter",
        "dashboard_filter_alone", "dashboard_growth", "dashboard_first_reading",
    ]  # fmt: skip
    assert figures["dashboard_first_paint"].ratio is not None
    assert figures["dashboard_filter_alone"].target == 300.0
    assert all(each.value == each.value for each in figures.values())
