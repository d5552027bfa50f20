"""What `zetta doctor` looks at of the machine itself, and of what comes as files."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.cli import installation
from zetta.runtime.shared_frames import FOLDER

State: TypeAlias = Literal["ok", "optional", "missing"]


@dataclass(frozen=True, slots=True)
class Check:
    """What one look at this machine found."""

    name: str
    state: State
    detail: str
    fix: str = ""
    """The command that mends it; empty when nothing is to be done."""


GOOD_CORES: Final = 2
MEMORY_BYTES: Final = 4_000_000_000
"""A LIBERO run with zetta/tiny was seen to take 2.0 GB at most, and people run two."""
SHARED_BYTES: Final = 256_000_000
"""A worker keeps two messages of pictures there, some MB each, and workers share the room."""
CPU_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
MEMORY: Final = Path("/proc/meminfo")
ROOT: Final = Path(__file__).parents[2]
MODELS: Final[Mapping[str, tuple[str, ...]]] = {
    "runtime/policies/tiny/weights/tiny": ("look.onnx", "act.onnx", "weights.safetensors"),
    "primitives/localize/tiny/weights": (
        "crops.onnx", "names.onnx", "heads.onnx", "weights.safetensors",
    ),
}  # fmt: skip
"""Folder of an embedded model and its files."""
SMALLEST_MODEL: Final = 1000
"""Bytes; a file below it is the pointer of a large file that was not fetched."""


def check_cores() -> Check:
    """Processors that this process may use, and a container's share of them."""
    cores, share = len(os.sched_getaffinity(0)), _quota()
    usable = min(cores, share)
    detail = f"{usable:g} of {os.cpu_count()} usable"
    if usable >= GOOD_CORES:
        return Check("cores", "ok", detail)
    lack = "simulator and policy take turns, and --workers above 1 gains nothing"
    return Check("cores", "optional", f"{detail}: {lack}", "docker run --cpus 2 … (or more)")


def check_threads() -> Check:
    """Threads of the numeric libraries in each process; many processes share the cores."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdecimal() and int(told) >= 1:
        return Check("threads", "ok", f"OMP_NUM_THREADS is {told}")
    said = f"OMP_NUM_THREADS is {told!r}" if told else "OMP_NUM_THREADS is not set"
    detail = f"{said}: every process may take all cores, which slows several of them"
    return Check("threads", "optional", detail, "export OMP_NUM_THREADS=1")


def check_memory() -> Check:
    """Memory that is free."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY.read_text().splitlines() if ":" in line)
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return Check("memory", "optional", f"{MEMORY} does not say what is free")
    detail = f"{free / 1e9:.1f} GB available"
    if free >= MEMORY_BYTES:
        return Check("memory", "ok", detail)
    fix = "zetta eval --workers 1 …, and end what else is running"
    return Check("memory", "optional", f"only {detail}; a LIBERO run takes about 2 GB", fix)


def check_shared_memory() -> Check:
    """Shared memory for the pictures of simulators in processes of their own."""
    try:
        free = shutil.disk_usage(FOLDER).free
        writable = os.access(FOLDER, os.W_OK)
    except OSError:
        free, writable = 0, False
    if writable and free >= SHARED_BYTES:
        return Check("shared memory", "ok", f"{free / 1e6:.0f} MB free at {FOLDER}")
    detail = f"only {free / 1e6:.0f} MB free at {FOLDER}" if writable else f"no {FOLDER} to write"
    fix = "docker run --shm-size 1g …, or: sudo mount -o remount,size=1G /dev/shm"
    return Check("shared memory", "optional", f"{detail}; pictures take the slower way", fix)


def check_ports() -> Check:
    """Ports on which zetta listens unless told otherwise."""
    taken = [port for port in default_ports() if not _is_free(port)]
    if not taken:
        return Check("ports", "ok", f"{', '.join(map(str, default_ports()))} are free")
    detail = f"somebody listens at {', '.join(map(str, taken))}; perhaps a server of yours"
    who = " or ".join(f"sport = :{port}" for port in taken)
    return Check("ports", "optional", detail, f"ss -ltnp '{who}'; or use --bind and --port")


def default_ports() -> tuple[int, ...]:
    """Return the ports of policies, of the link of an arm, and of the dashboard."""
    from zetta.hw_drivers.arm_messages import COMMAND_PORT, STATE_PORT, STOP_PORT
    from zetta.hw_drivers.camera_stream import CAMERA_PORT
    from zetta.runtime.cli.dashboard import PORT
    from zetta.runtime.policy_server.zmq_door import DEFAULT_BIND

    policies = int(DEFAULT_BIND.rpartition(":")[2])
    return (policies, policies + 1, COMMAND_PORT, STATE_PORT, STOP_PORT, CAMERA_PORT, PORT)


def check_models() -> Check:
    """The weights of the embedded policy and of the embedded localiser."""
    files = [ROOT / folder / name for folder, names in MODELS.items() for name in names]
    absent = [path for path in files if not path.is_file() or path.stat().st_size < SMALLEST_MODEL]
    if not absent:
        return Check("models", "ok", "zetta/tiny and the localiser tiny are whole")
    names = ", ".join(str(path.relative_to(ROOT)) for path in absent)
    fix = f"{installation.install_line()} --force-reinstall"
    return Check("models", "missing", f"not whole: {names}", fix)


def check_simulators() -> Iterator[Check]:
    """Every simulator; one that is not here is a hint, for nobody needs all."""
    from zetta.runtime.cli.sims import sim_states

    for sim in sim_states():
        state: State = "ok" if sim.state == "ready" else "optional"
        detail = f"{sim.state}, {sim.version}" if sim.version else sim.state
        yield Check(f"sim {sim.name}", state, detail, sim.fix)


def _quota() -> float:
    """Return the cores of a container's share; infinite without one."""
    try:
        share, period = CPU_QUOTA.read_text().split()[:2]
        return float("inf") if share == "max" else int(share) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return float("inf")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
