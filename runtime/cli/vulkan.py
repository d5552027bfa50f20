"""The Vulkan device that SAPIEN draws with, and Mesa's software one where the system has none.

SAPIEN needs descriptor indexing. Debian 12 ships Mesa 22.3, whose software device lacks it; the
backports of Debian 12 have Mesa 25, whose device draws. It is unpacked into the data folder and
named to the processes that draw, through the variables that every Vulkan loader reads.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from zetta.runtime.cli import debian, output
from zetta.runtime.cli.home import data_home
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.installs import lists

FETCH: Final = "zetta sims graphics"
RELEASE: Final = debian.Release("bookworm")
PACKAGES: Final = ("libvulkan1", "mesa-vulkan-drivers", "libdrm2", "libdrm-amdgpu1")
"""What is fetched in any case: of these the system's own are too old, if it has them."""
PACKAGE_OF: Final[Mapping[str, str]] = {
    "libLLVM-15.so.1": "libllvm15",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libXau.so.6": "libxau6",
    "libXdmcp.so.6": "libxdmcp6",
    "libbsd.so.0": "libbsd0",
    "libedit.so.2": "libedit2",
    "libexpat.so.1": "libexpat1",
    "libffi.so.8": "libffi8",
    "libicudata.so.72": "libicu72",
    "libicuuc.so.72": "libicu72",
    "liblzma.so.5": "liblzma5",
    "libmd.so.0": "libmd0",
    "libstdc++.so.6": "libstdc++6",
    "libtinfo.so.6": "libtinfo6",
    "libwayland-client.so.0": "libwayland-client0",
    "libxcb-dri3.so.0": "libxcb-dri3-0",
    "libxcb-present.so.0": "libxcb-present0",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb.so.1": "libxcb1",
    "libxml2.so.2": "libxml2",
    "libxshmfence.so.1": "libxshmfence1",
    "libz.so.1": "zlib1g",
    "libz3.so.4": "libz3-4",
    "libzstd.so.1": "libzstd1",
}
"""The package of each library that Mesa's software device loads, in Debian 12."""
ROUNDS: Final = 4
"""How often libraries of libraries are looked for."""
NEEDS_MB: Final = 400
_DRIVER: Final = "libvulkan_lvp.so"
_NAMED: Final = "driver.json"
_CHOICES: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""How a Vulkan loader is told of drivers: the present name and the one before it."""


def draws_with_vulkan(sim: str) -> bool:
    """Say whether a simulator needs a Vulkan device."""
    return sim in lists.names() and lists.find(sim).draws_with == "vulkan"


def folder() -> Path:
    """Return where the fetched device lies, which need not exist."""
    return data_home().absolute() / "sims" / "vulkan"


def named_driver() -> Path:
    """Return the file through which a loader finds the fetched device."""
    return folder() / _NAMED


def variables() -> Mapping[str, str]:
    """Return what a drawing process is told, to be set beside our own variables.

    Nothing where no device was fetched, or where the user has chosen a driver.
    """
    named = named_driver()
    chosen = {os.environ.get(name, "") for name in _CHOICES} - {"", str(named)}
    if chosen or not named.exists():
        return {}
    libraries = _library_folders(folder())
    ours = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    paths = [*libraries, *(path for path in ours if path and path not in libraries)]
    return {**dict.fromkeys(_CHOICES, str(named)), "LD_LIBRARY_PATH": ":".join(paths)}


def fix() -> str:
    """Return the command that brings a device to this machine."""
    if debian.running_release() == RELEASE.name:
        return f"{FETCH} --again" if named_driver().exists() else FETCH
    return "sudo apt-get install -y libvulkan1 mesa-vulkan-drivers"


def fetch(again: bool = False) -> Path:
    """Unpack Mesa's software device into the data folder, unless it is there.

    Args:
        again: fetch it anew in any case.

    Raises:
        ConfigError: this is no Debian 12.
        InfraError: no room, the mirror cannot be reached, or a library is missing.
    """
    found, place = debian.running_release(), folder()
    if found != RELEASE.name:
        raise ConfigError(
            f"a device is fetched for Debian 12 (bookworm), this is {found or 'another system'}; "
            f"install your system's driver for Vulkan, Mesa 25 or newer, with: {fix()}"
        )
    if named_driver().exists() and not again:
        return place
    _check_room(place)
    work, root = place.with_name("vulkan.work"), place.with_name("vulkan.new")
    try:
        for old in (work, root):
            shutil.rmtree(old, ignore_errors=True)
            old.mkdir(parents=True)
        _unpack(work, root)
        _name_driver(root, place)
        shutil.rmtree(place, ignore_errors=True)
        root.rename(place)
    except OSError as error:
        raise InfraError(
            f"cannot write to {place.parent}: {error}; set XDG_DATA_HOME to a folder of yours"
        ) from error
    finally:
        for old in (work, root):
            shutil.rmtree(old, ignore_errors=True)
    return place


def missing_libraries(told: str) -> tuple[str, ...]:
    """Return the libraries that `ldd` did not find.

    >>> missing_libraries("libz.so.1 => /lib/libz.so.1 (0x1)\\n libmd.so.0 => not found")
    ('libmd.so.0',)
    """
    lines = [line.split() for line in told.splitlines() if line.rstrip().endswith("=> not found")]
    return tuple(sorted({line[0] for line in lines}))


def _unpack(work: Path, root: Path) -> None:
    with output.progress("fetching a Vulkan device", ROUNDS) as advance:
        archive = debian.Archive(work, RELEASE)
        archive.update()
        advance(1, "lists")
        archive.unpack(PACKAGES, root)
        advance(2, "driver")
        for _ in range(ROUNDS):
            missing = _missing(root)
            if not missing:
                break
            unknown = [name for name in missing if name not in PACKAGE_OF]
            if unknown:
                raise InfraError(
                    f"the driver needs {', '.join(unknown)}, which is not here and whose package "
                    "is not known; install it and try again"
                )
            archive.unpack(sorted({PACKAGE_OF[name] for name in missing}), root)
        else:
            raise InfraError(f"the driver still lacks {', '.join(_missing(root))}")
        advance(ROUNDS, "")


def _missing(root: Path) -> tuple[str, ...]:
    driver, paths = _driver(root), ":".join(_library_folders(root))
    try:
        child = subprocess.run(
            ["ldd", str(driver)],
            env={**os.environ, "LC_ALL": "C", "LD_LIBRARY_PATH": paths},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfraError(f"cannot see what {driver} needs: {error}") from error
    return missing_libraries(child.stdout)


def _library_folders(root: Path) -> tuple[str, ...]:
    """Return where unpacked packages have their libraries."""
    there = _driver(root).parent
    return str(there), str(root / "lib" / there.name)


def _driver(root: Path) -> Path:
    """Return the file of the software device.

    Raises:
        InfraError: it is not there.
    """
    found = sorted(root.glob(f"usr/lib/*/{_DRIVER}"))
    if not found:
        raise InfraError(f"{root} has no {_DRIVER}; fetch it anew with: {FETCH} --again")
    return found[0]


def _name_driver(root: Path, place: Path) -> None:
    """Write what a Vulkan loader reads; the driver's address is the one it will have."""
    (listed,) = root.glob("usr/share/vulkan/icd.d/lvp_icd*.json")
    about = json.loads(listed.read_text(encoding="utf-8"))
    about["ICD"]["library_path"] = str(place / _driver(root).relative_to(root))
    (root / _NAMED).write_text(json.dumps(about, indent=1), encoding="utf-8")


def _check_room(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    free_mb = shutil.disk_usage(place.parent).free // 10**6
    if free_mb < NEEDS_MB:
        raise InfraError(
            f"a Vulkan device needs {NEEDS_MB} MB at {place.parent}, where {free_mb} MB are free; "
            "free some room, or set XDG_DATA_HOME to a folder on another disk"
        )
