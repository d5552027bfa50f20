"""`zetta sims assets|list|check|remove`: what they say, in words and in JSON, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.cli.asset_lists import EXTRA, SIM, use_list
from tests.runtime.cli.asset_parts import NEEDED_FILES, folder, get, lying, made_up_venv
from tests.runtime.cli.asset_server import Server
from zetta.runtime.cli import sims, sims_assets_answers, sims_check, sims_remove
from zetta.runtime.cli.main import main
from zetta.runtime.cli.sims_assets import assets_state
from zetta.runtime.cli.sims_venv import venv_of
from zetta.runtime.errors import InfraError


def typed(*words: str) -> int:
    """Run the command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(str(ended.value.code))


def test_needing_assets_is_a_state_of_its_own(
    small_lists: Path, zips: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].assets) == ("missing", "needs assets")
    made_up_venv()
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].fix) == ("needs assets", f"zetta sims assets {SIM}")
    assert (states[SIM].version, states[SIM].size_mb) == ("1.5.2", 1200)
    assert (states["toy"].state, states["toy"].assets) == ("ready", "bundled")
    get(zips.url)
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].fix, states[SIM].assets) == ("ready", "", "ready")


@pytest.fixture
def probed(small_lists: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let all else that `check` looks at be there; return the suites that are tried."""
    made_up_venv()
    suites: list[str] = []

    def first_tick(venv: object, suite: str) -> sims_check.Probe:
        suites.append(suite)
        return sims_check.Probe("worker", "ok", suite)

    monkeypatch.setattr(sims_check, "_asked", lambda *given: sims_check.Probe("x", "ok", ""))
    monkeypatch.setattr(sims_check, "_opengl", lambda python: sims_check.Probe("gl", "ok", ""))
    monkeypatch.setattr(sims_check, "_first_tick", first_tick)
    return suites


def test_check_says_what_has_to_be_downloaded(
    probed: list[str], small_lists: Path, zips: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "check", SIM) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == f"zetta sims assets {SIM}"
    assert "robots missing, things missing; 1 MB to download" in lines[-2]
    assert typed("sims", "check", SIM, "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["state"]) == (False, "needs assets")
    assert told["fix"] == f"zetta sims assets {SIM}"
    assert probed == []

    get(zips.url)
    assert typed("sims", "check", SIM, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["state"], told["fix"]) == (True, "ready", None)
    assert probed == [""]


def test_what_the_packages_bundle_may_run_without_the_download(
    probed: list[str], small_lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = small_lists / f"{SIM}.toml"
    path.write_text('bundled_suite = "small"\n' + path.read_text())
    use_list(small_lists)
    assert typed("sims", "check", SIM) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "ready for what the packages bundle; for all the rest:",
        f"zetta sims assets {SIM}",
    ]
    assert typed("sims", "check", SIM, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["state"]) == (False, "needs assets")
    assert probed == ["small", "small"]


def test_a_folder_of_the_users_own_is_looked_at(
    probed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ASSETS", str(tmp_path / "mine"))
    probe = list(sims_check.probes(SIM))[-1]
    assert (probe.state, probe.fix) == (
        "needs assets",
        f"unset TEST_ASSETS; zetta sims assets {SIM}",
    )
    for name in NEEDED_FILES:
        (tmp_path / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / name).touch()
    assert [p.state for p in sims_check.probes(SIM)][-1] == "ok"
    assert assets_state(SIM) == "ready"


def test_the_command_answers_in_words_and_in_json(
    small_lists: Path, zips: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "assets", SIM, "--list") == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines()[1:4]] == ["missing"] * 3
    assert typed("sims", "assets", SIM, "--from", zips.url, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["state"], told["fresh"], told["variable"]) == ("ready", True, "TEST_ASSETS")
    assert [(p["name"], p["verified"], p["files"]) for p in told["parts"]] == [
        ("robots", "sha256", 2),
        ("things", "zip", 1),
    ]
    assert typed("sims", "assets", SIM, "--json") == 0
    assert json.loads(capsys.readouterr().out)["fresh"] is False
    assert typed("sims", "assets", SIM, "--list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [p["state"] for p in told["parts"]] == ["ready", "ready", "missing"]
    assert typed("sims", "assets", SIM) == 0
    captured = capsys.readouterr()
    assert "here already" in captured.out
    assert f"try: zetta sims check {SIM}" in captured.out


def test_part_and_type_choose_and_what_is_missing_yet_is_said(
    small_lists: Path, zips: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("sims", "assets", SIM, "--from", zips.url)
    assert typed(*words, "--part", "extra", "--type", "things") == 0
    assert f"needs robots as well: zetta sims assets {SIM}" in capsys.readouterr().out
    assert typed(*words, "--part", "thing") == 1
    assert "did you mean 'things'" in capsys.readouterr().err


def test_progress_goes_to_stderr_alone(
    small_lists: Path, zips: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "assets", SIM, "--from", zips.url, "--json") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "downloading robots (1 of 2): 300 kB of 300 kB" in captured.err


def test_much_is_not_downloaded_without_a_word(
    small_lists: Path,
    zips: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sims_assets_answers, "ASKED_FROM", 1)
    words = ("sims", "assets", SIM, "--from", zips.url)
    assert typed(*words) == 1
    assert "this downloads 500 kB to" in capsys.readouterr().err
    assert lying(folder()) == set()
    monkeypatch.setattr(sims_assets_answers.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sims_assets_answers.typer, "confirm", lambda text, err: False)
    assert typed(*words) == 1
    assert lying(folder()) == set()
    monkeypatch.setattr(sims_assets_answers.typer, "confirm", lambda text, err: True)
    assert typed(*words) == 0
    assert typed("sims", "remove", SIM, "--yes") == 0
    assert typed(*words, "--yes") == 0
    assert lying(folder()) == NEEDED_FILES


@pytest.mark.parametrize("name", ["toy", "libero", "twin"])
def test_a_simulator_that_bundles_all_of_it_says_so(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "assets", name) == 0
    assert "needs no download" in capsys.readouterr().out
    assert typed("sims", "assets", name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "bundled"


def test_an_unknown_simulator_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("sims", "assets", "robotwi") == 1
    assert "did you mean 'robotwin'" in capsys.readouterr().err


def test_what_was_installed_is_removed(
    small_lists: Path, zips: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up_venv()
    venv_of(SIM).log.write_text("what pip said")
    get(zips.url)
    assert typed("sims", "remove", SIM) == 1
    assert "add --yes to agree" in capsys.readouterr().err
    assert typed("sims", "remove", SIM, "--yes", "--keep-assets") == 0
    assert "removed environment of robosuite" in capsys.readouterr().out
    assert venv_of(SIM).state == "missing"
    assert not venv_of(SIM).log.exists()
    assert folder().state == "ready"
    assert typed("sims", "remove", SIM, "--yes", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [r["what"] for r in told["removed"]] == ["assets"]
    assert told["removed"][0]["bytes"] > len(EXTRA)
    assert not folder().root.exists()
    assert typed("sims", "remove", SIM) == 0
    assert "nothing of robosuite is here" in capsys.readouterr().out
    assert typed("sims", "remove", "toy") == 1
    assert "has no environment to remove" in capsys.readouterr().err


def test_a_removal_that_is_broken_off_leaves_nothing_that_looks_whole(
    small_lists: Path, zips: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_venv()
    get(zips.url)
    real: Callable[..., None] = sims_remove.shutil.rmtree

    def broken(path: Path, ignore_errors: bool = False) -> None:
        if ignore_errors:
            real(path, ignore_errors=True)
            return
        raise OSError(16, "Device or resource busy", str(path))

    monkeypatch.setattr(sims_remove.shutil, "rmtree", broken)
    for removal in sims_remove.removals(SIM):
        with pytest.raises(InfraError, match="Device or resource busy"):
            sims_remove.remove(removal)
    assert venv_of(SIM).state == "incomplete"
    assert folder().state == "needs assets"
