"""The lists of what is downloaded are sound, and those of the official downloaders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from zetta.runtime import registry
from zetta.runtime.cli.sims_venv import venv_of
from zetta.sims.installs import downloads


@pytest.mark.parametrize("name", downloads.names())
def test_every_list_of_assets_is_sound(name: str) -> None:
    assets = downloads.find(name)
    assert assets.variable.isupper()
    assert any(part.needed for part in assets.parts)
    assert len({part.name for part in assets.parts}) == len(assets.parts)
    assert len({part.file for part in assets.parts}) == len(assets.parts)
    for part in assets.parts:
        assert part.url.startswith("https://")
        assert part.unpacked_mb >= part.download_mb > 100
        assert part.size == 0 or abs(part.size - part.download_mb * 10**6) < 10**6
        assert all(folder.startswith(part.into) for folder in part.gives)


def test_the_real_lists_are_those_of_the_official_downloaders() -> None:
    robocasa, robotwin = downloads.find("robocasa"), downloads.find("robotwin")
    official = {"tex", "tex_generative", "fixtures_lw", "objs_objaverse", "objs_aigen", "objs_lw"}
    assert {part.name for part in robocasa.parts} == official
    assert {p.name for p in robocasa.parts if p.needed} == official - {
        "tex_generative",
        "objs_aigen",
    }
    assert {part.file for part in robotwin.parts} == {
        "background_texture.zip",
        "embodiments.zip",
        "objects.zip",
    }
    for assets in (robocasa, robotwin):
        if assets.name in registry.names("sims"):
            assert assets.bundled_suite in registry.simulator(assets.name).suites()
    pinned = "/datasets/TianxingChen/RoboTwin2.0/resolve/c15cc97be71e35244b6605d2d84c187f8565cc4d/"
    assert all(part.url.endswith(pinned + part.file) for part in robotwin.parts)


def installed_file(name: str, below: str) -> Path:
    """Return a file of an installed simulator's package; skip where it is not installed."""
    venv = venv_of(name)
    if venv.state != "ready":
        pytest.skip(f"{name} is not installed; install it with: {venv.fix}")
    return next(venv.folder.glob(f"lib/python*/site-packages/{below}"))


@pytest.mark.sims
def test_robocasas_addresses_are_those_of_its_installed_downloader() -> None:
    links = installed_file("robocasa", "robocasa/models/assets/box_links/box_links_assets.json")
    official = {link.rpartition("/")[2] for link in json.loads(links.read_text()).values()}
    ours = {Path(part.url).stem for part in downloads.find("robocasa").parts}
    assert ours <= official
    assert len(official - ours) == 1, "the fixtures of an older version are not got"
    script = installed_file("robocasa", "robocasa/scripts/download_kitchen_assets.py").read_text()
    for part in downloads.find("robocasa").parts:
        assert f'"{part.name}": dict(' in script
        assert f'"models/assets/{part.gives[0].partition("/sinks")[0]}")' in script


@pytest.mark.sims
def test_robotwins_addresses_are_those_of_its_installed_downloader() -> None:
    script = installed_file("robotwin", "robotwin/assets.py").read_text()
    for part in downloads.find("robotwin").parts:
        dataset, _, rest = part.url.partition("/resolve/")
        commit, _, file = rest.partition("/")
        assert f'ASSET_REPOSITORY = "{dataset.partition("/datasets/")[2]}"' in script
        assert f'ASSET_REVISION = "{commit}"' in script
        assert f'"{file}",' in script
        assert f'"{part.gives[0]}",' in script
