"""Takes everything from the present process but its pipes, memory and its end.

Linux's seccomp filter, in place for good: the kernel asks it at every system call. Allowed are
`read` from descriptor 0, `write` to 1 and 2, memory that is not executable, the clock, locks and
the end of the process. Every other call fails with EPERM, so there are no files, sockets, signals,
threads or children; a call in the convention of another architecture ends the process. Resource
limits bound memory and CPU time beside it.

The filter is a few dozen instructions of classic BPF (linux/filter.h, linux/seccomp.h, and
Documentation/userspace-api/seccomp_filter.rst of the kernel); the numbers of the calls are those of
the kernel's tables for each architecture. That is little enough to go without a package.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from zetta.runtime.errors import InfraError

MEMORY_BYTES: Final = 256 * 2**20
"""How much address space a confined process may still take."""
CPU_S: Final = 600
"""CPU time after which a confined process is killed: hours of episodes, seconds of a hang."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the filter must know of an architecture."""

    audit: int
    """How the kernel names the calling convention (linux/audit.h)."""
    seccomp: int
    """Number of the call that installs the filter."""
    plain: tuple[int, ...]
    """Numbers of the calls that are allowed whatever their arguments are."""
    read: int
    write: int
    mmap: int
    mprotect: int


# brk munmap mremap madvise rt_sigreturn restart_syscall sched_yield futex clock_gettime exit
# exit_group
MACHINES: Final[Mapping[str, Machine]] = MappingProxyType(
    {
        "x86_64": Machine(
            0xC000003E, 317, (12, 11, 25, 28, 15, 219, 24, 202, 228, 60, 231), 0, 1, 9, 10
        ),
        "aarch64": Machine(
            0xC00000B7, 277, (214, 215, 216, 233, 139, 128, 124, 98, 113, 93, 94), 63, 64, 222, 226
        ),
    }
)

_ALLOW, _EPERM, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _CONVENTION, _ARGUMENTS = 0, 4, 16  # offsets in seccomp_data
_FOREIGN_NUMBERS = 0x40000000
"""From here on x86_64 numbers mean calls of its 32-bit convention."""
_PROT_EXEC, _MAP_ANONYMOUS = 0x4, 0x20
_SET_MODE_FILTER, _GET_ACTION_AVAIL, _ALL_THREADS = 1, 2, 1
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38


def why_not() -> str:
    """Return why a process cannot be confined on this machine; nothing when it can."""
    machine = _machine()
    if machine is None:
        return (
            f"critics in a process of their own need Linux on {' or '.join(MACHINES)}, this is "
            f"{platform.system()} on {platform.machine()}"
        )
    action = ctypes.c_uint32(_EPERM & 0xFFFF0000)
    asked = ctypes.c_long(_GET_ACTION_AVAIL), ctypes.c_long(0), ctypes.byref(action)
    if _libc().syscall(ctypes.c_long(machine.seccomp), *asked) != 0:
        return f"this kernel offers no seccomp filters ({_reason()})"
    return ""


def die_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends.

    Raises:
        InfraError: the kernel refuses.
    """
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)


def confine(memory_bytes: int = MEMORY_BYTES, cpu_s: int = CPU_S) -> None:
    """Confine this process, all its threads, for good.

    Whatever it will import must have been imported, and descriptors other than 0, 1 and 2 closed.

    Args:
        memory_bytes: address space that it may take beside what it has.
        cpu_s: CPU seconds that it may use beside what it has used.

    Raises:
        InfraError: not Linux on a known architecture, or the kernel refuses.
    """
    machine = _machine()
    reason = why_not()
    if machine is None or reason:
        raise InfraError(reason)
    _limit(memory_bytes, cpu_s)
    _control(_PR_SET_DUMPABLE, 0)
    _control(_PR_SET_NO_NEW_PRIVS, 1)
    code = filter_of(machine)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    program = Program(len(code) // 8, ctypes.addressof(buffer))
    # With all threads or not at all: a thread without the filter would undo it.
    asked = ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(_ALL_THREADS), ctypes.byref(program)
    if _libc().syscall(ctypes.c_long(machine.seccomp), *asked) != 0:
        raise InfraError(f"the kernel refuses to confine this process ({_reason()})")


def filter_of(machine: Machine) -> bytes:
    """Return the filter for an architecture: instructions of 8 bytes each."""
    program = [
        _step(_LOAD, _CONVENTION),
        _step(_EQUAL, machine.audit, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _FOREIGN_NUMBERS, 0, 1),
        _step(_RETURN, _KILL),
    ]
    for number in machine.plain:
        program += [_step(_EQUAL, number, 0, 1), _step(_RETURN, _ALLOW)]
    program += _when(machine.read, [(0, _EQUAL, 0, True)])
    for descriptor in (1, 2):
        program += _when(machine.write, [(0, _EQUAL, descriptor, True)])
    new = [(2, _ANY_BIT, _PROT_EXEC, False), (3, _ANY_BIT, _MAP_ANONYMOUS, True)]
    program += _when(machine.mmap, new)
    program += _when(machine.mprotect, new[:1])
    return b"".join([*program, _step(_RETURN, _EPERM)])


def _when(number: int, tests: list[tuple[int, int, int, bool]]) -> list[bytes]:
    """Allow a call if every test of (argument, operation, operand, wanted) agrees.

    The low half of an argument is looked at: descriptors, protections and flags have 32 bits.
    """
    body: list[bytes] = []
    for argument, operation, operand, wanted in reversed(tests):
        past = len(body) + 1  # the steps that follow, and the return
        jumps = (0, past) if wanted else (past, 0)
        load = _step(_LOAD, _ARGUMENTS + 8 * argument)
        body = [load, _step(operation, operand, *jumps), *body]
    body.append(_step(_RETURN, _ALLOW))
    # The next group compares the number, which a test has replaced.
    return [_step(_EQUAL, number, 0, len(body)), *body, _step(_LOAD, _NUMBER)]


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return one instruction, `struct sock_filter`."""
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _limit(memory_bytes: int, cpu_s: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_AS: pages * os.sysconf("SC_PAGE_SIZE") + memory_bytes,
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + cpu_s,
        resource.RLIMIT_NOFILE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: 0,
    }
    for kind, most in limits.items():
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))


def _machine() -> Machine | None:
    known = sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little"
    return MACHINES.get(platform.machine()) if known else None


def _control(option: int, value: int) -> None:
    rest = [ctypes.c_ulong(each) for each in (value, 0, 0, 0)]
    if _libc().prctl(ctypes.c_int(option), *rest) != 0:
        raise InfraError(f"the kernel refuses to limit this process ({_reason()})")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _reason() -> str:
    return os.strerror(ctypes.get_errno())
