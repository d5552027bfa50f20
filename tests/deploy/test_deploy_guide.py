"""`docs/deploy.md` from its first command to its last, on two computers, against the digital twin.

What a test cannot run is in `stand_ins.py` (sudo, scp, systemd, pip) or marked `by-reader` in the
guide, and then checked here in another way.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.deploy.guide import Block, Guide, read_guide
from tests.deploy.ports import reachable
from tests.deploy.rehearsal import AS_THEY_ARE, FOLDERS, ROOT, Rehearsal, rehearsal
from tests.deploy.two_hosts import KINDS, Kind
from zetta.hw_drivers.arm_setup import read_setup

GUIDE: Final = ROOT / "docs/deploy.md"
HOST_NAMES: Final[Mapping[str, str]] = {"gpu": "GPU server", "robot": "robot workstation"}
FIRST_OWN: Final = 32768
"""From here on ports are those that a system takes for itself, such as between parent and child."""
POLICY_ENV: Final = ROOT / "docs/deploy/policy.env"


@pytest.fixture(scope="module")
def guide() -> Guide:
    return read_guide(GUIDE)


@pytest.mark.timeout(400)
def test_commands_of_the_guide_do_what_they_say(
    guide: Guide, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = carried_out(guide, tmp_path, capsys, KINDS, slow=False)
    assert done == [block for block in guide.blocks if not block.slow]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kinds", [KINDS, KINDS[-1:]], ids=["as-far-apart-as-can-be", "loopback"])
def test_every_command_of_the_guide_does_what_it_says(
    kinds: tuple[Kind, ...], guide: Guide, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(guide, tmp_path, capsys, kinds, slow=True) == list(guide.blocks)


def carried_out(
    guide: Guide,
    site: Path,
    capsys: pytest.CaptureFixture[str],
    kinds: tuple[Kind, ...],
    slow: bool,
) -> list[Block]:
    with rehearsal(site, kinds) as way:
        with capsys.disabled():
            print(f"\n[{GUIDE.name}: the two computers are {way.hosts.kind}]", flush=True)
        way.carry_out(guide, slow)
    if way.hosts.kind != "loopback":  # there a computer's ports are everybody's
        check_ports(way)
    took = sorted(way.took.items(), key=lambda item: -item[1])[:8]
    print(f"{sum(way.took.values()):.0f} s;", ", ".join(f"line {n} {s:.1f} s" for n, s in took))
    return way.done


def check_ports(way: Rehearsal) -> None:
    """The table of ports is true: one port can be reached, and the rest is what it says."""
    assert reachable(way.listened["gpu"]) == {("10.77.0.1", 5601)}
    assert reachable(way.listened["robot"]) == set()
    told = {5701, 5702, 5703, 5704, 5705, 5709}
    assert {port for _, port in way.listened["robot"] if port < FIRST_OWN} == told
    assert {port for _, port in way.listened["gpu"] if port < FIRST_OWN} == {5601}


def test_sentence_before_a_block_names_its_computer(guide: Guide) -> None:
    """What a reader sees of a block is its commands alone."""
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    before, end = "", 0
    for block in guide.blocks:
        if block.host in HOST_NAMES:
            between = " ".join(lines[end : block.line])
            named = [host for host, name in HOST_NAMES.items() if name in between]
            if block.host != before:
                assert block.host in named, f"line {block.line}: say on which computer this is"
            before, end = block.host, block.line


def test_places_of_the_guide_are_those_that_the_test_replaces(guide: Guide) -> None:
    addresses = ("10.77.0.1", "10.77.0.2")
    assert set(guide.places) == {*addresses, *FOLDERS, *AS_THEY_ARE}
    for block in guide.blocks:
        for address in re.findall(r"\d+\.\d+\.\d+\.\d+", block.text):
            assert address in (*addresses, "127.0.0.1"), f"line {block.line}: {address}"


def test_commands_for_the_reader_alone_are_few_and_sound(guide: Guide) -> None:
    alone = [(b.line, command) for b in guide.blocks if b.by_reader for command in b.commands]
    run = [command for b in guide.blocks if not b.by_reader for command in b.commands]
    assert len(alone) < len(run) / 2
    for line, command in alone:
        words = shlex.split(command)
        program = words[1] if words[0] == "sudo" else words[0]
        assert program in SOUND, f"line {line}: nothing checks {program!r}"
        SOUND[program](words)


def test_mentioned_commands_are_among_those_that_are_run(guide: Guide) -> None:
    run = {" ".join(_verbs(c)) for b in guide.blocks for c in b.commands if "zetta" in c.split()}
    for line, span in guide.spans:
        words = shlex.split(span)
        if words and words[0] == "zetta":
            said = " ".join(_verbs(span))
            assert said in run, f"line {line}: `{span}` is mentioned and never run"


def test_files_of_the_guide_declare_what_the_twin_is() -> None:
    """Numbers in `arm.toml` are copies: a twin that sees otherwise must not go unnoticed."""
    twin_setups = pytest.importorskip("zetta.hw_drivers.twin.setups")
    declared, twin = read_setup(ROOT / "docs/deploy/arm.toml"), twin_setups.twin_setup()
    assert (declared.name, declared.action) == (twin.name, twin.action)
    assert (declared.home_pos, declared.home_quat) == (twin.home_pos, twin.home_quat)
    assert {task.instruction for task in declared.tasks} <= {t.instruction for t in twin.tasks}
    for name, camera in twin.cameras.items():
        ours = declared.cameras[name]
        assert (ours.height, ours.width, ours.mount) == (camera.height, camera.width, camera.mount)
        assert np.allclose(ours.intrinsics, camera.intrinsics, atol=1e-5)
        assert np.allclose(ours.T_parent_cam, camera.T_parent_cam, atol=1e-9)


def test_services_are_sound_units(tmp_path: Path) -> None:
    """Options that the stand-in for systemd does not mind are known to the real one."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in (ROOT / "docs/deploy").glob("*.service"):
        copy = tmp_path / unit.name
        copy.write_text(unit.read_text().replace("/opt/zetta/.venv/bin/zetta", sys.executable))
        ended = subprocess.run(
            ["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, "")


# ---------------------------------------------------------------- what a reader alone can run


def _verbs(command: str) -> list[str]:
    """Return what comes behind `zetta` before the first argument."""
    words = shlex.split(command)
    words = words[words.index("zetta") + 1 :]
    return list(itertools.takewhile(re.compile(r"[a-z]+$").match, words))


def _packages(words: list[str]) -> None:
    """Debian's own names, as the Makefile has them."""
    if words[2] == "update":
        return
    known = re.search(r"^DEBIAN_LIBS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert known is not None
    assert words[2:4] == ["install", "-y"]
    assert set(words[4:]) <= {*known.group(1).split(), "python3-venv", "git", "v4l-utils", "ufw"}


def _firewall(words: list[str]) -> None:
    """Only the port that the policy server listens at is opened, and only for the robot."""
    bound = re.search(r"^BIND=tcp://([\d.]+):(\d+)$", POLICY_ENV.read_text(), re.MULTILINE)
    assert bound is not None
    assert bound.group(1) == "10.77.0.1"
    opened = f"sudo ufw allow from 10.77.0.2 to any port {bound.group(2)} proto tcp"
    known = {"sudo ufw default deny incoming", "sudo ufw allow OpenSSH", "sudo ufw enable", opened}
    assert " ".join(words) in known


def _zetta(words: list[str]) -> None:
    """The help of the command knows every option."""
    verbs = _verbs(shlex.join(words))
    line = [sys.executable, "-m", "zetta.runtime.cli.main", *verbs, "--help"]
    told = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    for word in words:
        if word.startswith("--"):
            assert word in told, f"{' '.join(verbs)} has no {word}"


def _one_of(*lines: str) -> Callable[[list[str]], None]:
    """Let these very lines pass, with a version or a folder where one is."""

    def check(words: list[str]) -> None:
        assert shlex.join(words) in lines

    return check


SOUND: Final[Mapping[str, Callable[[list[str]], None]]] = {
    "apt-get": _packages,
    "ufw": _firewall,
    "zetta": _zetta,
    "git": _one_of(
        "sudo git clone https://example.org/zetta.git /opt/zetta",
        "sudo git -C /opt/zetta fetch --tags",
        "sudo git -C /opt/zetta checkout v0.1.0",
    ),
    "useradd": _one_of("sudo useradd --system --home-dir /var/lib/zetta --create-home zetta"),
    "userdel": _one_of("sudo userdel --remove zetta"),
    "timedatectl": _one_of("sudo timedatectl set-ntp true"),
    "v4l2-ctl": _one_of("v4l2-ctl --list-devices"),
}
