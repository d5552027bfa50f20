"""Each look of the doctor at a machine, with what it looks at missing."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from zetta.runtime.cli import doctor, doctor_machine, installation, sims
from zetta.runtime.cli.sims import SimState


def test_one_core_is_a_hint_and_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    check = doctor_machine.check_cores()

    assert check.state == "optional"
    assert "take turns" in check.detail
    assert check.fix


def test_the_share_of_a_container_counts_as_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(doctor_machine, "CPU_QUOTA", quota)

    assert doctor_machine.check_cores().state == "ok"
    quota.write_text("max 100000\n")
    assert doctor_machine.check_cores().state == "ok"
    quota.write_text("150000 100000\n")
    assert doctor_machine.check_cores().detail.startswith("1.5 of ")
    assert doctor_machine.check_cores().state == "optional"


@pytest.mark.parametrize(("value", "state"), [("1", "ok"), ("0", "optional"), ("", "optional")])
def test_threads_without_a_limit_are_a_hint(
    value: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    check = doctor_machine.check_threads()

    assert check.state == state
    assert check.fix == ("" if state == "ok" else "export OMP_NUM_THREADS=1")


@pytest.mark.parametrize(
    ("said", "state", "detail"),
    [
        ("MemTotal: 9 kB\nMemAvailable: 8000000 kB\n", "ok", "8.2 GB available"),
        ("MemAvailable: 1000000 kB\n", "optional", "only 1.0 GB available"),
        ("nonsense\n", "optional", "does not say"),
    ],
)
def test_little_memory_is_a_hint(
    said: str, state: str, detail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text(said)
    monkeypatch.setattr(doctor_machine, "MEMORY", tmp_path / "meminfo")
    check = doctor_machine.check_memory()

    assert check.state == state
    assert detail in check.detail


def test_little_or_no_shared_memory_is_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_machine, "FOLDER", tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=64_000_000))
    little = doctor_machine.check_shared_memory()
    assert little.state == "optional"
    assert "only 64 MB" in little.detail
    assert "--shm-size" in little.fix

    monkeypatch.undo()
    monkeypatch.setattr(doctor_machine, "FOLDER", tmp_path / "nowhere")
    assert "no " in doctor_machine.check_shared_memory().detail


def test_a_port_on_which_somebody_listens_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        monkeypatch.setattr(doctor_machine, "default_ports", lambda: (port,))
        check = doctor_machine.check_ports()

    assert check.state == "optional"
    assert f"{port}" in check.detail
    assert check.fix.startswith("ss -ltnp")
    assert doctor_machine.check_ports().state == "ok"


def test_the_ports_are_those_that_verbs_use() -> None:
    assert doctor_machine.default_ports() == (5601, 5602, 5701, 5702, 5703, 5704, 5690)


def test_the_models_of_this_installation_are_whole() -> None:
    assert doctor_machine.check_models().state == "ok"


def test_a_model_that_lacks_a_file_or_holds_a_pointer_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_machine, "ROOT", tmp_path)
    monkeypatch.setattr(doctor_machine, "MODELS", {"weights": ("act.onnx", "look.onnx")})
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "look.onnx").write_text("version https://git-lfs …")
    check = doctor_machine.check_models()

    assert check.state == "missing"
    assert check.detail == "not whole: weights/act.onnx, weights/look.onnx"
    assert "--force-reinstall" in check.fix


def test_a_simulator_that_is_not_here_is_a_hint_with_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = (
        SimState("toy", "ready", "", "1", 0, "bundled"),
        SimState("far", "missing", "zetta sims install far", "2", 0, "bundled"),
    )
    monkeypatch.setattr(sims, "sim_states", lambda: states)
    here, away = doctor_machine.check_simulators()

    assert (here.state, here.fix) == ("ok", "")
    assert (away.name, away.state) == ("sim far", "optional")
    assert away.fix == "zetta sims install far"


def test_a_python_that_is_too_old_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    old = installation.PackageState("python", ">=3.11", "3.9.2", fits=False)
    monkeypatch.setattr(installation, "python", lambda: old)
    check = doctor.check_python()

    assert check.state == "missing"
    assert "3.9.2 instead of >=3.11" in check.detail
    assert check.fix


def test_a_full_disk_is_a_hint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000_000))
    check = doctor.check_disk(tmp_path)

    assert check.state == "optional"
    assert "only 1.0 GB" in check.detail
    assert check.fix


def test_a_missing_or_poor_ffmpeg_is_a_hint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho ' V..... mpeg4'\n")
    program.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(program))
    poor = doctor.check_encoder()
    assert poor.state == "optional"
    assert "lacks libx264" in poor.detail

    program.write_text("#!/bin/sh\nexit 1\n")
    assert doctor.check_encoder().fix


def test_without_libero_both_of_its_checks_are_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    for check in (doctor.check_libero_import(), doctor.check_libero_files()):
        assert check.state == "optional"
        assert "zetta[libero]" in check.fix


@pytest.mark.libero
def test_a_libero_that_does_not_import_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda _: object())
    broken = doctor._Child(False, "", "ImportError: no numpy")
    monkeypatch.setattr(doctor, "_child", lambda *_: broken)
    check = doctor.check_libero_import()

    assert (check.state, check.detail) == ("missing", "ImportError: no numpy")
    assert check.fix


def test_every_extra_of_the_project_is_looked_at() -> None:
    names = list(installation.extras())

    assert {"libero", "drive", "evolve", "mcp", "dev"} <= set(names)
    for name in names:
        check = doctor.check_packages(name)
        assert check.state in ("ok", "optional")
        assert check.state == "ok" or f"zetta[{name}]" in check.fix
