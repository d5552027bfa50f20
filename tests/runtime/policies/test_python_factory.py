"""A user's own factory: found by module or by file, and what it makes is checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from zetta.runtime import registry
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import Init, RunSpec
from zetta.runtime.errors import ConfigError, SpecMismatch, ZettaError

SOURCE = """
from dataclasses import dataclass, replace
import numpy as np
from zetta.runtime.core import ActionChunk, PolicySpec
from zetta.sims.toy import action_spec

@dataclass
class Still:
    spec: PolicySpec

    def reset(self, instruction, seed): self.seed = seed
    def infer(self, observation): return ActionChunk(np.zeros((4, 7)), observation.proprio.t)
    def close(self): pass

SPEC = PolicySpec("still", action_spec(), (), 2, 4, digest="still/1")

def make(): return Still(SPEC)
def named(name): return Still(replace(SPEC, name=name))
def optional(name="nobody"): return Still(replace(SPEC, name=name))
def raising(): raise KeyError("weights")
def odd(): return Still({"name": "still"})
def contradictory(): return Still(replace(SPEC, replan_steps=9, control_hz=0.0))
def of_a_class(): return Still
def half():
    class Half:
        spec = SPEC
        def infer(self, observation): ...
    return Half()
def refusing():
    from zetta.runtime.errors import ConfigError
    raise ConfigError("the weights are on the other disk")
constant = 3
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SOURCE)
    return "python:./mine.py"


def test_a_factory_of_a_file_drives_an_episode(file: str) -> None:
    assembler = Assembler()
    assembled = assembler.assemble(RunSpec("toy", "toy_pick", 0, Init(0), policy=f"{file}:make"))
    result = assembled.episode.run()
    assembler.close()

    assert result.sources == {"policy": result.ticks}
    assert assembled.facts.policy is not None
    assert assembled.facts.policy.digest == "still/1"


def test_a_factory_is_given_the_name_only_when_it_needs_one(file: str) -> None:
    name = f"{file}:named@anything=1"

    assert registry.policy(name).spec.name == name
    assert registry.policy(f"{file}:optional").spec.name == "nobody"


def test_a_module_that_is_installed_is_imported() -> None:
    name = "python:zetta.runtime.policies.random_actions:RandomPolicy"
    assert registry.policy(name).spec.name == "random"


def test_two_files_of_one_name_do_not_hide_each_other(file: str, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "mine.py"
    other.parent.mkdir()
    other.write_text(SOURCE.replace('"still/1"', '"still/2"'))

    assert registry.policy(f"{file}:make").spec.digest == "still/1"
    assert registry.policy(f"python:{other}:make").spec.digest == "still/2"


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        ("mak", "did you mean 'make'?"),
        ("constant", "is a int; expected a function"),
        ("raising", "failed with KeyError: 'weights'"),
        ("odd", "is a dict; expected a PolicySpec"),
        ("half", "without reset, close"),
        ("of_a_class", "made the class Still; expected an object"),
        ("contradictory", "control_hz is 0.0"),
        ("contradictory", "replan_steps is 9 and horizon 4"),
        ("refusing", "the weights are on the other disk"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(file: str, factory: str, said: str) -> None:
    with pytest.raises(ZettaError) as error:
        registry.policy(f"{file}:{factory}")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_module_that_is_not_there_says_how_a_file_is_named(file: str) -> None:
    with pytest.raises(ConfigError, match=r"write python:\./mine\.py:FACTORY"):
        registry.policy("python:mine:make")
    with pytest.raises(ConfigError, match="no module 'minee' to import; install it"):
        registry.policy("python:minee:make")


def test_what_a_module_itself_lacks_is_not_taken_for_the_module(file: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import no_such_package_of_theirs\n")
    with pytest.raises(ConfigError, match="No module named 'no_such_package_of_theirs'"):
        registry.policy(f"{file}:make")


def test_a_file_with_a_mistake_in_it_names_the_mistake(file: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def make(:\n")
    with pytest.raises(ConfigError, match="SyntaxError"):
        registry.policy(f"{file}:make")
    with pytest.raises(ConfigError, match="there is no file"):
        registry.policy("python:./other.py:make")


@pytest.mark.parametrize("name", ["python:", "python:mine", "python::make", "python:mine:"])
def test_an_incomplete_name_shows_a_complete_one(name: str) -> None:
    with pytest.raises((ConfigError, SpecMismatch), match=r"python:\./my_policy\.py:make"):
        registry.policy(name)
