"""What a simulator's own interpreter can say about itself: `main` prints one JSON object.

Run by `zetta sims check` in the environment of the simulator, where nothing but its packages and
this source tree is there.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def wrong_packages(pinned: str) -> str:
    """Return what of a list `NAME==VERSION,…` is not as pinned; empty when all is."""
    wrong = []
    for requirement in pinned.split(","):
        name, _, wanted = requirement.partition("==")
        try:
            found = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        if found != wanted:
            wrong.append(f"{name} is {found} instead of {wanted}")
    return ", ".join(wrong)


def failed_import(module: str) -> str:
    """Return why a module cannot be imported; empty when it can."""
    try:
        import_module(module)
    except (ImportError, OSError, AttributeError) as error:
        return f"{module} cannot be imported: {error}"
    return ""


def missing_assets(path: str) -> str:
    """Return which folders of `MODULE:FOLDER,FOLDER` the module lacks, or has without a file."""
    module, _, folders = path.partition(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return f"{module} is missing"
    root = Path(spec.origin).parent
    empty = [f for f in folders.split(",") if not any((root / f).glob("*"))]
    return f"{root} lacks {', '.join(empty)}" if empty else ""


def missing_device(module: str) -> str:
    """Return why `module`, which is SAPIEN, can draw on no Vulkan device; empty when it can."""
    try:
        device_name(module)
    except (ImportError, OSError, RuntimeError) as error:
        return f"no Vulkan device that {module} can draw with: {error}"
    return ""


def device_name(module: str) -> str:
    """Return the name of the Vulkan device that `module`, which is SAPIEN, draws with."""
    return str(import_module(module).render.RenderSystem().device.name)


def refused_argument(path: str) -> str:
    """Return why the class of `MODULE:CLASS:ARGUMENT` does not take the argument; empty if so."""
    module, name, argument = path.split(":")
    failed = failed_import(module)
    if failed:
        return failed
    made = getattr(import_module(module), name)
    if argument in inspect.signature(made).parameters:
        return ""
    package = module.partition(".")[0]
    return (
        f"{name} of {package} does not take {argument}: another {package} lies over the one needed"
    )


PROBES: Mapping[str, Callable[[str], str]] = {
    "packages": wrong_packages,
    "import": failed_import,
    "assets": missing_assets,
    "vulkan": missing_device,
    "accepts": refused_argument,
}
DETAILS: Mapping[str, Callable[[str], str]] = {"vulkan": device_name}
"""What a probe that found nothing wrong has to tell."""


def main() -> None:
    """Carry out the probe of the command line: its name, then what it is asked."""
    ours, sys.stdout = sys.stdout, sys.stderr  # a package may print while it is imported
    name, asked = sys.argv[1:3]
    wrong = PROBES[name](asked)
    detail = DETAILS[name](asked) if name in DETAILS and not wrong else ""
    ours.write(json.dumps({"wrong": wrong, "detail": detail}) + "\n")
    ours.flush()
