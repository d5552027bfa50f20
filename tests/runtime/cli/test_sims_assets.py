"""Assets of simulators: got once, verified, copied over, and told to who needs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.cli.asset_lists import ROBOTS, SIM, THINGS, use_list, write_list
from tests.runtime.cli.asset_parts import NEEDED_FILES, asked, folder, get, lying, made_up_venv
from tests.runtime.cli.asset_server import Server
from zetta.runtime import registry
from zetta.runtime.cli import sims_assets_get
from zetta.runtime.cli.sims_assets import assets_state, told_root, worker_variables
from zetta.runtime.cli.sims_assets_get import Errand, refresh, room_needed
from zetta.runtime.cli.sims_venv import apart
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims import remote


def test_what_is_needed_is_got_once(small_lists: Path, zips: Server) -> None:
    assert folder().state == "needs assets"
    assert get(zips.url)
    assert folder().state == "ready"
    assert lying(folder()) == NEEDED_FILES
    before = asked(zips)
    assert not get(zips.url)
    assert asked(zips) == before, "the second time no server is asked"
    stamps = {p.name: folder().stamp(p) for p in folder().assets.parts}
    assert stamps["extra"] is None
    assert [s.verified for s in stamps.values() if s] == ["sha256", "zip"]
    assert not list(folder().marks.glob("*.zip")), "zips go when their files are in place"
    assert not list(folder().marks.glob("*.note"))


def test_a_part_can_be_got_alone_and_anew(small_lists: Path, zips: Server) -> None:
    assert get(zips.url, "extra")
    assert lying(folder()) == {"walls/w.png"}
    assert folder().state == "needs assets"
    assert not get(zips.url, "extra")
    assert get(zips.url, "extra", again=True)
    assert get(zips.url, "all")
    assert lying(folder()) == {*NEEDED_FILES, "walls/w.png"}
    with pytest.raises(ConfigError, match="did you mean 'extra'"):
        get(zips.url, "extr")


def test_zips_in_a_folder_are_taken_and_left_there(small_lists: Path, tmp_path: Path) -> None:
    here = tmp_path / "by hand"
    here.mkdir()
    with pytest.raises(ConfigError, match="nowhere, which is not there; name the one that holds"):
        get(str(tmp_path / "nowhere"))
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
    small_lists: Path, zips: Server, tmp_path: Path
) -> None:
    good = zips.files["robots.zip"].content
    zips.files["robots.zip"].content = good[:1000] + b"!" + good[1001:]
    with pytest.raises(InfraError, match=r"robots has SHA-256 .*, expected .*gets it anew"):
        get(zips.url)
    assert lying(folder()) == set()
    zips.files["robots.zip"].content = good
    assert get(zips.url)
    by_hand = tmp_path / "by hand"
    by_hand.mkdir()
    (by_hand / "robots.zip").write_bytes(good[:-1] + b"!")
    with pytest.raises(InfraError, match="expected"):
        get(str(by_hand), "robots", again=True)
    assert (by_hand / "robots.zip").exists(), "a file of the user's is not removed"


def test_a_hash_that_the_server_tells_counts_where_the_list_has_none(
    small_lists: Path, zips: Server
) -> None:
    zips.files["things.zip"].headers["X-Linked-ETag"] = f'"{"0" * 64}"'
    with pytest.raises(InfraError, match="things has SHA-256"):
        get(zips.url)
    assert folder().state_of(folder().assets.parts[0]) == "ready"


def test_a_broken_zip_without_a_hash_is_noticed_by_its_checksums(
    small_lists: Path, zips: Server
) -> None:
    good = zips.files["things.zip"].content
    for broken in (good[:100_000], good[:1000] + b"!" + good[1001:]):
        zips.files["things.zip"].content = broken
        with pytest.raises(InfraError, match=r"things is damaged.*gets it anew"):
            get(zips.url)
        assert not folder().staging(folder().assets.parts[1]).exists()
    assert lying(folder()) == {"robots/arm/a.xml", "robots/b.xml"}


def test_a_size_that_is_not_the_published_one_is_refused_at_once(
    small_lists: Path, zips: Server
) -> None:
    zips.files["robots.zip"].content += b"more"
    with pytest.raises(ConfigError, match=r"has \d+ bytes instead of \d+: it is another file"):
        get(zips.url)
    assert not folder().root.exists()


def test_without_room_nothing_is_begun(
    small_lists: Path, zips: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sims_assets_get, "SPARE", 10**15)
    with pytest.raises(InfraError, match=r"need 1000000\.0 GB at .*--part, or set XDG_DATA_HOME"):
        get(zips.url)
    assert not folder().root.exists()
    assert all(set(f.asked) <= {"bytes=0-0"} for f in zips.files.values()), "asked, not fetched"


def test_room_is_for_all_files_and_one_zip_at_a_time(small_lists: Path) -> None:
    part = replace(folder().assets.parts[1], download_mb=10, unpacked_mb=30)
    one = Errand(part, "", 100, 100, "")
    assert room_needed([one]) == 300 + 100
    assert room_needed([one, one]) == 600 + 100
    assert room_needed([replace(one, missing=0)]) == 300
    assert room_needed([]) == 0


def test_the_files_of_the_package_are_copied_first(small_lists: Path, zips: Server) -> None:
    write_list(small_lists, copies="robosuite:models/assets")
    use_list(small_lists)
    with pytest.raises(ConfigError, match="zetta sims install robosuite"):
        get(zips.url)
    package = made_up_venv() / "lib/python3.12/site-packages/robosuite"
    with pytest.raises(InfraError, match="zetta sims install robosuite --again"):
        get(zips.url)
    bundled = package / "models/assets"
    (bundled / "robots").mkdir(parents=True)
    (bundled / "robots" / "b.xml").write_text("of the package")
    (bundled / "arena.xml").write_text("first")
    assert get(zips.url)
    assert lying(folder()) == {*NEEDED_FILES, "arena.xml"}
    assert (folder().root / "robots/b.xml").read_bytes() == b"b" * 10, "the download is on top"

    (bundled / "arena.xml").write_text("second")
    (folder().marks / "copied.json").write_text('{"digest": "of an older list"}')
    assert folder().state == "needs assets"
    before = asked(zips)
    refresh(SIM)  # as `zetta sims install` does at its end
    assert folder().state == "ready"
    assert asked(zips) == before
    assert (folder().root / "arena.xml").read_text() == "second"
    assert (folder().root / "robots/b.xml").read_bytes() == b"b" * 10


def test_nothing_is_copied_where_nothing_was_downloaded(small_lists: Path) -> None:
    write_list(small_lists, copies="robosuite:models/assets")
    use_list(small_lists)
    refresh(SIM)
    refresh("toy")
    assert not folder().root.exists()


def test_lost_files_and_a_newer_list_are_noticed(small_lists: Path, zips: Server) -> None:
    get(zips.url)
    part = folder().assets.parts[1]
    (folder().root / "objects/cups/1/cup.obj").unlink()
    (folder().root / "objects/cups/1").rmdir()
    assert folder().state_of(part) == "incomplete"
    assert get(zips.url)
    assert folder().state_of(replace(part, url="https://elsewhere")) == "outdated"
    assert folder().state_of(replace(part, sha256="0" * 64)) == "outdated"
    folder().stamp_path(part).write_text("{")
    assert folder().state == "needs assets"


def test_the_processes_of_the_simulator_are_told(
    small_lists: Path, zips: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MARK", "passed on")
    assert told_root(SIM) is None
    assert "TEST_ASSETS" not in worker_variables(SIM)
    get(zips.url)
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
