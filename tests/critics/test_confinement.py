"""The confined process: arbitrary Python in it reaches nothing but its pipes and its memory."""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
from dataclasses import replace

import pytest

from zetta.critics import confinement
from zetta.critics.confinement import MACHINES, Machine, filter_of, why_not
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


def ruled(code: bytes, machine: Machine, number: int, *arguments: int) -> int:
    """Return what the filter says of a call, as the kernel would work it out."""
    call = struct.pack("=IIQ6Q", number, machine.audit, 0, *arguments, *[0] * (6 - len(arguments)))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, operand = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", call, operand)
                continue
            case 0x06:
                return int(operand)
            case 0x15:
                holds = accumulator == operand
            case 0x35:
                holds = accumulator >= operand
            case 0x45:
                holds = bool(accumulator & operand)
            case _:
                raise AssertionError(f"the filter has an operation {operation:#x}")
        at += if_true if holds else if_false


ALLOW, EPERM, KILL = 0x7FFF0000, 0x00050001, 0x80000000
MACHINES_BY_NAME = [pytest.param(machine, id=name) for name, machine in MACHINES.items()]


@pytest.mark.parametrize("machine", MACHINES_BY_NAME)
def test_the_filter_allows_its_few_calls_and_no_other(machine: Machine) -> None:
    code = filter_of(machine)
    allowed = {number for number in range(1000) if ruled(code, machine, number) == ALLOW}
    # With arguments of 0, mprotect asks for memory without any access, and read for descriptor 0.
    assert allowed == {*machine.plain, machine.read, machine.mprotect}
    assert {ruled(code, machine, n) for n in set(range(1000)) - allowed} == {EPERM}
    assert ruled(code, machine, 0x40000000 + machine.read) == KILL
    foreign = replace(machine, audit=0x40000003)
    assert ruled(code, foreign, machine.read) == KILL


@pytest.mark.parametrize("machine", MACHINES_BY_NAME)
def test_the_filter_looks_at_descriptors_and_protections(machine: Machine) -> None:
    code = filter_of(machine)

    def allowed(number: int, *arguments: int) -> bool:
        return ruled(code, machine, number, *arguments) == ALLOW

    assert [allowed(machine.read, fd) for fd in (0, 1, 2, 3)] == [True, False, False, False]
    assert [allowed(machine.write, fd) for fd in (0, 1, 2, 3)] == [False, True, True, False]
    private, of_a_file = 0x22, 0x02
    assert allowed(machine.mmap, 0, 4096, 3, private)
    assert not allowed(machine.mmap, 0, 4096, 3, of_a_file)
    assert not allowed(machine.mmap, 0, 4096, 7, private)
    assert allowed(machine.mprotect, 0, 4096, 3)
    assert not allowed(machine.mprotect, 0, 4096, 5)


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
