"""Environments of simulators: made once, from an exact list, and half ones are noticed.

pip is the real one; what it installs are small wheels in a folder, and no index is asked.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from zetta.runtime.cli import assemble, sims, sims_check, sims_install, sims_venv
from zetta.runtime.cli.main import main
from zetta.runtime.cli.sims_install import find_python, install
from zetta.runtime.cli.sims_venv import STAMP, Stamp, apart, venv_of
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.installs import lists
from zetta.sims.installs.lists import PackageList
from zetta.sims.robosuite.simulator import RobosuiteSimulator

LIST = PackageList(
    name="robosuite",
    about="two small packages",
    module="first",
    python=">=3.11",
    needs_mb=1,
    draws_with="opengl",
    assets="",
    accepts="",
    packages=("first==1.0", "second==2.0"),
)
ListOf = Callable[..., PackageList]


def wheel(folder: Path, name: str, version: str) -> None:
    """Write the smallest wheel there is."""
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ListOf:
    """Let the list of robosuite be another one, and the data folder a new one."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel(wheels, "first", "1.0")
    wheel(wheels, "second", "2.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def become(**changes: object) -> PackageList:
        changed = replace(LIST, **changes)  # type: ignore[arg-type]
        monkeypatch.setattr(lists, "find", lambda name: changed)
        return changed

    become()
    return become


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_environment_is_made_once_and_anew_when_it_is_half(listed: ListOf) -> None:
    done = install("robosuite")
    assert done.fresh
    assert done.venv.state == "ready"
    assert done.stamp.size_mb > 0
    assert not install("robosuite").fresh

    (done.venv.folder / STAMP).unlink()  # as after a power cut
    assert done.venv.state == "incomplete"
    assert install("robosuite").fresh


def test_the_state_of_an_environment_follows_from_its_stamp(listed: ListOf) -> None:
    venv = venv_of("robosuite")
    assert venv.state == "missing"
    venv.python.parent.mkdir(parents=True)
    venv.python.touch()
    assert venv.state == "incomplete"
    assert venv.fix == "zetta sims install robosuite"

    stamp = Stamp(venv.packages.digest, str(venv.folder), 1.0, 1)
    for text, state in (
        (json.dumps(asdict(stamp)), "ready"),
        (json.dumps(asdict(replace(stamp, folder="/elsewhere"))), "moved"),
        (json.dumps(asdict(replace(stamp, digest="another"))), "outdated"),
        ('{"digest": "x"}', "incomplete"),
        ("{", "incomplete"),
    ):
        (venv.folder / STAMP).write_text(text)
        assert venv.state == state, text


def test_an_environment_reached_by_a_link_is_the_same(listed: ListOf, tmp_path: Path) -> None:
    venv = venv_of("robosuite")
    venv.python.parent.mkdir(parents=True)
    venv.python.touch()
    stamp = Stamp(venv.packages.digest, str(venv.folder), 1.0, 1)
    (venv.folder / STAMP).write_text(json.dumps(asdict(stamp)))
    (link := tmp_path / "link").symlink_to(venv.folder)
    assert replace(venv, folder=link).state == "ready"

    (link := tmp_path / "elsewhere").symlink_to(venv.folder.rename(tmp_path / "moved"))
    assert replace(venv, folder=link).state == "moved"


def test_a_moved_environment_says_from_where_and_what_mends_it(
    listed: ListOf,
) -> None:
    venv = venv_of("robosuite")
    venv.python.parent.mkdir(parents=True)
    venv.python.touch()
    stamp = Stamp(venv.packages.digest, "/elsewhere", 1.0, 1)
    (venv.folder / STAMP).write_text(json.dumps(asdict(stamp)))

    with pytest.raises(ConfigError) as refused:
        apart("robosuite", RobosuiteSimulator())
    assert f"was made in /elsewhere and moved to {venv.folder}" in str(refused.value)
    assert str(refused.value).endswith("install it with: zetta sims install robosuite")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_package_that_cannot_be_installed_is_named_with_the_log(listed: ListOf) -> None:
    listed(packages=("first==1.0", "third==3.0"))
    with pytest.raises(InfraError, match=r"installing third==3\.0 failed: .*third") as caught:
        install("robosuite")
    venv = venv_of("robosuite")
    assert str(venv.log) in str(caught.value)
    assert "third==3.0" in venv.log.read_text(encoding="utf-8")
    assert venv.state == "incomplete"


def test_without_room_nothing_is_begun(listed: ListOf) -> None:
    listed(needs_mb=10**9)
    with pytest.raises(InfraError, match=r"needs 1000000\.0 GB .* XDG_DATA_HOME"):
        install("robosuite")
    assert venv_of("robosuite").state == "missing"


def test_without_a_fitting_python_the_versions_are_told() -> None:
    with pytest.raises(ConfigError, match=r"exist for Python ==2\.7"):
        find_python("==2.7", "robosuite")


def test_another_python_on_the_path_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sims_install.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(sims_install, "_version_of", lambda python: "2.7.18")
    assert find_python("==2.7.*", "robosuite") == "/usr/bin/python3.12"


def test_a_simulator_that_is_not_installed_says_how(listed: ListOf) -> None:
    with pytest.raises(ConfigError, match="zetta sims install robosuite"):
        assemble.find_simulator("robosuite")
    state = {s.name: s for s in sims.sim_states()}["robosuite"]
    assert (state.state, state.fix) == ("missing", "zetta sims install robosuite")
    probes = list(sims_check.probes("robosuite"))
    assert [(p.name, p.state) for p in probes] == [("environment", "missing")]


def typed(*words: str) -> int:
    """Run the command and return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(str(ended.value.code))


def test_check_prints_the_one_line_that_helps(
    listed: ListOf, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("sims", "check", "robosuite") == 1
    assert capsys.readouterr().out.splitlines()[-1] == "zetta sims install robosuite"
    assert typed("sims", "check", "robosuite", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["ready"] is False
    assert told["fix"] == "zetta sims install robosuite"
    assert typed("sims", "check", "toy", "--json") == 0


def test_a_simulator_without_an_environment_of_its_own_is_not_installed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typed("sims", "install", "toy") == 1
    assert "it is ready" in capsys.readouterr().err
    assert typed("sims", "install", "robosuit") == 1
    assert "did you mean 'robosuite'" in capsys.readouterr().err


@pytest.mark.parametrize("name", lists.names())
def test_every_list_pins_every_package_once(name: str) -> None:
    found = lists.find(name)
    packages = [p.partition("==")[0].lower().replace("_", "-") for p in found.packages]
    assert len(set(packages)) == len(packages)
    assert {"numpy", "msgpack", "pyzmq"} <= set(packages), "the worker needs them"
    assert found.about
    assert found.needs_mb > 100


def test_a_changed_list_has_another_digest() -> None:
    assert LIST.digest != replace(LIST, packages=LIST.packages[:1]).digest
    assert LIST.digest != replace(LIST, python=">=3.12").digest
    assert LIST.digest == replace(LIST, about="said otherwise").digest
    assert sims_venv.lives_apart("robosuite")
    assert not sims_venv.lives_apart("toy")
