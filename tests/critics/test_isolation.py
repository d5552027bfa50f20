"""Critics in a process of their own: the same verdicts, and every way in which it can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.critics.critic_texts import HZ, PARAMETERS, critic_of
from zetta.critics import isolation
from zetta.critics.bench_cases import typical_critics
from zetta.critics.bench_isolation import isolation_figures
from zetta.critics.confinement import why_not
from zetta.critics.isolation import IsolatedMonitor
from zetta.critics.isolation_messages import CriticProgram, framed
from zetta.critics.monitor import CriticMonitor
from zetta.runtime.core import Array
from zetta.runtime.errors import InfraError, ScreenError, SpecMismatch, Timeout, WorkerDied
from zetta.runtime.signals import SIGNALS, SignalHistory, SignalSpec

pytestmark = pytest.mark.skipif(why_not() != "", reason=why_not() or "this machine can confine")

SLIPS = critic_of('if now(w.slip) > p.near:\n    return recover("it slips")\nreturn ok()')
READY = SLIPS.replace("SKILL", "ARMED_WHEN = 'now(w.holding) > 0.5'\nREFRACTORY_S = 0.3\nSKILL")
PROGRAMS = (
    CriticProgram("slips", "slips.py", SLIPS, PARAMETERS, {"near": 0.02}),
    CriticProgram("ready", "ready.py", READY, PARAMETERS, {}),
    *(CriticProgram(f"t{k}", "t.py", text, {}, {}) for k, text in enumerate(typical_critics())),
)
NAMES = [name for name in SIGNALS if not name.startswith("other_")]


def in_process() -> CriticMonitor:
    monitor = CriticMonitor([program.compile(HZ) for program in PROGRAMS])
    monitor.begin()
    return monitor


@pytest.fixture
def isolated() -> Iterator[IsolatedMonitor]:
    with IsolatedMonitor(PROGRAMS, HZ) as monitor:
        monitor.begin()
        yield monitor


def rows(ticks: int, seed: int = 1) -> Array:
    """Return random signals, a part of them unknown. Shape (ticks, signals)."""
    rng = np.random.default_rng(seed)
    low = np.array([SIGNALS[name].low for name in NAMES])
    high = np.array([SIGNALS[name].high for name in NAMES])
    values: Array = low + rng.uniform(0, 1, (ticks, len(NAMES))) * (high - low)
    values[rng.uniform(0, 1, values.shape) < 0.02] = np.nan
    return values


def drivers(ticks: int) -> list[str]:
    return ["skill:regrasp" if 30 <= k % 90 < 40 else "policy" for k in range(ticks)]


def test_verdicts_evidence_and_memory_equal_those_in_process(isolated: IsolatedMonitor) -> None:
    monitor, history, spoken = in_process(), SignalHistory(NAMES, HZ), 0
    for row, driving in zip(rows(300), drivers(300), strict=True):
        history.push(row)
        verdicts = monitor.judge(history, driving)
        assert isolated.judge(history, driving) == verdicts
        assert isolated.state() == monitor.state()
        spoken += any(v.skill == "regrasp" and v.evidence for v in verdicts)
    assert 20 < spoken < 280


def test_a_new_episode_has_a_fresh_process_that_remembers_nothing(
    isolated: IsolatedMonitor,
) -> None:
    first = isolated.pid
    for _ in range(2):
        isolated.begin()
        monitor, history = in_process(), SignalHistory(NAMES, HZ)
        for row in rows(20):
            history.push(row)
            assert isolated.judge(history, "policy") == monitor.judge(history, "policy")
    assert isolated.pid != first


def test_a_signal_that_the_episode_lacks_disarms_as_in_process(isolated: IsolatedMonitor) -> None:
    monitor = in_process()
    names = [name for name in NAMES if name not in ("slip", "object_distance")]
    history, kept = SignalHistory(names, HZ), [NAMES.index(name) for name in names]
    for row in rows(60):
        history.push(row[kept])
        assert isolated.judge(history, "policy") == monitor.judge(history, "policy")


def test_a_restored_process_gives_the_verdicts_of_the_one_that_went_on(
    isolated: IsolatedMonitor,
) -> None:
    history, went_on = SignalHistory(NAMES, HZ), in_process()
    for row, driving in zip(rows(130), drivers(130), strict=True):
        history.push(row)
        went_on.judge(history, driving)
    isolated.restore(went_on.state())
    for row in rows(60, seed=2):
        history.push(row)
        assert isolated.judge(history, "policy") == went_on.judge(history, "policy")


def test_installed_signals_exist_there_too() -> None:
    extra = SignalSpec("probe_risk", "", 0.0, 1.0, "policy", "A learned risk.")
    text = critic_of('if now(w.probe_risk) > 0.5:\n    return abort("risk")\nreturn ok()')
    history = SignalHistory(["probe_risk"], HZ)
    program = CriticProgram("probe", "probe.py", text, {}, {})
    with IsolatedMonitor([program], HZ, [extra]) as monitor:
        monitor.begin()
        history.push(np.array([0.75]))
        (verdict,) = monitor.judge(history, "policy")
    assert (verdict.decision, verdict.evidence) == ("abort", {"probe_risk": 0.75})


def test_what_is_wrong_with_a_program_is_said_before_a_process_is_started() -> None:
    with pytest.raises(ScreenError, match=r"bad\.py:"):
        IsolatedMonitor([CriticProgram("bad", "bad.py", "import os", {}, {})], HZ)


# --------------------------------------------------------------------------- how it can end


def one_tick() -> SignalHistory:
    history = SignalHistory(NAMES, HZ)
    history.push(rows(1)[0])
    return history


def test_a_killed_process_is_an_error_and_no_silent_pass(isolated: IsolatedMonitor) -> None:
    history = one_tick()
    isolated.judge(history, "policy")
    assert isolated.pid is not None
    os.kill(isolated.pid, signal.SIGKILL)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        isolated.judge(history, "policy")
    with pytest.raises(InfraError, match="begin an episode"):
        isolated.judge(history, "policy")


def instead_of_judging(statement: str) -> str:
    """Return a start of the process in which every critic runs `statement`."""
    return isolation.START.replace(
        "; from zetta.critics.isolation_worker import serve; serve()",
        f"""
import os, socket, time
from zetta.critics import critic, isolation_messages, isolation_worker
def judge(self, window):
    {statement}
    return self._passed
critic.Critic.judge = judge
isolation_worker.serve()
""",
    )


@pytest.mark.parametrize(
    "statement", ["open('/etc/hostname')", "socket.socket()", "os.fork()", "os.kill(1, 9)"]
)
def test_a_critic_that_could_run_anything_still_reaches_nothing(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "START", instead_of_judging(statement))
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        monitor.begin()
        with pytest.raises(WorkerDied, match="Operation not permitted"):
            monitor.judge(one_tick(), "policy")


def test_the_start_of_the_hostile_tests_runs_what_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "START", instead_of_judging("raise ValueError('it ran')"))
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        monitor.begin()
        (verdict,) = monitor.judge(one_tick(), "policy")
    assert verdict.reason == "switched off: raised ValueError: it ran"


def test_a_process_that_hangs_is_ended_and_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "START", instead_of_judging("\n    while True: pass"))
    with IsolatedMonitor(PROGRAMS[:1], HZ, deadline_s=0.2) as monitor:
        monitor.begin()
        pid = monitor.pid
        assert pid is not None
        with pytest.raises(Timeout, match=r"within 0\.2 s"):
            monitor.judge(one_tick(), "policy")
        assert monitor.pid is None
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    "said",
    [
        {"verdicts": [{"decision": "recover", "critic": "t1", "skill": "wipe-the-table"}]},
        {"verdicts": [{"decision": "recover", "critic": "nobody", "skill": "regrasp"}]},
        {"verdicts": [{"decision": "explode", "critic": "slips"}]},
        {"verdicts": "all fine"},
        {},
    ],
)
def test_what_no_critic_can_say_is_an_error(
    said: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = f"os.write(1, {framed(said)!r})"
    monkeypatch.setattr(isolation, "START", instead_of_judging(statement))
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        monitor.begin()
        with pytest.raises(InfraError, match="no sensible answer"):
            monitor.judge(one_tick(), "policy")
        assert monitor.pid is None


def test_an_endless_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "START", instead_of_judging(r"os.write(1, b'\xff' * 9)"))
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        monitor.begin()
        with pytest.raises(InfraError, match="is longer than"):
            monitor.judge(one_tick(), "policy")


def test_a_process_that_cannot_be_confined_judges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = isolation.START.replace(
        "from zetta.critics.isolation_worker import serve; ",
        "from zetta.critics import confinement; confinement.MACHINES = {}; "
        "from zetta.critics.isolation_worker import serve; ",
    )
    monkeypatch.setattr(isolation, "START", refusing)
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        with pytest.raises(InfraError, match="critics cannot be isolated"):
            monitor.begin()
        assert monitor.pid is None


def test_the_state_of_other_critics_is_refused(isolated: IsolatedMonitor) -> None:
    with pytest.raises(SpecMismatch, match="same bundle"):
        isolated.restore(CriticMonitor([]).state())


OWNER = """
import sys, time
from zetta.critics.bench_cases import typical_critics
from zetta.critics.isolation import IsolatedMonitor
from zetta.critics.isolation_messages import CriticProgram
monitor = IsolatedMonitor([CriticProgram("c", "c.py", typical_critics()[0], {}, {})], 20.0)
monitor.begin()
print(monitor.pid, flush=True)
time.sleep(60)
"""


def test_the_process_dies_with_its_owner() -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        owner.kill()
    deadline = time.monotonic() + 10
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Say whether a process is there and no zombie that nobody has waited for yet."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_process_gets_no_environment_to_give_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    statement = "raise ValueError(sorted(os.environ))"
    monkeypatch.setattr(isolation, "START", instead_of_judging(statement))
    with IsolatedMonitor(PROGRAMS[:1], HZ) as monitor:
        monitor.begin()
        (verdict,) = monitor.judge(one_tick(), "policy")
    assert "OMP_NUM_THREADS" in verdict.reason
    assert "SECRET" not in verdict.reason


def test_the_benchmark_holds_it_against_the_same_critics_in_process() -> None:
    figures = isolation_figures()
    assert [figure.name for figure in figures] == [
        "critics_isolated_silent_p50",
        "critics_isolated_speaking_p50",
    ]
    for figure in figures:
        assert figure.baseline is not None
        assert 0.0 < figure.baseline < figure.value
        assert figure.ratio == pytest.approx(figure.baseline / figure.value)
