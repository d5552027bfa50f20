"""The confined process: arbitrary Python in it reaches nothing but its pipes and its memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from zetta.critics import confinement
from zetta.critics.confinement import MACHINES, filter_of, why_not
from zetta.critics.isolation import check_isolation
from zetta.runtime.errors import ConfigError

confinable = pytest.mark.skipif(why_not() != "", reason=why_not() or "this machine can confine")

HOSTILE = """
import ctypes, mmap, os, signal, socket, subprocess, threading
import numpy as np
from zetta.critics.confinement import confine
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid()
confine(memory_bytes=64 * 2**20)
try:
    {attempt}
except PermissionError:
    print("refused with EPERM", flush=True)
except (MemoryError, RuntimeError) as error:
    print("refused:", error, flush=True)
else:
    print("DONE", flush=True)
os._exit(0)
"""


def attempted(attempt: str) -> tuple[int, str]:
    """Run a statement in a confined process; return its exit code and what it printed."""
    ran = subprocess.run(
        [sys.executable, "-c", HOSTILE.format(attempt=attempt)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout.strip()


@confinable
@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/hostname')",
        "os.open('/tmp/confined', os.O_CREAT | os.O_WRONLY)",
        "os.stat('/')",
        "os.listdir('/')",
        "socket.socket()",
        "socket.socketpair()",
        "os.fork()",
        "subprocess.run(['true'])",
        "os.execv('/bin/true', ['true'])",
        "os.kill(parent, signal.SIGKILL)",
        "os.pipe()",
        "os.dup(0)",
        "os.write(3, b'x')",
        "os.read(1, 1)",
        "mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)",
        "os.sched_setaffinity(0, [0])",
    ],
)
def test_what_leaves_the_process_is_refused_with_eperm(attempt: str) -> None:
    assert attempted(attempt) == (0, "refused with EPERM")


@confinable
def test_a_thread_cannot_be_started_and_memory_is_bounded() -> None:
    assert "can't start new thread" in attempted("threading.Thread(target=print).start()")[1]
    assert attempted("bytearray(2**28)") == (0, "refused:")


@confinable
def test_arithmetic_and_a_little_memory_are_allowed() -> None:
    assert attempted("bytearray(2**24); np.ones((99, 99)) @ np.ones((99, 99))") == (0, "DONE")


@confinable
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 has a second convention")
def test_a_call_in_a_foreign_convention_ends_the_process() -> None:
    code, printed = attempted("libc.syscall(ctypes.c_long(0x40000000 + 39))")
    assert (code < 0, printed) == (True, "")


def test_jumps_of_every_filter_stay_inside_and_lead_forward() -> None:
    for machine in MACHINES.values():
        code = filter_of(machine)
        steps = [code[k : k + 8] for k in range(0, len(code), 8)]
        assert len(steps) * 8 == len(code)
        assert steps[-1][0] == 0x06
        for k, step in enumerate(steps):
            if step[0] in (0x15, 0x35, 0x45):
                assert k + 1 + max(step[2], step[3]) < len(steps)


@pytest.mark.parametrize(
    ("what", "value", "words"),
    [("machine", "riscv64", "riscv64"), ("system", "Darwin", "x86_64 or aarch64")],
)
def test_where_it_cannot_be_done_one_sentence_says_so_and_nothing_runs_unprotected(
    what: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, what, lambda: value)
    if what == "system":
        monkeypatch.setattr(confinement.sys, "platform", "darwin")
    with pytest.raises(ConfigError, match=words):
        check_isolation()
