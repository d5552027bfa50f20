"""Carries a guide out: each block on its computer, in order, with what it should print."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.deploy import ports, stand_ins
from tests.deploy.guide import CABLE, HOSTS, Block, Guide, GuideError, missing, substituted
from tests.deploy.two_hosts import KINDS, Ended, Kind, TwoHosts, two_hosts

ROOT: Final = Path(__file__).parents[2]
ADDRESSES: Final[Mapping[Kind, Mapping[str, str]]] = {
    "namespaces": {"gpu": "10.77.0.1", "robot": "10.77.0.2"},
    "user namespaces": {"gpu": "10.77.0.1", "robot": "10.77.0.2"},
    # Every address of 127.0.0.0/8 is this machine; these are nobody else's.
    "loopback": {"gpu": "127.77.0.1", "robot": "127.77.0.2"},
}
OWN_LOOPBACK: Final = "127.0.0.1"
FOLDERS: Final = ("/opt/zetta", "/etc/zetta", "/var/lib/zetta")
"""Places of the guide that are folders; each computer of the test has its own."""
SYSTEM_FOLDERS: Final = ("/etc/systemd/system", "/usr/local/bin")
"""Folders that nobody chooses."""
AS_THEY_ARE: Final = ("ada", "https://example.org/zetta.git")
"""Places that mean nothing to the stand-ins."""
BLOCK_WITHIN_S: Final = 180.0
AGAIN_WITHIN_S: Final = 60.0
AGAIN_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Computer:
    """One computer of the test: a folder that holds its files."""

    name: str
    folder: Path
    places: Mapping[str, str]
    """What stands for the names of the guide."""

    @property
    def home(self) -> Path:
        """Return the home of the person who types."""
        return self.folder / "home"

    def environment(self) -> dict[str, str]:
        """Return what a shell of this computer knows."""
        programs = [f"{self.folder}/stand-ins", f"{self.folder}/usr/local/bin"]
        return {
            "PATH": ":".join([*programs, "/usr/local/sbin", "/usr/sbin", "/usr/bin", "/bin"]),
            "HOME": str(self.home),
            "USER": "ada",
            "LOGNAME": "ada",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "default",
            stand_ins.STATE: str(self.folder),
            stand_ins.CHECKOUT: str(ROOT),
        }


def computer(name: str, site: Path, hosts: TwoHosts) -> Computer:
    """Make a computer that has nothing but its system, with stand-ins for what no test can run."""
    folder = site / name
    places = {place: f"{folder}{place}" for place in (*FOLDERS, *SYSTEM_FOLDERS)}
    usual = ADDRESSES["namespaces"]
    places |= {usual[host]: hosts.addresses[host] for host in HOSTS}
    if hosts.kind == "loopback":
        places[OWN_LOOPBACK] = hosts.addresses[name]
    made = Computer(name, folder, places)
    for path in (*SYSTEM_FOLDERS, "/etc", "/opt", "/var/lib", "/home", "/stand-ins"):
        (folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for program in stand_ins.PROGRAMS:
        line = f'exec {sys.executable} -I {stand_ins.__file__} {program} "$@"'
        stand_ins.script(folder / "stand-ins" / program, line)
    return made


def clone(made: Computer) -> None:
    """Put the checkout where `git clone` would; its shipped files name the test's places."""
    there = made.folder / "opt/zetta"
    shutil.copytree(ROOT / "docs/deploy", there / "docs/deploy")
    for path in (there / "docs/deploy").rglob("*"):
        if path.is_file() and path.suffix in (".toml", ".service", ".env", ".md"):
            path.write_text(substituted(path.read_text(encoding="utf-8"), made.places))
    for name in ("pyproject.toml", "hw_drivers", "skills"):
        (there / name).symlink_to(ROOT / name)


def _by_hand(command: str, where: Computer) -> None:
    """Leave behind what a command leaves that only a reader can run."""
    match command.split()[:3]:
        case ["sudo", "git", "clone"]:
            clone(where)
        case ["sudo", "useradd", *_]:
            (where.folder / "var/lib/zetta").mkdir()


class Rehearsal:
    """A guide on its way; see `rehearsal`."""

    def __init__(self, hosts: TwoHosts, computers: Mapping[str, Computer]) -> None:
        """Begin with nothing done."""
        self.hosts, self.computers = hosts, computers
        self.done: list[Block] = []
        self.took: dict[int, float] = {}
        self.listened: dict[str, set[tuple[str, int]]] = {name: set() for name in computers}
        """Address and port of what was listened at on each computer, at any time."""
        self._waiting: dict[str, Block] = {}
        self._folders: dict[str, Path] = {}
        """Where the first terminal of each computer is, as its reader's would be."""

    def carry_out(self, guide: Guide, slow: bool = True) -> None:
        """Carry out every block that a test can carry out.

        Args:
            guide: what to do.
            slow: also what is marked so.

        Raises:
            GuideError: one failed, or printed something else.
        """
        for block in guide.blocks:
            if block.slow and not slow:
                continue
            if not block.by_reader:
                began = time.monotonic()
                self._carry_out(block)
                self.took[block.line] = time.monotonic() - began
                self._see_ports()
            else:
                for command in block.commands:
                    _by_hand(command, self.computers[block.host])
            self.done.append(block)
        if self._waiting:
            (name, block), *_ = self._waiting.items()
            raise GuideError(f"line {block.line}: nothing waits for the terminal {name!r}")

    def _carry_out(self, block: Block) -> None:
        if block.host == CABLE:
            self._cable("plugged" in block.marks)
            return
        if not block.host:
            self._second_terminal(block)
            return
        where = self.computers[block.host]
        script = substituted(block.text, where.places)
        if block.terminal:
            self._waiting[block.terminal] = block
            environment = where.environment()
            self.hosts.start(block.host, script, where.home, environment, block.terminal)
            return
        folder = self._folders.get(block.host, where.home)
        noted = f"trap 'pwd > {where.folder}/here' EXIT\n{script}"
        deadline = time.monotonic() + AGAIN_WITHIN_S
        while True:
            ended = self.hosts.run(block.host, noted, folder, where.environment(), BLOCK_WITHIN_S)
            wrong = self._wrong(block, ended)
            if not wrong:
                self._folders[block.host] = Path((where.folder / "here").read_text().strip())
                return
            if not block.waits or time.monotonic() > deadline:
                raise GuideError(f"{wrong}\n{self._story(block, script, ended)}")
            time.sleep(AGAIN_EVERY_S)

    def _second_terminal(self, block: Block) -> None:
        """Wait for the end of what was begun in a second terminal."""
        begun = self._waiting.pop(block.terminal, None)
        if begun is None:
            raise GuideError(f"line {block.line}: nothing runs in the terminal {block.terminal!r}")
        ended = self.hosts.wait(block.terminal, BLOCK_WITHIN_S, block.interrupts)
        marks = (*block.marks, *begun.marks)
        wrong = self._wrong(replace(block, host=begun.host, marks=marks), ended)
        if wrong:
            raise GuideError(f"{wrong}\n{self._story(begun, begun.text, ended)}")

    def _see_ports(self) -> None:
        for name, where in self.computers.items():
            table = self.hosts.run(name, ports.SCRIPT, where.folder, where.environment()).said
            self.listened[name] |= ports.listening(table)

    def _cable(self, plugged: bool) -> None:
        """Pull the cable or plug it in; where there is none, freeze what it leads to."""
        if self.hosts.cable(plugged):
            return
        where = self.computers["gpu"]
        how = "SIGCONT" if plugged else "SIGSTOP"
        freeze = f"systemctl kill --signal={how} zetta-policy"
        self.hosts.run("gpu", freeze, where.home, where.environment())

    def _wrong(self, block: Block, ended: Ended) -> str:
        where = self.computers[block.host]
        if ended.late:
            return f"line {block.line}: it did not end within {BLOCK_WITHIN_S:g} s"
        if ended.code != block.exit_code:
            return f"line {block.line}: exit code {ended.code}, expected {block.exit_code}"
        expected = tuple(substituted(line, where.places) for line in block.expected)
        line = missing(expected, ended.said)
        return f"line {block.line}: it did not print {line!r} in its turn" if line else ""

    def _story(self, block: Block, script: str, ended: Ended) -> str:
        """Return what whoever mends the guide wants to see."""
        logs = [
            f"--- {log.relative_to(where.folder.parent)}\n{_tail(log)}"
            for where in self.computers.values()
            for log in sorted((where.folder / "units").glob("*/log"))
        ]
        return "\n".join([f"--- on {block.host}", script, "--- printed", ended.said, *logs])


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(list(dict.fromkeys(lines))[-10:])  # a service that fails again says so again


@contextmanager
def rehearsal(site: Path, kinds: tuple[Kind, ...] = KINDS) -> Iterator[Rehearsal]:
    """Give two fresh computers, of the best kind that the machine allows.

    Raises:
        NoSuchHosts: none of the kinds.
    """
    with two_hosts(kinds, ADDRESSES) as hosts:
        yield Rehearsal(hosts, {name: computer(name, site, hosts) for name in HOSTS})
