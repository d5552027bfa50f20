"""What is true of launchers without a cluster."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from test_rollouts import settings

from zetta.runtime.cli.launching import Launch, check_launch, launcher
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.rollouts import ray_launcher
from zetta.runtime.rollouts.launchers import Launcher, Pulse
from zetta.runtime.rollouts.pool import Pool
from zetta.runtime.rollouts.ray_launcher import Seat, import_ray
from zetta.runtime.rollouts.versions import differing, installed


def test_the_pool_is_a_launcher(tmp_path: Path) -> None:
    launcher: Launcher = Pool(settings(tmp_path))
    assert launcher.status() == ""
    launcher.close()


def test_missing_ray_is_one_sentence_with_the_installing_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def gone(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(importlib, "import_module", gone)
    with pytest.raises(ConfigError, match=r"'ray' is missing; pip install 'zetta\[ray\]'"):
        import_ray()


def test_address_of_a_ray_client_is_refused_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="takes HOST:PORT or auto, got 'ray://far:10001'"):
        ray_launcher._connect(None, "ray://far:10001", 1)


def test_address_where_nobody_listens_is_an_error_at_once() -> None:
    with pytest.raises(InfraError, match=r"nobody listens at 127\.0\.0\.1:1 .*ray start --head"):
        ray_launcher._connect(None, "127.0.0.1:1", 1)
    with pytest.raises(ConfigError, match="takes HOST:PORT or auto, got 'here'"):
        ray_launcher._connect(None, "here", 1)


def test_the_inside_of_an_actor_answers_as_a_worker_process_does() -> None:
    seat = Seat("faulty_episodes:gone", [])
    (hello,) = seat.exchange([], 30.0)
    assert '"say":"hello"' in hello
    assert seat.exchange([], 0.0) == []
    said = seat.exchange(['{"do":"identify","id":0,"specs":[]}'], 30.0)
    while '"say":"error"' not in said[-1]:
        said += seat.exchange([], 30.0)
    assert "gone" in said[-1]
    assert '"say":"bye"' in seat.exchange(['{"do":"stop"}'], 30.0)[-1]


def test_versions_that_differ_are_named_on_both_sides() -> None:
    assert differing(installed()) == ""
    there = {**installed(), "numpy": "1.0", "mujoco": ""}
    assert "numpy 1.0 there and 2" in differing(there)


def test_pulse_keeps_the_phase_and_its_latest_tick() -> None:
    pulse = Pulse()
    heard = pulse.heard_at
    pulse.note([])
    assert (pulse.heard_at, pulse.warm) == (heard, False)
    pulse.note([{"say": "phase", "text": "init 1"}, {"say": "tick", "index": 3}])
    pulse.note([{"say": "tick", "index": 9}])
    assert (pulse.phase, pulse.warm) == ("init 1, tick 9", True)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (Launch("rai"), "unknown launcher 'rai'; did you mean 'ray'"),
        (Launch("local", "127.0.0.1:6379"), "--ray-address belongs to --launch ray"),
        (Launch("ray", share_policy=True), "--share-policy is for workers of this machine"),
    ],
)
def test_launch_that_cannot_be_meant_is_refused(typed: Launch, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_launch(typed)


def test_only_threads_and_graphics_travel_to_actors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Mapping[str, str] | None] = {}
    monkeypatch.setattr(
        ray_launcher, "RaySite", lambda used, address: seen.update({address: used.environment})
    )
    own = {"OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl", "SECRET_KEY": "s"}
    launcher(Launch("ray", "here:1"), replace(settings(tmp_path), environment=own), ["toy/reach"])
    assert seen == {"here:1": {"OMP_NUM_THREADS": "1", "MUJOCO_GL": "egl"}}
