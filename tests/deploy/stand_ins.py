"""Programs that a test cannot run as they are, and what happens in their place.

`sudo` runs the rest of its line as whoever runs the test. `scp` copies from the folder of one
computer into that of the other. `systemctl` and `journalctl` carry out unit files as systemd would:
the same command line, environment file, working folder and signals, but no users, no sandbox and no
start at boot. `python3 -m venv` gives the environment that runs the tests, whose `pip` resolves
nothing and installs nothing. What is not named here is not stood in for.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

STATE: Final = "ZETTA_TEST_STATE"
"""Folder of the computer: `root` holds its files, `units` what its services do."""
CHECKOUT: Final = "ZETTA_TEST_CHECKOUT"
STOP_WITHIN_S: Final = 60.0
RESTART_S: Final = 0.2
VALUE_OPTIONS: Final = ("-u", "-g")
"""Options of sudo that take a value."""


def sudo(words: list[str]) -> int:
    """Run the rest."""
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in VALUE_OPTIONS else words[1:]
    if words[0] == "install" and "-o" in words:  # there are no other users here
        owner = words.index("-o")
        del words[owner : owner + 2]
    os.execvp(words[0], words)


def scp(words: list[str]) -> int:
    """Copy a file to the other computer."""
    *sources, target = [word for word in words if not word.startswith("-")]
    where, colon, path = target.partition(":")
    if not colon or "@" not in where:
        raise SystemExit(f"scp: expected NAME@ADDRESS:PATH, got {target}")
    here = Path(os.environ[STATE])
    other = next(p for p in here.parent.iterdir() if p.is_dir() and p.name != here.name)
    home = other / "home"
    absolute = Path(path.replace(str(here), str(other)))
    goal = absolute if absolute.is_absolute() else home / path
    for source in sources:
        shutil.copy(source, goal)
    return 0


# ------------------------------------------------------------------------------------- systemd


def systemctl(words: list[str]) -> int:
    """Start and end services."""
    options = {word for word in words if word.startswith("-")}
    verb, *units = [word for word in words if not word.startswith("-")]
    if verb == "daemon-reload":
        return 0
    code = 0
    for unit in units:
        if verb in ("stop", "restart") or (verb == "disable" and "--now" in options):
            _stop(unit)
        if verb in ("start", "restart") or (verb == "enable" and "--now" in options):
            _start(unit)
        if verb in ("is-active", "status"):
            word = _standing(unit)
            print(word if verb == "is-active" else f"{unit}: Active: {word}")
            code = code or (0 if word == "active" else 3)
        if verb == "kill":
            signal_name = next((o.partition("=")[2] for o in options if "=" in o), "SIGTERM")
            os.kill(_pid(unit, "main"), signal.Signals[signal_name])
    return code


def journalctl(words: list[str]) -> int:
    """Show what a service printed."""
    unit = words[words.index("-u") + 1]
    count = int(words[words.index("-n") + 1]) if "-n" in words else 1000
    log = _folder(unit) / "log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    print("\n".join(lines[-count:]))
    return 0


def supervise(words: list[str]) -> int:
    """Run a service, and again after it failed, as its unit says."""
    (unit,) = words
    service = _service(unit)
    folder = _folder(unit)
    ending: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def end(number: int, frame: object) -> None:
        del frame
        ending.append(number)
        for process in child:
            process.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    (folder / "supervisor").write_text(f"{os.getpid()}")
    while True:
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                _command_line(service), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env=_environment(service), cwd=service.get("WorkingDirectory", "/"),
            )  # fmt: skip
        child[:] = [process]
        if ending:
            process.send_signal(signal.SIGTERM)
        (folder / "main").write_text(f"{process.pid}")
        code = process.wait()
        failed = code != 0 and f"{code}" not in service.get("RestartPreventExitStatus", "").split()
        again = service.get("Restart") == "on-failure" and failed and not ending
        if not again:
            break
        time.sleep(RESTART_S)
    (folder / "ended").write_text(f"{code}")
    return 0


def _start(unit: str) -> None:
    if _standing(unit) == "active":
        return
    folder = _folder(unit)
    (folder / "ended").unlink(missing_ok=True)
    (folder / "main").unlink(missing_ok=True)
    with (folder / "log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-I", __file__, "supervise", unit],
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    _wait(lambda: (folder / "main").exists() or (folder / "ended").exists(), f"{unit} to start")


def _stop(unit: str) -> None:
    if _standing(unit) != "active":
        return
    os.kill(_pid(unit, "supervisor"), signal.SIGTERM)
    _wait(lambda: (_folder(unit) / "ended").exists(), f"{unit} to end")


def _standing(unit: str) -> str:
    folder = _folder(unit)
    if (folder / "ended").exists():
        return "inactive" if (folder / "ended").read_text() == "0" else "failed"
    return "active" if (folder / "main").exists() else "inactive"


def _wait(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + STOP_WITHIN_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"systemctl: waited {STOP_WITHIN_S:g} s for {what}")
        time.sleep(0.02)


def _pid(unit: str, name: str) -> int:
    return int((_folder(unit) / name).read_text())


def _folder(unit: str) -> Path:
    folder = Path(os.environ[STATE]) / "units" / unit.removesuffix(".service")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _service(unit: str) -> dict[str, str]:
    """Return the last value of each entry of `[Service]`."""
    name = unit.removesuffix(".service")
    file = Path(os.environ[STATE]) / "etc/systemd/system" / f"{name}.service"
    if not file.exists():
        raise SystemExit(f"Failed to start {name}.service: Unit {name}.service not found.")
    found: dict[str, str] = {}
    section = ""
    for line in file.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if line.startswith("["):
            section = line.strip("[] \n")
        elif section == "Service" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[key.strip()] = value.strip()
    return found


def _environment(service: Mapping[str, str]) -> dict[str, str]:
    found = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    if "EnvironmentFile" in service:
        for line in Path(service["EnvironmentFile"]).read_text(encoding="utf-8").splitlines():
            if "=" in line and not line.startswith("#"):
                key, _, value = line.partition("=")
                found[key.strip()] = value.strip().strip('"')
    return found


def _command_line(service: Mapping[str, str]) -> list[str]:
    known = _environment(service)
    words = shlex.split(service["ExecStart"])
    return [
        known[word[2:-1]] if word.startswith("${") and word.endswith("}") else word
        for word in words
    ]


# ------------------------------------------------------------------------------------- packages


def python3(words: list[str]) -> int:
    """Give the environment of the tests for a new one; anything else is Python."""
    if words[:2] != ["-m", "venv"]:
        os.execv(sys.executable, [sys.executable, *words])
    programs = Path(words[2]) / "bin"
    programs.mkdir(parents=True)
    run = f"PYTHONPATH={os.environ[CHECKOUT]}/.namespace exec {sys.executable} -P"
    script(programs / "zetta", f'{run} -m zetta.runtime.cli.main "$@"')
    script(programs / "python", f'exec {sys.executable} "$@"')
    script(programs / "pip", f'exec {sys.executable} -I {__file__} pip "$@"')
    return 0


def pip(words: list[str]) -> int:
    """Check what would be installed: that it is Zetta, and that its extras are there."""
    verb, *wanted = words
    if verb != "install":
        raise SystemExit(f"pip: nothing stands in for pip {verb}")
    import tomllib

    project = tomllib.loads((Path(os.environ[CHECKOUT]) / "pyproject.toml").read_text())["project"]
    for word in wanted:
        if word.startswith("-"):
            continue
        path, _, extras = word.rstrip("]").partition("[")
        if not (Path(path) / "pyproject.toml").exists():
            raise SystemExit(f"ERROR: Directory {path!r} is not installable.")
        for extra in filter(None, extras.split(",")):
            for needed in project["optional-dependencies"][extra]:
                _check_there(needed)
    print("Successfully installed zetta")
    return 0


def _check_there(needed: str) -> None:
    from importlib.metadata import version

    from packaging.requirements import Requirement

    wanted = Requirement(needed)
    if not wanted.specifier.contains(version(wanted.name), prereleases=True):
        raise SystemExit(f"ERROR: {version(wanted.name)} of {wanted.name} is not {needed}")


def script(path: Path, line: str) -> None:
    """Write a shell script of one line."""
    path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


PROGRAMS: Final[Mapping[str, Callable[[list[str]], int]]] = {
    "sudo": sudo,
    "scp": scp,
    "systemctl": systemctl,
    "journalctl": journalctl,
    "python3": python3,
}
INNER: Final[Mapping[str, Callable[[list[str]], int]]] = {"supervise": supervise, "pip": pip}


def main() -> int:
    """Stand in for the program that is named first."""
    return {**PROGRAMS, **INNER}[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
