"""The `zetta` command: finds the verb, imports only that verb, turns errors into one line.

A verb is a module of this folder. It exposes either `command`, an undecorated function whose
parameters are typer options, or `app`, a `typer.Typer` with sub-commands. Nothing else is imported
before the verb is known, so `zetta --help` is instant and a broken verb breaks only itself.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from zetta.runtime.cli import output
from zetta.runtime.errors import ConfigError, ZettaError, suggest

VERBS: Final[Mapping[str, str]] = {
    "run": "run episodes and watch them",
    "eval": "measure success on paired scenes, with intervals",
    "replay": "draw a logged episode again, or ask what a skill would have made of it",
    "export": "write logged episodes as a data set: LeRobot, Parquet, npz",
    "report": "write a run, an evaluation or a campaign as one page, or as PDF",
    "dashboard": "look at runs in a browser, while they run and afterwards",
    "train": "train an embedded model from nothing",
    "serve": "put a policy behind a socket, for other processes and machines",
    "drive": "let an agent drive through semantic commands: script, person, model",
    "mcp": "let an agentic client drive, through the Model Context Protocol",
    "sims": "list simulators and how to install them",
    "arms": "serve an arm, look at it, stop it, clear a stop, send a camera",
    "evolve": "turn failures into skills, through an honest gate",
    "critics": "list, check, replay and calibrate critics",
    "skills": "make, check and sign skills; keep, try and carry a library of them",
    "bench": "measure speed against a baseline",
    "doctor": "say what is missing and the line that fixes it",
}
"""Verb and what it does for the user, in the order of the help; each lives in `<verb>.py`."""

TOP_OPTIONS: Final = ("--help", "--version", "--show-completion", "--install-completion")

EXIT_ERROR, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

EXTRA_OF_PACKAGE: Final[Mapping[str, str]] = {
    "libero": "libero",
    "robosuite": "libero",
    "mujoco": "libero",
    "fast_simplification": "libero",
    "torch": "train",
    "onnx": "train",
    "onnxscript": "train",
    "sklearn": "evolve",
    "prometheus_client": "serve",
    "mink": "drive",
    "daqp": "drive",
    "prompt_toolkit": "drive",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "starlette": "dashboard",
    "cv2": "cameras",
    "jinja2": "report",
    "matplotlib": "report",
    "uvicorn": "dashboard",
    "sse_starlette": "dashboard",
    "rerun": "rerun",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run one verb and leave the process with its exit code.

    Exit codes: 0 the job was carried out (whatever its score), 1 an error, 2 wrong usage,
    130 interrupted.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    output.remember_command(args)
    debug = "--debug" in args
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good
    if sys.stdout is None:
        output.note("error: stdout is closed and the answer goes there; give it a place")
        sys.exit(EXIT_ERROR)
    args = [a for a in args if a != "--debug"]
    # Help is for people, and so is there no object of it.
    as_json = "--json" in args and "--help" not in args
    try:
        with output.reserved_stdout(as_json):
            code = _guarded(args, debug)
    finally:
        output.release_folders()
    sys.exit(code)


def _guarded(args: Sequence[str], debug: bool) -> int:
    """Run the verb; every way of failing becomes one line on stderr and an exit code."""
    try:
        code = _dispatch(args)
        return _interrupted() if code == EXIT_INTERRUPTED else code
    except KeyboardInterrupt:
        return _interrupted()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
        return _interrupted() if code == EXIT_INTERRUPTED else code
    except ZettaError as error:
        return _failed(error, str(error), debug)
    except ModuleNotFoundError as error:
        return _failed(error, _missing_package(error), debug)
    except Exception as error:  # the boundary of the program: nothing is above it
        reason = f"unexpected {type(error).__name__}: {error}"
        return _failed(error, f"{reason} (run again with --debug to see where)", debug)


def _interrupted() -> int:
    output.note("interrupted")
    output.emit_failure("Interrupted", "interrupted")
    return EXIT_INTERRUPTED


def _failed(error: BaseException, message: str, debug: bool) -> int:
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    line = " ".join(message.split())
    output.note(f"error: {line}")
    output.emit_failure(type(error).__name__, line)
    return EXIT_ERROR


def _missing_package(error: ModuleNotFoundError) -> str:
    package = (error.name or "").partition(".")[0]
    extra = EXTRA_OF_PACKAGE.get(package)
    what = f"zetta[{extra}]" if extra else package
    return f"this needs the package {package!r}, which is not installed; pip install '{what}'"


def _dispatch(args: Sequence[str]) -> int:
    from zetta.runtime.cli import completion

    if completion.asked():
        return _complete()
    verb, rest = (args[0] if args else "--help"), [a for a in args[1:] if a != "--json"]
    if verb in ("--help", "-h"):
        output.answer(_help())
        return 0
    if verb == "--version":
        _tell("version", _version(), f"zetta {_version()}")
        return 0
    if verb in ("--show-completion", "--install-completion"):
        said = completion.script(rest[0] if rest else None, verb == "--install-completion")
        _tell("completion", said, said)
        return 0
    if verb not in VERBS:
        kind = "option" if verb.startswith("-") else "verb"
        known = TOP_OPTIONS if kind == "option" else present_verbs()
        return _wrong_usage(f"unknown {kind} {verb!r}; {suggest(verb, known)}")
    return _run_verb(verb, args[1:])


def _tell(name: str, value: str, text: str) -> None:
    if "--json" in output.typed():
        output.emit({name: value})
    else:
        output.answer(text)


def _wrong_usage(message: str) -> int:
    output.note(f"error: {message}")
    output.emit_failure("UsageError", message)
    return EXIT_USAGE


def _complete() -> int:
    """Answer the shell that asks for completions."""
    from zetta.runtime.cli import completion
    from zetta.runtime.cli.tree import Root

    completion.answer(Root({verb: VERBS[verb] for verb in present_verbs()}, TOP_OPTIONS))
    return 0


def _run_verb(verb: str, args: Sequence[str]) -> int:
    if verb not in present_verbs():
        raise ConfigError(
            f"the verb {verb!r} is not part of this installation; "
            f"present: {', '.join(present_verbs())}"
        )
    import typer  # costs 0.1 s: only once a verb is wanted

    from zetta.runtime.cli.tree import USAGE_ERROR, load

    command = load(verb, verb, VERBS[verb])
    try:
        code = command.main(args=list(args), prog_name=f"zetta {verb}", standalone_mode=False)
    except typer.Abort:
        return _failed(typer.Abort(), "aborted", debug=False)
    except USAGE_ERROR as error:
        return _misused(error)
    return code if isinstance(code, int) else 0


def _misused(error: Any) -> int:
    """Say what was wrong about the way in which a verb was called."""
    error.show()
    output.emit_failure("UsageError", " ".join(error.format_message().split()))
    return EXIT_USAGE


def _module_name(verb: str) -> str:
    return f"zetta.runtime.cli.{verb}"


def present_verbs() -> tuple[str, ...]:
    """Return the verbs whose module exists; none of them is imported."""
    return tuple(verb for verb in VERBS if find_spec(_module_name(verb)) is not None)


def _help() -> str:
    lines = [
        "Usage: zetta VERB [OPTIONS]",
        "",
        "Make a frozen robot policy reliable without retraining it.",
        "",
        "Verbs:",
        *(f"  {verb:<9} {VERBS[verb]}" for verb in present_verbs()),
        "",
        "Everywhere:",
        "  --help     what a verb takes",
        "  --debug    show the traceback of an error",
        "  --json     print one JSON object on stdout and nothing else there",
        "",
        "Alone:",
        "  --version             which zetta this is",
        "  --install-completion  let the shell complete verbs, options and names [SHELL]",
        "  --show-completion     print the script for that [SHELL]",
        "",
        "Start with: zetta run --sim libero",
    ]
    return "\n".join(lines)


def _version() -> str:
    try:
        return version("zetta")
    except PackageNotFoundError:
        return "(not installed: running from the source tree)"


if __name__ == "__main__":
    main()
