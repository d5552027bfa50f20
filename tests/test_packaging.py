"""The wheel and the sdist: what a user installs must hold everything and find its own files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
FOLDERS = ("runtime", "critics", "primitives", "skills", "sims", "hw_drivers")
PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE")
CARRIED = (
    "*.py", "*.md", "*.toml", "*.json", "*.onnx", "*.safetensors", "*.j2", "*.html", "*.css",
    "*.js", "py.typed",
)  # fmt: skip
PROBE_FILES = (
    "SKILL.md",
    "params.toml",
    "evidence.json",
    "detector.onnx",
    "detector.safetensors",
    "replay/fires.parquet",
)
"""One file of each kind of package data, planted as a skill so that no kind goes untested."""
ROOM_FILES = (
    "__init__.py",
    "static/app.js",
    "static/pictures/logo.svg",
    "templates/page.html",
    "templates/parts/head.html.j2",
)
"""A room with a page: whatever lies in its `static` and `templates` is carried."""
OWN_FOLDERS = ("static", "templates")

pytestmark = pytest.mark.timeout(300)


def call(*line: str | Path, folder: Path) -> str:
    """Run a command in `folder` and return its stdout."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ended = subprocess.run(
        [str(part) for part in line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, f"{line} failed:\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a private copy of the source tree with one planted skill.

    A copy, because building in place leaves a `build/` folder whose stale files end up in wheels.
    """
    copy = tmp_path_factory.mktemp("tree")
    for name in PROJECT_FILES:
        shutil.copy(ROOT / name, copy / name)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        ROOT / ".namespace",
        copy / ".namespace",
        symlinks=True,
        ignore=shutil.ignore_patterns("*.egg-info"),
    )
    for name in PROBE_FILES:
        planted = copy / "skills" / "library" / "probe" / name
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_bytes(b"planted")
    for name in ROOM_FILES:
        planted = copy / "runtime" / "probe_room" / name
        planted.parent.mkdir(parents=True, exist_ok=True)
        planted.write_bytes(b"")
    return copy


@pytest.fixture(scope="module")
def artefacts(tree: Path) -> Mapping[str, Path]:
    """Build the wheel and the sdist of `tree`."""
    call(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", folder=tree)
    dist = tree / "dist"
    return {"wheel": next(dist.glob("*.whl")), "sdist": next(dist.glob("*.tar.gz"))}


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def zetta(
    request: pytest.FixtureRequest,
    artefacts: Mapping[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Install one artefact into a fresh environment and return its `zetta` command.

    Everything zetta depends on is borrowed from the environment of the tests.
    """
    home = tmp_path_factory.mktemp(request.param)
    wheel = artefacts[request.param]
    if request.param == "sdist":
        make = ("-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation")
        call(sys.executable, *make, "--wheel-dir", home, wheel, folder=home)
        wheel = next(home.glob("*.whl"))
    venv.create(home / "venv", with_pip=False)
    python = home / "venv" / "bin" / "python"
    install = ("-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    call(sys.executable, *install, folder=home)
    # Only now, so that pip does not see the zetta of the tests. Its own `.pth` is not followed.
    site = next((home / "venv" / "lib").glob("python*/site-packages"))
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "venv" / "bin" / "zetta"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Return a folder in which every name of ours is taken by something else."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    (tmp_path / "skills" / "library" / "foreign").mkdir(parents=True)
    (tmp_path / "skills" / "library" / "foreign" / "SKILL.md").write_text("not ours")
    return tmp_path


def packaged(tree: Path) -> set[str]:
    """Return every file of `tree` that must be carried, as `zetta/<folder>/...`."""
    kept = {
        path.relative_to(tree)
        for folder in FOLDERS
        for pattern in CARRIED
        for path in (tree / folder).rglob(pattern)
    }
    kept |= {
        path.relative_to(tree)
        for name in OWN_FOLDERS
        for folder in tree.glob(f"*/**/{name}")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "build" not in path.parts
    }
    return {f"zetta/{path.as_posix()}" for path in kept}


def test_wheel_holds_code_and_data_and_nothing_else(
    tree: Path, artefacts: Mapping[str, Path]
) -> None:
    names = set(zipfile.ZipFile(artefacts["wheel"]).namelist())

    assert packaged(tree) <= names
    assert {f"zetta/skills/library/probe/{name}" for name in PROBE_FILES} <= names
    assert {f"zetta/runtime/probe_room/{name}" for name in ROOM_FILES} <= names
    assert {name.split("/")[0] for name in names} == {"zetta", f"zetta-{VERSION}.dist-info"}
    assert {name.split("/")[1] for name in names if name.startswith("zetta/")} == set(FOLDERS)
    assert not [name for name in names if "__pycache__" in name]


def test_sdist_holds_the_same_files(tree: Path, artefacts: Mapping[str, Path]) -> None:
    with tarfile.open(artefacts["sdist"]) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}

    assert {f".namespace/{name}" for name in packaged(tree)} <= names
    assert set(PROJECT_FILES) <= names


def test_installed_command_lists_its_own_skills_and_not_those_of_the_folder(
    zetta: Path, elsewhere: Path
) -> None:
    listed = json.loads(call(zetta, "skills", "list", "--json", folder=elsewhere))["skills"]

    assert "probe" in [skill["name"] for skill in listed]
    assert "foreign" not in [skill["name"] for skill in listed]
    assert all(Path(skill["path"]).is_relative_to(zetta.parents[1]) for skill in listed)


def test_installed_command_runs_a_toy_episode(zetta: Path, elsewhere: Path) -> None:
    answer = json.loads(call(zetta, "run", "--sim", "toy", "--json", folder=elsewhere))

    (episode,) = answer["episodes"]
    assert episode["error"] is None
    assert episode["ticks"] > 0
    assert (elsewhere / "runs").is_dir()


def test_installed_command_knows_its_version_and_its_simulators(
    zetta: Path, elsewhere: Path
) -> None:
    listed = json.loads(call(zetta, "sims", "list", "--json", folder=elsewhere))["sims"]

    assert call(zetta, "--version", folder=elsewhere) == f"zetta {VERSION}\n"
    assert {"toy", "libero", "twin"} <= {sim["name"] for sim in listed}
    assert "ready" in [sim["state"] for sim in listed if sim["name"] == "toy"]


@pytest.mark.parametrize("zetta", ["wheel"], indirect=True)
def test_installed_command_is_healthy_beside_folders_of_its_names(
    zetta: Path, elsewhere: Path
) -> None:
    answer = json.loads(call(zetta, "doctor", "--json", folder=elsewhere))
    found = {check["name"]: check for check in answer["checks"]}

    assert answer["healthy"]
    assert str(zetta.parents[1]) in found["zetta"]["detail"]
    assert found["models"]["state"] == "ok"
