"""`docs/deploy.md` from its first command to its last, on two computers, against the digital twin.

What a test cannot run is in `stand_ins.py` (sudo, scp, systemd, pip) or marked `by-reader` in the
guide, and then checked here in another way.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.deploy.guide import Guide, read_guide
from tests.deploy.rehearsal import AS_THEY_ARE, FOLDERS, ROOT, rehearsal
from tests.deploy.two_hosts import KINDS, Kind

GUIDE: Final = ROOT / "docs/deploy.md"


@pytest.fixture(scope="module")
def guide() -> Guide:
    return read_guide(GUIDE)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(KINDS, id="as-far-apart-as-can-be"),
        pytest.param(KINDS[-1:], id="loopback", marks=pytest.mark.slow),
    ],
)
def test_every_command_of_the_guide_does_what_it_says(
    kinds: tuple[Kind, ...], guide: Guide, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with rehearsal(tmp_path, kinds) as way:
        with capsys.disabled():
            print(f"\n[{GUIDE.name}: the two computers are {way.hosts.kind}]", flush=True)
        way.carry_out(guide)
        slowest = sorted(way.took.items(), key=lambda item: -item[1])[:5]
    assert way.done == list(guide.blocks)
    print("slowest:", ", ".join(f"line {line} {took:.1f} s" for line, took in slowest))


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


def _packages(words: list[str]) -> None:
    """Debian's own names, as the Makefile has them."""
    known = re.search(r"^DEBIAN_LIBS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert known is not None
    wanted = {word for word in words[3:] if not word.startswith("-")}
    assert wanted <= {*known.group(1).split(), "python3-venv", "git", "v4l-utils", "ufw"}


SOUND: Final[Mapping[str, Callable[[list[str]], None]]] = {
    "apt-get": _packages,
    "useradd": lambda words: None,
    "git": lambda words: None,
}
