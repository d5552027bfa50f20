"""Who vouches for skills: a simulator warns of unsigned ones, an arm refuses them unless told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.hw_drivers.test_arm_calibration import packaged
from tests.runtime.cli.test_calibrate_cli import BRISK
from zetta.runtime.cli.home import key_path
from zetta.runtime.cli.vouched import _note, check_vouched, warn_unsigned
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import load_bundle
from zetta.skills.package import sign
from zetta.skills.signatures import make_key, read_key

SPEC = RunSpec("toy", "toy_pick", 0, Init(0), policy="random", bundle="brisk")
ARM = replace(SPEC, sim="arm:bench.toml")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    _note.cache_clear()


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return packaged(tmp_path / "brisk", BRISK)


def test_a_simulator_warns_once_of_what_an_arm_refuses(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = load_bundle(str(skill))
    for _ in range(2):
        warn_unsigned(SPEC, bundle)
        check_vouched(SPEC, bundle)
    said = capsys.readouterr().err
    assert said == "nobody has signed skill 'brisk'; an arm refuses that (zetta skills sign)\n"
    warn_unsigned(SPEC, load_bundle("starter"))  # it comes with the program
    warn_unsigned(SPEC, load_bundle("none"))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["brisk", "starter"])
def test_an_arm_refuses_unsigned_skills_and_says_what_to_do(skill: Path, name: str) -> None:
    bundle = load_bundle(str(skill) if name == "brisk" else name)
    with pytest.raises(
        ConfigError, match=r"holds unsigned skills? .*, and nobody vouches .* --sign"
    ):
        check_vouched(ARM, bundle)
    agent = replace(ARM, policy="agent/scripted")  # it may call for skills
    with pytest.raises(ConfigError, match="unsigned"):
        check_vouched(agent, bundle)
    check_vouched(ARM, load_bundle("none"))


@pytest.mark.parametrize(
    ("option", "said"), [("shadow", "it only watches here"), ("unsigned", "you said unsigned=yes")]
)
def test_what_only_watches_or_was_told_to_is_taken_and_said(
    skill: Path, option: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_vouched(replace(ARM, options={option: "yes"}), load_bundle(str(skill)))
    assert capsys.readouterr().err == f"nobody has signed skill 'brisk'; taken, for {said}\n"


def test_a_signature_is_taken_and_one_of_another_key_is_named(
    skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = make_key(key_path())
    sign(skill, read_key(key_path()))
    check_vouched(ARM, load_bundle(str(skill)))
    assert capsys.readouterr().err == ""
    make_key(key_path(), force=True)
    check_vouched(ARM, load_bundle(str(skill)))
    assert f"signed by {own}, not by your key" in capsys.readouterr().err
