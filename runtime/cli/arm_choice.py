"""Which arm `--arm` means: a set-up file, the name of one that is kept, or an arm's address."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from zetta.hw_drivers.arm_setup import declared_setup
from zetta.runtime.cli.home import arms_folder
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.registry import ARM_PREFIX

SCHEMES: Final = ("zmq://", "tcp://")


def arm_name(text: str) -> str:
    """Return what stands in `RunSpec.sim` for the arm that is meant.

    Raises:
        ConfigError: there is no such set-up, or several declare this address.
    """
    if text.startswith(SCHEMES):
        return ARM_PREFIX + str(_declaring(text))
    path, kept = Path(text).expanduser(), arms_folder() / f"{text}.toml"
    if not path.exists() and kept.exists() and "/" not in text:
        path = kept.resolve()
    return ARM_PREFIX + str(path)


def _declaring(address: str) -> Path:
    """Return the kept set-up that declares an address; what it names lies beside the real file."""
    folder = arms_folder()
    wanted, found, urls, broken = _plain(address), [], [], []
    for path in sorted(folder.glob("*.toml")):
        try:
            url = _plain(declared_setup(path.resolve()).url)
        except ConfigError as error:
            broken.append(str(error))
            continue
        urls.append(url)
        if url == wanted:
            found.append(path.resolve())
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"{len(found)} set-ups declare {wanted}: {', '.join(p.stem for p in found)}; choose "
            "with --arm NAME"
        )
    known = f"; {suggest(wanted, urls)}" if urls else ""
    also = f" ({broken[0]})" if broken else ""
    raise ConfigError(
        f"no set-up in {folder} declares {wanted}{known}{also}; cameras, limits and tasks of an "
        f"arm stand in its set-up: name the file with --arm FILE, or keep it there once with "
        f"mkdir -p {folder} && ln -s FULL/PATH/OF/arm.toml {folder}/"
    )


def _plain(address: str) -> str:
    """Return an address as set-ups write it.

    >>> _plain("zmq://robot:5701/")
    'tcp://robot:5701'
    """
    return "tcp://" + address.partition("://")[2].rstrip("/") if address else ""
