"""Rollouts on a Ray cluster of two nodes on this machine: the same results, honest deaths."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_rollouts import SUITE, is_alive, jobs, outcomes, settings, untimed, wait_for

from zetta.runtime.errors import SpecMismatch
from zetta.runtime.rollouts import ray_launcher
from zetta.runtime.rollouts.launchers import Job, Outcome
from zetta.runtime.rollouts.pool import PoolSettings

ray = pytest.importorskip("ray", reason="needs Ray (pip install 'zetta[ray]')")
cluster_utils = pytest.importorskip("ray.cluster_utils")

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without CPUs and two nodes with one each."""
    head = {
        "num_cpus": 0,
        "include_dashboard": False,
        "_system_config": ray_launcher.PLAIN_PRIORITY,
    }
    made = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    for _ in range(2):
        made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    made.shutdown()


def on_ray(cluster: Any, todo: list[Job], used: PoolSettings) -> dict[str, Outcome]:
    with ray_launcher.ray_pool(used, cluster.address) as pool:
        return {outcome.job.key: outcome for outcome in pool.run(todo)}


def test_two_nodes_bring_the_records_of_local_workers(cluster: Any, tmp_path: Path) -> None:
    here = outcomes(jobs(tasks=2), settings(tmp_path))
    with ray_launcher.ray_pool(settings(tmp_path, workers=2), cluster.address) as pool:
        identity = pool.identify([jobs()[0].spec])
        there = {outcome.job.key: outcome for outcome in pool.run(jobs(tasks=2))}
        assert not pool.status()
    assert {k: untimed(o) for k, o in there.items()} == {k: untimed(o) for k, o in here.items()}
    assert identity.render_profiles == {"fast": "toy-fast"}


def test_dead_actor_costs_its_running_episode_only(cluster: Any, tmp_path: Path) -> None:
    fault = f"die {SUITE}/0/1 {tmp_path / 'died'}"
    found = on_ray(cluster, jobs(fault=fault), settings(tmp_path))
    assert (tmp_path / "died").exists()
    assert {k: o.attempts for k, o in found.items()} == {"0/0": 1, "0/1": 2, "0/2": 1}
    assert all(outcome.record is not None for outcome in found.values())


def test_episode_that_kills_its_actor_each_time_is_an_error_and_hung_ones_are_noticed(
    cluster: Any, tmp_path: Path
) -> None:
    faults = f"die {SUITE}/0/1;hang {SUITE}/0/2"
    used = replace(settings(tmp_path, silence_s=15.0), attempts=2)
    found = on_ray(cluster, jobs(fault=faults), used)
    assert found["0/0"].record is not None
    assert [(found[f"0/{k}"].record, found[f"0/{k}"].attempts) for k in (1, 2)] == [(None, 2)] * 2
    assert "is gone" in found["0/1"].error
    assert "said nothing" in found["0/2"].error
    assert "tick" in found["0/2"].error


def test_lost_node_costs_the_episodes_that_ran_there(cluster: Any, tmp_path: Path) -> None:
    doomed = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    found: dict[str, Outcome] = {}
    todo = jobs(tasks=3, inits=4, fault="slow all")
    with ray_launcher.ray_pool(settings(tmp_path, workers=3), cluster.address) as pool:
        for outcome in pool.run(todo):
            if not found:
                cluster.remove_node(doomed, allow_graceful=False)
            found[outcome.job.key] = outcome
    assert found.keys() == {job.key for job in todo}
    assert all(outcome.record is not None for outcome in found.values())
    # The node had one CPU, so one episode ran there. Until the cluster has noticed, further starts
    # may be sent to it; those begin nothing.
    assert sum(outcome.attempts for outcome in found.values()) <= len(todo) + 1


def test_node_with_other_versions_is_refused_by_name(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_launcher, "differing", lambda there: "mujoco 3.1 there and 3.17 here")
    with pytest.raises(SpecMismatch, match=r"other versions than this machine \(mujoco 3\.1"):
        on_ray(cluster, jobs(inits=1), settings(tmp_path))


STOPPED = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from pathlib import Path
import test_rollouts as t
from zetta.runtime.rollouts import ray_launcher as r
folder = Path(sys.argv[2])
greet = r.RayWorker._greet
def noted(self, hello):
    greet(self, hello)
    (folder / "pid").write_text(str(hello["pid"]))
r.RayWorker._greet = noted
with r.ray_pool(t.settings(folder), sys.argv[3]) as pool:
    for outcome in pool.run(t.jobs(fault="hang " + t.SUITE + "/0/1")):
        (folder / "begun").touch()
"""


def test_interrupt_leaves_no_actor(cluster: Any, tmp_path: Path) -> None:
    paths = json.dumps([str(Path(p).absolute()) for p in sys.path])
    command = [sys.executable, "-c", STOPPED, paths, str(tmp_path), cluster.address]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as parent:
        wait_for(lambda: (tmp_path / "begun").exists(), 300.0)
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGINT)
    assert parent.returncode != 0
    wait_for(lambda: "" if is_alive(pid) else "gone")
