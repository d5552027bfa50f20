"""What a shell completes beside verbs and options: the values of options and arguments.

Nothing here imports an engine: names come from registries, folders and lists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

from zetta.runtime.errors import ConfigError, ZettaError

VARIABLE: Final = "_ZETTA_COMPLETE"
"""Set by the scripts of shells; Typer's own, for a program called zetta."""
SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")

Given: TypeAlias = Mapping[str, Any]
"""What was typed before, by parameter."""
Values: TypeAlias = Callable[[Given], Iterable[str]]


def asked() -> bool:
    """Return whether a shell asks for completions."""
    return bool(os.environ.get(VARIABLE))


def answer(root: Any) -> None:
    """Tell the shell that asks what may stand there, and leave."""
    from typer._completion_classes import completion_init

    completion_init()
    root.main(args=[], prog_name="zetta")


def script(shell: str | None, install: bool) -> str:
    """Return the script for a shell, or install it and return where it lies.

    Args:
        shell: its name; None for the one from which this is called.
        install: write it where the shell finds it.

    Raises:
        ConfigError: an unknown shell, or none can be told.
    """
    from typer._completion_shared import _get_shell_name, get_completion_script
    from typer._completion_shared import install as install_script

    found = shell or _get_shell_name()
    if found not in SHELLS:
        said = "cannot tell which shell this is" if shell is None else f"unknown shell {shell!r}"
        raise ConfigError(f"{said}; name one of {', '.join(SHELLS)}")
    if install:
        _, place = install_script(found, "zetta", VARIABLE)
        return f"completion for {found} is in {place}; it works in the next shell that you open"
    return get_completion_script(prog_name="zetta", complete_var=VARIABLE, shell=found)


def complete_values(command: Any) -> None:
    """Let the parameters of a command, and of its commands, know their values."""
    for each in getattr(command, "commands", {}).values():
        complete_values(each)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            values = ARGUMENTS.get((command.name or "", parameter.name)) or ARGUMENTS.get(
                ("", parameter.name)
            )
        else:
            values = next((OPTIONS[o] for o in parameter.opts if o in OPTIONS), None)
        if values is not None:
            listed = any(o in LISTS for o in parameter.opts)
            parameter._custom_shell_complete = partial(_complete, values, listed)


def _complete(values: Values, listed: bool, context: Any, _: Any, incomplete: str) -> list[str]:
    """Return what may stand there; a shell shows nothing rather than an error."""
    head, comma, tail = incomplete.rpartition(",") if listed else ("", "", incomplete)
    try:
        found = sorted(set(values(context.params)))
    except (ZettaError, OSError, ImportError):
        return []
    return [f"{head}{comma}{each}" for each in found if each.startswith(tail)]


# ------------------------------------------------------------------------------------- values


def sims(_: Given) -> Iterable[str]:
    """Return the simulators."""
    from zetta.runtime import registry

    return registry.names("sims")


def suites(given: Given) -> Iterable[str]:
    """Return the suites of the simulator that was named."""
    return _suites(_sim(given))


def tasks(given: Given) -> Iterable[str]:
    """Return the numbers of a suite's tasks, and their names where they have some."""
    sim = _sim(given)
    known = _suites(sim)
    wanted = given.get("suite") or (given.get("suites") or "").partition(",")[0]
    if not wanted:
        from zetta.runtime.cli.run_plan import DEFAULTS

        wanted = DEFAULTS[sim].suite if sim in DEFAULTS else next(iter(known), "")
    return ("all", *(f"{i}" for i in range(known.get(wanted, 0))), *_task_names(sim, wanted))


def policies(_: Given) -> Iterable[str]:
    """Return the policies; of schemes, what stands before their colon."""
    from zetta.runtime import registry

    return ("oracle/expert", *registry.names("policies"))


def bundles(given: Given) -> Iterable[str]:
    """Return what can be deployed by name."""
    return ("none", "starter", "library", *skills(given))


def skills(given: Given) -> Iterable[str]:
    """Return the skills that ship, those of named folders, and those of the user's library."""
    from zetta.runtime.cli.home import home_library

    folders = [Path(__file__).parents[2] / "skills" / "library"]
    own = given.get("skills")
    folders += [Path(each) for each in own] if isinstance(own, (list, tuple)) else []
    versions = home_library() / "versions"
    folders += sorted(versions.iterdir()) if versions.is_dir() else []
    return (page.parent.name for folder in folders for page in folder.glob("*/SKILL.md"))


def levels(_: Given) -> Iterable[str]:
    """Return the sensing levels."""
    from zetta.runtime.core import SENSING_LEVELS  # late: every start of zetta imports this module

    return SENSING_LEVELS


def wishes(_: Given) -> Iterable[str]:
    """Return what `--option` takes."""
    from zetta.runtime.cli.options import OPTIONS as KNOWN

    return (f"{name}=" for name in KNOWN)


def _fixed(*words: str) -> Values:
    return lambda _: words


def _listed(module_name: str, name: str) -> Values:
    """Return the words of a list that a module of this folder has."""
    return lambda _: tuple(getattr(import_module(f"zetta.runtime.cli.{module_name}"), name))


def _sim(given: Given) -> str:
    return str(given.get("sim") or given.get("name") or "libero")


def _suites(sim: str) -> Mapping[str, int]:
    """Return suites and their number of tasks; LIBERO's from its folders, for it is slow."""
    from zetta.runtime import registry

    if sim != "libero":
        return registry.simulator(sim).suites()
    package = find_spec("libero")
    if package is None or package.origin is None:
        return {}
    inside = Path(package.origin).parent / "libero"
    states = {folder.name for folder in (inside / "init_files").iterdir()}
    return {
        folder.name: len(list(folder.glob("*.bddl")))
        for folder in (inside / "bddl_files").iterdir()
        if folder.name in states
    }


def _task_names(sim: str, suite: str) -> Sequence[str]:
    from zetta.runtime import registry

    lists = getattr(registry.simulator(sim), "tasks", None)
    if lists is None:  # its tasks have numbers only
        return ()
    found = (lists.find(suite, index) for index in range(lists.counts().get(suite, 0)))
    return tuple(each if isinstance(each, str) else each.name for each in found)


LISTS: Final = ("--suites", "--tasks", "--arms", "--policies")
"""Options that take several values, with commas between."""

OPTIONS: Final[Mapping[str, Values]] = {
    "--sim": sims,
    "--suite": suites,
    "--suites": suites,
    "--task": tasks,
    "--tasks": tasks,
    "--init": _fixed("sampled", "0"),
    "--layout": _fixed("init", "sampled"),
    "--policy": policies,
    "--policies": policies,
    "--bundle": bundles,
    "--arms": bundles,
    "--skill": skills,
    "--sensing": levels,
    "--render": _fixed("fast", "full"),
    "--localizer": _fixed("tiny", "geometry", "openvocab:"),
    "--critic-isolation": _listed("deploy", "ISOLATIONS"),
    "--inference": _listed("options", "INFERENCE"),
    "--launch": _listed("launching", "LAUNCHES"),
    "--agent": _fixed("scripted", "human", "replay:", "openai:", "anthropic:"),
    "--overlays": _fixed("all", "none", "grid", "cross", "marks"),
    "--steps": _fixed("published", "unlimited"),
    "--author": _fixed("search", "llm", "human", "sham"),
    "--door": _listed("serve", "DOORS"),
    "--generation": _fixed("n1.5", "n1.6"),
    "--expect": _fixed("fires", "silent", "disarmed"),
    "--option": wishes,
    "--twin": _fixed("panda"),
}
"""Option, wherever it occurs, and its values; paths are completed by the shell."""

ARGUMENTS: Final[Mapping[tuple[str, str], Values]] = {
    ("install", "name"): sims,
    ("check", "name"): sims,
    ("assets", "name"): sims,
    ("remove", "name"): sims,
    ("show", "name"): skills,
    ("cut", "name"): skills,
    ("sign", "name"): skills,
    ("", "skill"): skills,
    ("check", "wanted"): skills,
    ("test", "wanted"): skills,
    ("promote", "wanted"): skills,
    ("distill", "wanted"): bundles,
    ("prune", "bundle"): bundles,
    ("train", "variant"): _fixed("tiny", "tiny-shuffled", "localizer"),
    ("bench", "names"): _listed("bench", "BENCHMARKS"),
}
"""Command and argument; an empty command stands for any."""
