"""`zetta arms list`: which arms this installation can drive, and which of those declared answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from zetta.hw_drivers.arm_limits import shipped_limits
from zetta.hw_drivers.arm_person import hello
from zetta.hw_drivers.arm_setup import read_setup
from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli.arms_options import AsJson, Keys, client_keys
from zetta.runtime.curve_keys import ClientKeys
from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.transport import Dealer

BUILT_IN: Final[Mapping[str, tuple[str, tuple[str, ...], str]]] = {
    "simple": ("an arm of pure numpy, no robot", (), ""),
    "deoxys:": ("a Franka behind deoxys: deoxys:PC,NUC", ("google.protobuf",), "arms"),
    "lekiwi:": ("LeRobot's LeKiwi, SO-100, SO-101 behind its host: lekiwi:FILE", (), ""),
    "lerobot:": ("an arm of LeRobot on this computer: lerobot:FILE", ("lerobot",), ""),
    "twin:": ("a Panda that is not there, with physics and cameras", ("mujoco",), "drive"),
    "python:": ("your own: python:MODULE:FACTORY", (), ""),
}
"""Driver, what it is, the packages that it needs, and the extra that brings them."""
ANSWER_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class DriverState:
    """Whether a driver can be served here."""

    name: str
    state: Literal["ready", "missing"]
    said: str
    fix: str = ""
    """The command that makes it ready; empty when it is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a declared arm said of itself."""

    where: str
    """The URL, or the set-up that declares it."""
    url: str
    robot: str = ""
    model: str = ""
    trouble: str = ""
    """Why it does not answer; empty if it does."""


def command(
    urls: Annotated[list[str] | None, typer.Argument(help="Command sockets to ask.")] = None,
    setup_dir: Annotated[
        Path | None, typer.Option(help="Folder of set-ups (TOML); each with a url is asked.")
    ] = None,
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """List drivers and limits; with URLs or --setup-dir also which arms answer. Nothing moves."""
    drivers = tuple(_driver(name) for name in sorted({"simple", "twin:", *registry.names("arms")}))
    answers = answers_of(_asked(urls or [], setup_dir, client_keys(keys)))
    if as_json:
        _emit(drivers, answers)
        return
    rows = [[d.name, d.state, d.fix or d.said] for d in drivers]
    output.answer(output.table(["driver", "state", "what"], rows))
    output.answer(f"limits that come with zetta: {', '.join(shipped_limits())}")
    if answers:
        told = [[a.where, a.trouble or f"{a.robot} ({a.model}) at {a.url}"] for a in answers]
        output.answer(output.table(["arm", "answer"], told))


def answers_of(asked: list[Callable[[], Answer]]) -> list[Answer]:
    """Ask everybody at once; who is silent costs the others nothing."""
    answers: list[Answer | None] = [None] * len(asked)

    def ask(index: int) -> None:
        answers[index] = asked[index]()

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answer for answer in answers if answer is not None]


def _asked(
    urls: list[str], folder: Path | None, keys: ClientKeys | None
) -> list[Callable[[], Answer]]:
    asked: list[Callable[[], Answer]] = [partial(_answer, url, url, keys) for url in urls]
    if folder is None:
        return asked
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}")
    for path in sorted(folder.glob("*.toml")):
        asked.append(partial(_declared, path, keys))
    return asked


def _declared(path: Path, keys: ClientKeys | None) -> Answer:
    try:
        setup = read_setup(path)
        if not setup.url:
            return Answer(path.name, "", trouble="declares no url")
        own = keys if keys is not None or not setup.keys else client_keys(Path(setup.keys))
    except ConfigError as error:
        return Answer(path.name, "", trouble=str(error))
    return _answer(path.name, setup.url, own, setup.robot)


def _answer(where: str, url: str, keys: ClientKeys | None, robot: str = "") -> Answer:
    try:
        dealer = Dealer(url, keys)
        try:
            arm = hello(dealer, robot, ANSWER_S).arm
        finally:
            dealer.close()
    except ZettaError as error:
        return Answer(where, url, trouble=str(error))
    return Answer(where, url, arm.robot, arm.model)


def _driver(name: str) -> DriverState:
    said, packages, extra = BUILT_IN.get(name, ("installed by a package (zetta.arms)", (), ""))
    if all(_found(package) for package in packages):
        return DriverState(name, "ready", said)
    what = f"'zetta[{extra}]'" if extra else " ".join(packages)
    return DriverState(name, "missing", said, f"pip install {what}")


def _found(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of `google.protobuf` not even `google` is there
        return False


def _emit(drivers: tuple[DriverState, ...], answers: list[Answer]) -> None:
    output.emit(
        {
            "drivers": [
                {"name": d.name, "state": d.state, "what": d.said, "fix": d.fix or None}
                for d in drivers
            ],
            "limits": list(shipped_limits()),
            "arms": [
                {
                    "arm": a.where,
                    "url": a.url or None,
                    "answers": not a.trouble,
                    "robot": a.robot or None,
                    "model": a.model or None,
                    "said": a.trouble or None,
                }
                for a in answers
            ],
        }
    )
