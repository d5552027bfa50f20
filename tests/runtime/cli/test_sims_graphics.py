"""A Vulkan device that is fetched into the data folder, and who is told of it.

The tools of Debian are stand-ins on the path: nothing is downloaded here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from zetta.runtime.cli import debian, graphics, sims_graphics, vulkan
from zetta.runtime.cli.sims_check import Probe
from zetta.runtime.cli.sims_venv import venv_of
from zetta.runtime.errors import ConfigError, InfraError

APT_GET = """#!/bin/sh
echo "$@" >> "{log}"
case "$*" in
  indextargets*) echo "{targets}" ;;
  *update*) cat "$APT_CONFIG" "{lists}/sources.list" > "{log}.settings" ;;
  *download*) for p in "$@"; do case "$p" in lib*|mesa*) touch "$p.deb" ;; esac; done ;;
esac
"""
DPKG = """#!/bin/sh
test "$1" = -x || exit 0
mkdir -p "$3/usr/lib/any" "$3/usr/share/vulkan/icd.d"
touch "$3/usr/lib/any/libvulkan_lvp.so"
echo '{"ICD": {"library_path": "libvulkan_lvp.so"}}' > "$3/usr/share/vulkan/icd.d/lvp_icd.json"
"""
APT_CONFIG = """#!/bin/sh
echo 'Acquire::http::Proxy "http://proxy:1";'
echo 'APT::Update::Post-Invoke:: "rm -rf everything";'
"""
LDD = """#!/bin/sh
if test -e "{once}"; then echo "libz.so.1 => /lib/libz.so.1"
else touch "{once}"; echo "{lacks} => not found"; fi
"""
Tools = Callable[..., Path]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """Put stand-ins for Debian's tools first on the path, and the data folder elsewhere."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(debian, "OS_RELEASE", tmp_path / "os-release")

    def become(
        release: str = 'ID=debian\nVERSION_CODENAME="bookworm"\n',
        targets: str = "http://near/debian/ bookworm main Packages",
        lacks: str = "libmd.so.0",
    ) -> Path:
        (tmp_path / "os-release").write_text(release)
        places = {
            "log": tmp_path / "calls",
            "targets": targets,
            "lists": tmp_path / "data/zetta/sims/vulkan.work",
            "once": tmp_path / "once",
            "lacks": lacks,
        }
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        texts = {
            "apt-get": APT_GET.format(**places),
            "apt-config": APT_CONFIG,
            "dpkg": DPKG,
            "ldd": LDD.format(**places),
        }
        for name, text in texts.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return tmp_path / "calls"

    return become


def test_a_device_is_fetched_once_with_the_libraries_it_lacks(tools: Tools) -> None:
    calls = tools()
    place = vulkan.fetch()
    told = json.loads((place / "driver.json").read_text())
    assert told["ICD"]["library_path"] == str(place / "usr/lib/any/libvulkan_lvp.so")
    asked = calls.read_text()
    assert "-t bookworm-backports download libvulkan1 mesa-vulkan-drivers" in asked
    assert "download libmd0" in asked
    assert sorted(p.name for p in place.parent.iterdir()) == ["vulkan"], "nothing is left over"

    calls.unlink()
    assert vulkan.fetch() == place
    assert not calls.exists()
    assert vulkan.fetch(again=True) == place
    assert calls.exists()


def test_apt_keeps_its_network_and_gets_lists_and_sources_of_its_own(tools: Tools) -> None:
    calls = tools()
    vulkan.fetch()
    settings = calls.with_name("calls.settings").read_text()
    assert 'Acquire::http::Proxy "http://proxy:1";' in settings
    assert "rm -rf" not in settings, "hooks of the system are not ours to run"
    assert 'Dir::Etc::sourceparts "/dev/null";' in settings
    assert "http://near/debian/ bookworm-backports main" in settings
    assert "Dir::State::lists" in settings


def test_drawing_processes_are_told_of_a_fetched_device(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools()
    assert vulkan.variables() == {}
    place = vulkan.fetch()
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    told = vulkan.variables()
    assert told["VK_DRIVER_FILES"] == told["VK_ICD_FILENAMES"] == str(place / "driver.json")
    assert told["LD_LIBRARY_PATH"] == f"{place}/usr/lib/any:{place}/lib/any:/mine"
    monkeypatch.setenv("LD_LIBRARY_PATH", told["LD_LIBRARY_PATH"])
    assert vulkan.variables() == told, "naming it again changes nothing"

    monkeypatch.setenv("VK_DRIVER_FILES", "/mine.json")
    assert vulkan.variables() == {}, "what the user chose stays"


def test_the_graphics_of_a_simulator_are_chosen_by_what_it_draws_with(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools()
    monkeypatch.setattr(os, "environ", dict(os.environ))
    unknown = "pictures: Vulkan, the system's device, if it has one"
    assert graphics.choose_graphics("maniskill") == unknown, "nobody has looked for one yet"
    place = vulkan.fetch()
    assert graphics.choose_graphics("maniskill") == "pictures: Vulkan, the fetched device"
    assert os.environ["VK_DRIVER_FILES"] == str(place / "driver.json")
    assert graphics.choose_graphics("maniskill") == "pictures: Vulkan, the fetched device"
    assert graphics.choose_graphics("toy") == "pictures: drawn without OpenGL"


@pytest.mark.parametrize(
    ("release", "fix"),
    [
        ("ID=debian\nVERSION_CODENAME=bookworm\n", "zetta sims graphics"),
        ("ID=debian\nVERSION_CODENAME=trixie\n", "sudo apt-get install -y libvulkan1"),
        ("ID=ubuntu\nVERSION_CODENAME=jammy\n", "sudo apt-get install -y libvulkan1"),
    ],
)
def test_the_line_that_brings_a_device_fits_the_system(
    tools: Tools, release: str, fix: str
) -> None:
    tools(release=release)
    assert vulkan.fix().startswith(fix)
    if "bookworm" not in release:
        with pytest.raises(ConfigError, match=r"Debian 12 .* sudo apt-get install"):
            vulkan.fetch()


def test_what_cannot_be_fetched_says_why_and_leaves_nothing(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools(targets="http://near/debian/ trixie main Packages")
    with pytest.raises(ConfigError, match="no source of bookworm main"):
        vulkan.fetch()
    tools(lacks="libstrange.so.1")
    with pytest.raises(InfraError, match=r"needs libstrange\.so\.1"):
        vulkan.fetch()
    monkeypatch.setattr(vulkan, "NEEDS_MB", 10**9)
    with pytest.raises(InfraError, match="free some room"):
        vulkan.fetch()
    assert list((tmp_path / "data/zetta/sims").iterdir()) == []


def test_a_mirror_is_found_under_any_name_of_the_release() -> None:
    security = "http://m/debian-security/ bookworm-security main Packages"
    listed = f"{security}\nhttp://m/debian/ oldstable main Packages"
    assert debian.mirror_of(listed, debian.Release("bookworm")) == "http://m/debian/"
    with pytest.raises(ConfigError, match="sources"):
        debian.mirror_of(security, debian.Release("bookworm"))


@pytest.mark.parametrize("there", [True, False])
def test_an_installation_brings_a_device_only_where_none_draws(
    there: bool, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools()
    found = Probe("vulkan", "ok" if there else "missing", "")
    monkeypatch.setattr(sims_graphics, "device", lambda venv: found)
    sims_graphics.bring_device(venv_of("maniskill"))
    assert vulkan.folder().exists() is not there


def test_an_installation_stands_without_a_device(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools(release="ID=other\n")
    monkeypatch.setattr(sims_graphics, "device", lambda venv: Probe("vulkan", "missing", ""))
    sims_graphics.bring_device(venv_of("maniskill"))
    assert "none could be fetched" in capsys.readouterr().err
    sims_graphics.bring_device(venv_of("robosuite"))
    assert capsys.readouterr().err == "", "it draws with OpenGL"
