"""The doctor tells what is missing and the line that fixes it, and exits 1 when it matters."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from zetta.runtime.cli import doctor, installation, sims
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.doctor import Check
from zetta.runtime.policies import devices


def run_doctor(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> int:
    """Run `zetta doctor --json` on given findings and return its exit code."""
    monkeypatch.setattr(doctor, "checks", lambda: iter(checks))
    with pytest.raises(SystemExit) as left:
        cli.main(["doctor", "--json"])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_something_required_and_missing_exits_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_doctor(monkeypatch, Check("base", "missing", "numpy is missing", "pip install it"))

    assert code == 1
    assert json.loads(capsys.readouterr().out) == {
        "healthy": False,
        "checks": [
            {
                "name": "base",
                "state": "missing",
                "detail": "numpy is missing",
                "fix": "pip install it",
            }
        ],
    }


def test_something_optional_and_missing_exits_zero(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_doctor(monkeypatch, Check("extra gpu", "optional", "missing", "pip install it"))

    assert code == 0
    assert json.loads(capsys.readouterr().out)["healthy"] is True


def test_the_installation_that_runs_this_test_has_its_base() -> None:
    assert doctor.check_python().state == "ok"
    assert doctor.check_packages(installation.BASE).state == "ok"


def test_mujoco_belongs_to_one_extra_and_is_pinned() -> None:
    assert "mujoco" not in [p.name for p in installation.packages(installation.BASE)]
    (mujoco,) = [p for p in installation.packages("libero") if p.name == "mujoco"]
    assert mujoco.wanted.startswith("==")


def test_a_package_of_another_version_is_named_with_the_wanted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(installation, "requires", lambda _: ["numpy==1.0", "no-such-package>=2"])
    check = doctor.check_packages(installation.BASE)

    assert check.state == "missing"
    assert "instead of ==1.0" in check.detail
    assert "no-such-package is missing" in check.detail
    assert check.fix.endswith("-m pip install zetta")


def test_a_source_tree_that_is_not_installed_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "is_installed", lambda: False)

    assert doctor.check_installed().fix == f"{sys.executable} -m pip install -e ."
    assert doctor.check_packages("libero").fix.endswith("pip install -e '.[libero]'")


def test_a_place_that_cannot_be_written_is_missing() -> None:
    assert doctor.check_run_folder(Path("/proc")).state == "missing"


def test_a_missing_library_names_its_debian_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "LIBRARIES", {"libnone1": "libnone.so.1"})
    check = doctor.check_libraries()

    assert "libnone1" in check.detail
    assert "apt-get install -y libnone1" in check.fix


@pytest.mark.libero
def test_one_backend_that_draws_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    rendering = pytest.importorskip("zetta.sims.libero.rendering", reason="needs zetta[libero]")
    errors = {"egl": "no EGL display", "osmesa": None}
    monkeypatch.setattr(rendering, "probe_gl", errors.__getitem__)

    assert [c.state for c in doctor.check_rendering()] == ["optional", "ok"]


@pytest.mark.libero
def test_without_any_backend_the_first_errors_and_the_packages_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendering = pytest.importorskip("zetta.sims.libero.rendering", reason="needs zetta[libero]")
    monkeypatch.setattr(rendering, "probe_gl", lambda backend: f"no {backend} display")
    checks = list(doctor.check_rendering())

    assert [c.detail for c in checks] == ["no egl display", "no osmesa display"]
    assert all(c.state == "missing" and "libegl1" in c.fix for c in checks)


def test_sims_list_names_a_missing_simulator_and_its_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sims, "NEEDS", {"libero": ("no_such_package",)})
    states = {s.name: s for s in sims.sim_states()}

    assert states["toy"].state == "ready"
    assert states["libero"].state == "missing"
    assert "zetta[libero]" in states["libero"].fix


def fake_torch(cuda: str | None, devices: int) -> ModuleType:
    """Return what the doctor looks at of torch."""
    torch = ModuleType("torch")
    torch.__dict__["__version__"] = "2.13.0"
    torch.__dict__["version"] = SimpleNamespace(cuda=cuda)
    torch.__dict__["cuda"] = SimpleNamespace(device_count=lambda: devices)
    return torch


@pytest.mark.parametrize(
    ("torch", "driver", "said"),
    [
        (None, "libc.so.6", "torch is not installed"),
        (fake_torch(None, 0), "libc.so.6", "built for the CPU only"),
        (fake_torch("12.8", 0), "libnone.so.1", "no NVIDIA driver: libnone.so.1"),
        (fake_torch("12.8", 0), "libc.so.6", "shows no device"),
        (fake_torch("12.8", 2), "libc.so.6", ""),
    ],
)
def test_the_doctor_says_why_a_gpu_is_not_used(
    torch: ModuleType | None, driver: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "find_spec", lambda name: torch and object())
    monkeypatch.setattr(devices, "import_module", lambda name: torch)
    monkeypatch.setattr(devices, "DRIVER", driver)
    check = doctor.check_cuda()

    assert check.state == ("optional" if said else "ok")
    assert said in check.detail
