from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from zetta.runtime.core import Init, RunSpec
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.rollouts.launchers import Job, Outcome
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.runtime.rollouts.process import ProcessSite, WorkerProcess

FACTORY = "faulty_episodes:make"
"""Beside this file: toy episodes that fail in asked-for ways."""
SUITE = "toy_pick"


def jobs(tasks: int = 1, inits: int = 3, fault: str = "") -> list[Job]:
    options = {"fault": fault} if fault else {}
    specs = [
        RunSpec(
            sim="toy",
            suite=SUITE,
            task=task,
            layout=Init(k),
            policy="oracle/expert",
            sensing="oracle",
            options=options,
        )
        for task in range(tasks)
        for k in range(inits)
    ]
    return [Job(f"{s.task}/{s.layout}", f"{s.suite}/{s.task}", s) for s in specs]


def settings(folder: Path, workers: int = 1, silence_s: float = 60.0) -> PoolSettings:
    return PoolSettings(
        FACTORY,
        folder / "logs",
        workers,
        silence_s=silence_s,
        stagger_s=0.0,
    )


def outcomes(todo: list[Job], used: PoolSettings) -> dict[str, Outcome]:
    with Pool(used) as pool:
        return {outcome.job.key: outcome for outcome in pool.run(todo)}


def untimed(outcome: Outcome) -> EpisodeRecord:
    assert outcome.record is not None
    return replace(outcome.record, wall_s=0.0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    return outcomes(jobs(tasks=2), settings(tmp_path_factory.mktemp("undisturbed")))


@pytest.mark.parametrize("workers", [2, 3])
def test_several_workers_bring_the_records_of_one(
    workers: int, tmp_path: Path, undisturbed: dict[str, Outcome]
) -> None:
    many = outcomes(jobs(tasks=2), settings(tmp_path, workers=workers))
    assert {k: untimed(o) for k, o in many.items()} == {
        k: untimed(o) for k, o in undisturbed.items()
    }


def test_killed_worker_loses_nothing_but_its_running_episode(
    tmp_path: Path, undisturbed: dict[str, Outcome]
) -> None:
    fault = f"die {SUITE}/0/1 {tmp_path / 'died'}"
    found = outcomes(jobs(fault=fault), settings(tmp_path))
    assert (tmp_path / "died").exists()
    assert {key: outcome.attempts for key, outcome in found.items()} == {
        "0/0": 1,
        "0/1": 2,
        "0/2": 1,
    }
    assert {k: untimed(o) for k, o in found.items()} == {k: untimed(undisturbed[k]) for k in found}


def test_hung_worker_is_killed_and_named_with_its_last_phase(tmp_path: Path) -> None:
    used = replace(settings(tmp_path, silence_s=5.0), attempts=1)
    found = outcomes(jobs(fault=f"hang {SUITE}/0/1"), used)
    assert found["0/1"].record is None
    for word in (f"worker 1 ({SUITE}/0)", "said nothing", "init 1", "tick", "killed"):
        assert word in found["0/1"].error
    assert found["0/0"].record is not None
    assert found["0/2"].record is not None


def test_scene_that_fails_each_time_is_tried_three_times_and_never_scored(tmp_path: Path) -> None:
    found = outcomes(jobs(inits=2, fault=f"infra {SUITE}/0/1"), settings(tmp_path))
    assert found["0/1"] == Outcome(found["0/1"].job, None, 3, "the camera went away")
    assert found["0/0"].record is not None


class Stillborn(ProcessSite):
    """A place where the first workers end before they say a word."""

    def __init__(self, used: PoolSettings, count: int) -> None:
        super().__init__(used.factory, used.log_dir)
        self._healthy, self._left = self._environment, count

    def start(self, name: str) -> WorkerProcess:
        self._environment = {"PYTHONHOME": "/nowhere"} if self._left > 0 else self._healthy
        self._left -= 1
        return super().start(name)


@pytest.mark.parametrize(("count", "attempts"), [(2, 1), (4, 3)])
def test_worker_that_ends_before_it_speaks_has_tried_nothing_until_that_goes_on(
    count: int, attempts: int, tmp_path: Path
) -> None:
    used = settings(tmp_path)
    with Pool(used, Stillborn(used, count)) as pool:
        (outcome,) = pool.run(jobs(inits=1))
    assert outcome.attempts == attempts
    assert outcome.record is not None


def test_job_whose_workers_never_speak_is_an_error_after_so_many_starts(tmp_path: Path) -> None:
    used = settings(tmp_path)
    with Pool(used, Stillborn(used, 99)) as pool:
        (outcome,) = pool.run(jobs(inits=1))
    assert (outcome.record, outcome.attempts) == (None, 3)
    assert len(list(used.log_dir.iterdir())) == 5


def test_jobs_of_one_key_are_run_once(tmp_path: Path) -> None:
    todo = jobs(inits=2)
    with Pool(settings(tmp_path)) as pool:
        found = [outcome.job.key for outcome in pool.run([*todo, *todo])]
    assert found == ["0/0", "0/1"]


def test_job_that_kills_its_worker_each_time_is_an_error_after_as_many_processes(
    tmp_path: Path,
) -> None:
    found = outcomes(jobs(fault=f"die {SUITE}/0/1"), settings(tmp_path))
    assert (found["0/1"].record, found["0/1"].attempts) == (None, 3)
    assert "SIGKILL" in found["0/1"].error
    assert [found[f"0/{k}"].attempts for k in (0, 2)] == [1, 1]
    assert len(list((tmp_path / "logs").iterdir())) == 4  # one for each death, and one that lives


def test_episode_that_hangs_once_is_run_again_and_scored(
    tmp_path: Path, undisturbed: dict[str, Outcome]
) -> None:
    fault = f"hang {SUITE}/0/1 {tmp_path / 'hung'}"
    found = outcomes(jobs(inits=2, fault=fault), settings(tmp_path, silence_s=5.0))
    assert {key: outcome.attempts for key, outcome in found.items()} == {"0/0": 1, "0/1": 2}
    assert untimed(found["0/1"]) == untimed(undisturbed["0/1"])


def test_reset_that_hangs_is_noticed(tmp_path: Path) -> None:
    used = replace(settings(tmp_path, silence_s=5.0), attempts=1)
    found = outcomes(jobs(inits=2, fault=f"stuck {SUITE}/0/1"), used)
    assert found["0/1"].record is None
    assert "said nothing" in found["0/1"].error
    assert "init 1 seed 0" in found["0/1"].error
    assert "tick" not in found["0/1"].error


def test_bug_and_sudden_death_are_errors_of_machinery_that_say_what_happened(
    tmp_path: Path,
) -> None:
    faults = f"bug {SUITE}/0/1;die {SUITE}/0/2"
    found = outcomes(jobs(fault=faults), replace(settings(tmp_path), attempts=1))
    assert "unexpected KeyError" in found["0/1"].error
    assert "SIGKILL" in found["0/2"].error
    assert [found[f"0/{k}"].record for k in (1, 2)] == [None, None]


def test_task_that_cannot_be_built_is_given_up_as_a_whole(tmp_path: Path) -> None:
    found = outcomes(jobs(tasks=2, fault=f"unbuildable {SUITE}/0"), settings(tmp_path))
    assert [found[f"0/{k}"].record for k in range(3)] == [None] * 3
    assert [found[f"0/{k}"].attempts for k in range(3)] == [3, 0, 0]
    assert all("renderer" in found[f"0/{k}"].error for k in range(3))
    assert all(found[f"1/{k}"].record is not None for k in range(3))


def test_error_that_would_meet_every_attempt_stops_the_pool_with_its_sentence(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="there is no such thing; known: others"):
        outcomes(jobs(fault=f"config {SUITE}/0/0"), settings(tmp_path))


def test_unknown_policy_is_told_by_the_probe(tmp_path: Path) -> None:
    spec = replace(jobs()[0].spec, policy="zeta/tiny", sensing="vision")
    with (
        Pool(settings(tmp_path)) as pool,
        pytest.raises(ConfigError, match="unknown policy 'zeta/tiny'; did you mean"),
    ):
        pool.identify([spec])


def test_factory_that_does_not_exist_is_an_error_of_machinery(tmp_path: Path) -> None:
    used = replace(settings(tmp_path), factory="faulty_episodes:gone")
    with Pool(used) as pool, pytest.raises(InfraError, match="gone"):
        pool.identify([jobs()[0].spec])


@pytest.mark.parametrize("workers", [0, -1])
def test_pool_without_workers_is_refused(tmp_path: Path, workers: int) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        settings(tmp_path, workers)


ORPHANING = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pathlib import Path
import test_rollouts as t
folder = Path(sys.argv[2])
with t.Pool(t.settings(folder)) as pool:
    for outcome in pool.run(t.jobs(fault="hang " + t.SUITE + "/0/1")):
        pid = next(iter(pool._desks.values())).process.pid
        (folder / "pid").write_text(str(pid))
"""


def test_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    paths = json.dumps([str(Path(p).absolute()) for p in sys.path])
    parent = subprocess.Popen([sys.executable, "-c", ORPHANING, paths, str(tmp_path)])
    try:
        pid = int(wait_for(lambda: (tmp_path / "pid").read_text()))
        os.kill(pid, 0)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: "" if is_alive(pid) else "gone")


def test_worker_can_be_spoken_to_where_standard_descriptors_are_closed(tmp_path: Path) -> None:
    paths = json.dumps([str(Path(p).absolute()) for p in sys.path])
    command = [sys.executable, "-c", DETACHED, paths, str(tmp_path)]
    ended = subprocess.run([*shlex.split("sh -c '\"$@\" <&- >&- 2>&-' sh"), *command], check=False)
    assert ended.returncode == 0
    assert (tmp_path / "profile").read_text() == "toy-fast"


DETACHED = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pathlib import Path
import test_rollouts as t
folder = Path(sys.argv[2])
with t.Pool(t.settings(folder)) as pool:
    identity = pool.identify([t.jobs()[0].spec])
(folder / "profile").write_text(identity.render_profiles["fast"])
"""


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_for(look: object, timeout_s: float = 30.0) -> str:
    assert callable(look)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        try:
            if found := look():
                return str(found)
        except FileNotFoundError:
            pass
        time.sleep(0.05)
    pytest.fail(f"nothing within {timeout_s} s")
