"""`--arm zmq://robot:5701 "put the bowl on the plate"`: which arm, and what it shall do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hw_drivers.arm_parts import served, told
from tests.hw_drivers.test_arm_run import SETUP, run
from zetta.hw_drivers.simple_side import SimpleSide
from zetta.runtime.cli import main as cli
from zetta.runtime.cli.arm_choice import arm_name
from zetta.runtime.errors import ConfigError

URL = "tcp://127.0.0.1:5701"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of set-ups of a home of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "zetta" / "arms"
    folder.mkdir(parents=True)
    return folder


def keep(folder: Path, name: str, url: str = URL) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(SETUP.format(url=url, robot=""))
    return path


def test_an_address_and_a_name_find_the_setup_that_is_kept(kept: Path) -> None:
    bench, _ = keep(kept, "bench"), keep(kept, "other", "tcp://127.0.0.1:5801")
    for text in ("zmq://127.0.0.1:5701", "tcp://127.0.0.1:5701/", "bench"):
        assert arm_name(text) == f"arm:{bench}"
    assert arm_name("some/arm.toml") == "arm:some/arm.toml"


def test_a_link_leads_to_where_the_files_of_a_setup_lie(kept: Path, tmp_path: Path) -> None:
    real = keep(tmp_path, "real")
    (kept / "bench.toml").symlink_to(real)
    assert arm_name("bench") == arm_name("zmq://127.0.0.1:5701") == f"arm:{real}"


def test_an_address_that_nobody_or_several_declare_is_refused(kept: Path) -> None:
    with pytest.raises(ConfigError, match=r"no set-up in .* declares tcp://h:1; cameras.*ln -s"):
        arm_name("zmq://h:1")
    keep(kept, "a"), keep(kept, "b")
    with pytest.raises(ConfigError, match=r"2 set-ups declare tcp://127.0.0.1:5701: a, b"):
        arm_name("zmq://127.0.0.1:5701")
    (kept / "c.toml").write_text("nonsense = 1")
    with pytest.raises(ConfigError, match=r"did you mean 'tcp://127.0.0.1:5701'.*nonsense"):
        arm_name("zmq://127.0.0.1:5702")


def test_an_arm_is_asked_in_words_by_its_address(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    side = SimpleSide()
    with served(side) as running:
        keep(kept, "bench", running.url)
        address = running.url.replace("tcp://", "zmq://")
        common = ("--policy", "random", "--bundle", "none", "--json")
        for number, (words, steps) in enumerate(
            (("put the bowl on the plate", 10), ("wipe the table", 4))
        ):
            out = str(tmp_path / f"run{number}")
            budget = ("--option", f"step_budget={steps}")
            assert run("--arm", address, *common, "--out", out, *budget, words) == 0
            (episode,) = json.loads(capsys.readouterr().out)["episodes"]
            assert (episode["instruction"], episode["ticks"]) == (words, steps)
    assert "send" in told(side)


def test_words_choose_the_task_of_a_simulator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "Put the  red cube on the yellow plate"
    out = ("--out", str(tmp_path / "run"))
    assert run("--sim", "toy", words, "--json", *out) == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert episode["instruction"] == words.replace("  ", " ").replace("P", "p")
    assert episode["task"] > 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("dance",), "no task of toy_pick is 'dance'; known: put the blue cube"),
        (("put the red cube on the green plate", "--task", "1"), "an instruction and --task"),
        ((" ",), "the instruction is empty"),
        (("--option", "instruction=dance"), "only an arm takes any instruction"),
    ],
)
def test_words_that_a_simulator_cannot_judge_are_refused(
    more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--sim", "toy", *more) == 1
    assert said in capsys.readouterr().err


def test_an_agent_is_told_the_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "put the blue cube on the green plate"
    with pytest.raises(SystemExit) as ended:
        cli.main(["drive", "--sim", "toy", words, "--json", "--out", str(tmp_path / "run")])
    assert ended.value.code == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert episode["instruction"] == words
