"""`zetta sims assets`: got once, gone on with after any end, verified, and told to who needs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.runtime.cli import asset_lists
from tests.runtime.cli.asset_lists import EXTRA, ROBOTS, SIM, THINGS, ZIPS, use_list, write_list
from tests.runtime.cli.asset_server import BLOCK, Served, Server, serving
from zetta.runtime import registry
from zetta.runtime.cli import sims, sims_assets_answers, sims_assets_get, sims_check
from zetta.runtime.cli.main import main
from zetta.runtime.cli.sims_assets import (
    AssetFolder,
    assets_of,
    assets_state,
    told_root,
    worker_variables,
)
from zetta.runtime.cli.sims_assets_get import Errand, get_assets, refresh, room_needed
from zetta.runtime.cli.sims_venv import STAMP, Stamp, apart, venv_of
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims import remote
from zetta.sims.installs import downloads

HOUSE = Path(__file__).parents[3]
NEEDED_FILES = {"robots/arm/a.xml", "robots/b.xml", "objects/cups/1/cup.obj"}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({name: Served(content) for name, content in ZIPS.items()}) as server:
        yield server


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let the simulator need small things, and the data folder be a new one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("TEST_ASSETS", raising=False)
    monkeypatch.setattr(sims_assets_get, "SPARE", 0)
    before = downloads.FOLDER
    write_list(tmp_path / "lists")
    use_list(tmp_path / "lists")
    yield tmp_path / "lists"
    use_list(before)


def folder() -> AssetFolder:
    found = assets_of(SIM)
    assert found is not None
    return found


def get(source: str, *parts: str, again: bool = False) -> bool:
    """Get parts; return whether anything had to be done."""
    here = folder()
    return get_assets(here, here.assets.chosen(parts), source, again).fresh


def lying(here: AssetFolder) -> set[str]:
    """Return what the simulator finds."""
    files = (path for path in here.root.rglob("*") if path.is_file())
    names = {path.relative_to(here.root).as_posix() for path in files}
    return {name for name in names if not name.startswith(".zetta/")}


def asked(server: Server) -> int:
    return sum(len(file.asked) for file in server.files.values())


def typed(*words: str) -> int:
    """Run the command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(str(ended.value.code))


def test_what_is_needed_is_got_once(lists: Path, server: Server) -> None:
    assert folder().state == "needs assets"
    assert get(server.url)
    assert folder().state == "ready"
    assert lying(folder()) == NEEDED_FILES
    before = asked(server)
    assert not get(server.url)
    assert asked(server) == before, "the second time no server is asked"
    stamps = {p.name: folder().stamp(p) for p in folder().assets.parts}
    assert stamps["extra"] is None
    assert [s.verified for s in stamps.values() if s] == ["sha256", "zip"]
    assert not list(folder().marks.glob("*.zip")), "zips go when their files are in place"
    assert not list(folder().marks.glob("*.note"))


def test_a_part_can_be_got_alone_and_anew(lists: Path, server: Server) -> None:
    assert get(server.url, "extra")
    assert lying(folder()) == {"walls/w.png"}
    assert folder().state == "needs assets"
    assert not get(server.url, "extra")
    assert get(server.url, "extra", again=True)
    assert get(server.url, "all")
    assert lying(folder()) == {*NEEDED_FILES, "walls/w.png"}
    with pytest.raises(ConfigError, match="did you mean 'extra'"):
        get(server.url, "extr")


def test_zips_in_a_folder_are_taken_and_left_there(lists: Path, tmp_path: Path) -> None:
    here = tmp_path / "by hand"
    here.mkdir()
    (here / "robots.zip").write_bytes(ROBOTS)
    with pytest.raises(ConfigError, match=r"things\.zip is missing; download it from http://"):
        get(str(here))
    (here / "things.zip").write_bytes(THINGS)
    assert get(str(here))
    assert lying(folder()) == NEEDED_FILES
    assert sorted(p.name for p in here.iterdir()) == ["robots.zip", "things.zip"]
    with pytest.raises(ConfigError, match="--from takes a folder or an address"):
        get("ftp://elsewhere", again=True)


def test_a_wrong_hash_is_refused_and_the_zip_is_got_anew(
    lists: Path, server: Server, tmp_path: Path
) -> None:
    good = server.files["robots.zip"].content
    server.files["robots.zip"].content = good[:1000] + b"!" + good[1001:]
    with pytest.raises(InfraError, match=r"robots has SHA-256 .*, expected .*gets it anew"):
        get(server.url)
    assert lying(folder()) == set()
    server.files["robots.zip"].content = good
    assert get(server.url)
    by_hand = tmp_path / "by hand"
    by_hand.mkdir()
    (by_hand / "robots.zip").write_bytes(good[:-1] + b"!")
    with pytest.raises(InfraError, match="expected"):
        get(str(by_hand), "robots", again=True)
    assert (by_hand / "robots.zip").exists(), "a file of the user's is not removed"


def test_a_hash_that_the_server_tells_counts_where_the_list_has_none(
    lists: Path, server: Server
) -> None:
    server.files["things.zip"].headers["X-Linked-ETag"] = f'"{"0" * 64}"'
    with pytest.raises(InfraError, match="things has SHA-256"):
        get(server.url)
    assert folder().state_of(folder().assets.parts[0]) == "ready"


def test_a_broken_zip_without_a_hash_is_noticed_by_its_checksums(
    lists: Path, server: Server
) -> None:
    good = server.files["things.zip"].content
    for broken in (good[:100_000], good[:1000] + b"!" + good[1001:]):
        server.files["things.zip"].content = broken
        with pytest.raises(InfraError, match=r"things is damaged.*gets it anew"):
            get(server.url)
        assert not folder().staging(folder().assets.parts[1]).exists()
    assert lying(folder()) == {"robots/arm/a.xml", "robots/b.xml"}


def test_a_size_that_is_not_the_published_one_is_refused_at_once(
    lists: Path, server: Server
) -> None:
    server.files["robots.zip"].content += b"more"
    with pytest.raises(ConfigError, match=r"has \d+ bytes instead of \d+: it is another file"):
        get(server.url)
    assert not folder().root.exists()


def test_without_room_nothing_is_begun(
    lists: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sims_assets_get, "SPARE", 10**15)
    with pytest.raises(InfraError, match=r"need 1000000\.0 GB at .*--part, or set XDG_DATA_HOME"):
        get(server.url)
    assert not folder().root.exists()
    assert all(set(f.asked) <= {"bytes=0-0"} for f in server.files.values()), "asked, not fetched"


def test_room_is_for_all_files_and_one_zip_at_a_time(lists: Path) -> None:
    part = replace(folder().assets.parts[1], download_mb=10, unpacked_mb=30)
    one = Errand(part, "", 100, 100, "")
    assert room_needed([one]) == 300 + 100
    assert room_needed([one, one]) == 600 + 100
    assert room_needed([replace(one, missing=0)]) == 300
    assert room_needed([]) == 0


def test_the_files_of_the_package_are_copied_first(lists: Path, server: Server) -> None:
    write_list(lists, copies="robosuite:models/assets")
    use_list(lists)
    with pytest.raises(ConfigError, match="zetta sims install robosuite"):
        get(server.url)
    package = made_up_venv() / "lib/python3.12/site-packages/robosuite"
    with pytest.raises(InfraError, match="zetta sims install robosuite --again"):
        get(server.url)
    bundled = package / "models/assets"
    (bundled / "robots").mkdir(parents=True)
    (bundled / "robots" / "b.xml").write_text("of the package")
    (bundled / "arena.xml").write_text("first")
    assert get(server.url)
    assert lying(folder()) == {*NEEDED_FILES, "arena.xml"}
    assert (folder().root / "robots/b.xml").read_bytes() == b"b" * 10, "the download is on top"

    (bundled / "arena.xml").write_text("second")
    (folder().marks / "copied.json").write_text('{"digest": "of an older list"}')
    assert folder().state == "needs assets"
    before = asked(server)
    refresh(SIM)  # as `zetta sims install` does at its end
    assert folder().state == "ready"
    assert asked(server) == before
    assert (folder().root / "arena.xml").read_text() == "second"
    assert (folder().root / "robots/b.xml").read_bytes() == b"b" * 10


def made_up_venv() -> Path:
    """Let the environment of the simulator look whole."""
    venv = venv_of(SIM)
    venv.python.parent.mkdir(parents=True)
    venv.python.symlink_to(sys.executable)
    stamp = Stamp(venv.packages.digest, str(venv.folder), 1.0, 1200)
    (venv.folder / STAMP).write_text(json.dumps(asdict(stamp)))
    return venv.folder


def test_nothing_is_copied_where_nothing_was_downloaded(lists: Path) -> None:
    write_list(lists, copies="robosuite:models/assets")
    use_list(lists)
    refresh(SIM)
    refresh("toy")
    assert not folder().root.exists()


def test_two_commands_at_once_download_once(lists: Path, server: Server) -> None:
    file = server.files["robots.zip"]
    file.hold_after = BLOCK
    first = child(lists, "-", "--from", server.url)
    assert file.sent.wait(60)
    second = child(lists, "-", "--from", server.url)
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    file.go_on.set()
    assert (first.wait(60), second.wait(60)) == (0, 0)
    for process in (first, second):
        process.communicate()
    assert [a for a in file.asked if a != "bytes=0-0"] == [""]


def test_lost_files_and_a_newer_list_are_noticed(lists: Path, server: Server) -> None:
    get(server.url)
    part = folder().assets.parts[1]
    (folder().root / "objects/cups/1/cup.obj").unlink()
    (folder().root / "objects/cups/1").rmdir()
    assert folder().state_of(part) == "incomplete"
    assert get(server.url)
    assert folder().state_of(replace(part, url="https://elsewhere")) == "outdated"
    assert folder().state_of(replace(part, sha256="0" * 64)) == "outdated"
    folder().stamp_path(part).write_text("{")
    assert folder().state == "needs assets"


def test_the_processes_of_the_simulator_are_told(
    lists: Path, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MARK", "passed on")
    assert told_root(SIM) is None
    assert "TEST_ASSETS" not in worker_variables(SIM)
    get(server.url)
    assert told_root(SIM) == folder().root
    made_up_venv()
    started: list[remote.RemoteSettings] = []

    def start(*given: object) -> None:
        started.append(given[-1])  # type: ignore[arg-type]

    monkeypatch.setattr(remote, "RemoteEnv", start)
    simulator = apart(SIM, registry.simulator(SIM))
    simulator.make(next(iter(simulator.suites())), 0)
    assert started[0].environment is not None
    assert started[0].environment["TEST_ASSETS"] == str(folder().root)
    assert started[0].environment["MARK"] == "passed on"

    monkeypatch.setenv("TEST_ASSETS", str(tmp_path / "mine"))
    assert told_root(SIM) == tmp_path / "mine"
    assert assets_state(SIM) == "needs assets"
    assert worker_variables(SIM)["TEST_ASSETS"] == str(tmp_path / "mine")


def test_needing_assets_is_a_state_of_its_own(
    lists: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].assets) == ("missing", "needs assets")
    made_up_venv()
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].fix) == ("needs assets", f"zetta sims assets {SIM}")
    assert (states[SIM].version, states[SIM].size_mb) == ("1.5.2", 1200)
    assert (states["toy"].state, states["toy"].assets) == ("ready", "bundled")
    get(server.url)
    states = {s.name: s for s in sims.sim_states()}
    assert (states[SIM].state, states[SIM].fix, states[SIM].assets) == ("ready", "", "ready")


@pytest.fixture
def probed(lists: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
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
    probed: list[str], lists: Path, server: Server, capsys: pytest.CaptureFixture[str]
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

    get(server.url)
    assert typed("sims", "check", SIM, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ready"], told["state"], told["fix"]) == (True, "ready", None)
    assert probed == [""]


def test_what_the_packages_bundle_may_run_without_the_download(
    probed: list[str], lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lists / f"{SIM}.toml"
    path.write_text('bundled_suite = "small"\n' + path.read_text())
    use_list(lists)
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
    lists: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "assets", SIM, "--list") == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines()[1:4]] == ["missing"] * 3
    assert typed("sims", "assets", SIM, "--from", server.url, "--json") == 0
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
    lists: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("sims", "assets", SIM, "--from", server.url)
    assert typed(*words, "--part", "extra", "--type", "things") == 0
    assert f"needs robots as well: zetta sims assets {SIM}" in capsys.readouterr().out
    assert typed(*words, "--part", "thing") == 1
    assert "did you mean 'things'" in capsys.readouterr().err


def test_progress_goes_to_stderr_alone(
    lists: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "assets", SIM, "--from", server.url, "--json") == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "downloading robots (1 of 2): 300 kB of 300 kB" in captured.err


def test_much_is_not_downloaded_without_a_word(
    lists: Path,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sims_assets_answers, "ASKED_FROM", 1)
    words = ("sims", "assets", SIM, "--from", server.url)
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


def child(lists: Path, step: str, *words: str) -> subprocess.Popen[str]:
    """Run the command in a process that can be killed."""
    program = [sys.executable, "-m", asset_lists.__name__, str(lists), step]
    return subprocess.Popen(
        [*program, "sims", "assets", SIM, *words],
        cwd=HOUSE,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(("signalled", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_download_that_is_interrupted_goes_on(
    lists: Path,
    server: Server,
    signalled: signal.Signals,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = server.files["robots.zip"]
    file.hold_after = 4 * BLOCK
    process = child(lists, "-", "--from", server.url, "--json")
    assert file.sent.wait(60)
    part = folder().zip_of(folder().assets.parts[0]).with_suffix(".part")
    while not part.exists() or part.stat().st_size < 4 * BLOCK:
        assert process.poll() is None
    process.send_signal(signalled)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    if signalled is signal.SIGINT:
        assert json.loads(out)["error"]["kind"] == "Interrupted"
    assert folder().state_of(folder().assets.parts[0]) == "incomplete"
    assert folder().fetched(folder().assets.parts[0]) == 4 * BLOCK
    assert typed("sims", "assets", SIM, "--list") == 0
    assert "robots  incomplete, 66 kB here" in capsys.readouterr().out
    file.hold_after = None
    assert get(server.url)
    assert file.asked[-1] == f"bytes={4 * BLOCK}-"
    assert lying(folder()) == NEEDED_FILES


STEPS = 14
"""Moves, writes and removals between the first download and the last stamp."""


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_a_kill_at_any_step_leaves_what_can_be_gone_on_with(
    lists: Path, server: Server, step: int
) -> None:
    process = child(lists, str(step), "--from", server.url)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (0 if step == STEPS else -signal.SIGKILL), err
    for part in folder().assets.parts[:2]:
        if folder().state_of(part) == "ready":
            assert folder().stamp(part) is not None
            assert set(folder().files_path(part).read_text().splitlines()) <= lying(folder())
    assert get(server.url) or step >= STEPS - 1
    assert folder().state == "ready"
    assert lying(folder()) == NEEDED_FILES
    fetched = [a for a in server.files["robots.zip"].asked if a != "bytes=0-0"]
    assert fetched == [""], "one download of it was enough"
    assert not [p for p in folder().marks.iterdir() if p.suffix not in (".json", ".files")]


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


def test_what_was_installed_is_removed(
    lists: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up_venv()
    venv_of(SIM).log.write_text("what pip said")
    get(server.url)
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
    lists: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zetta.runtime.cli import sims_remove

    made_up_venv()
    get(server.url)
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
