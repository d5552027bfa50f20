"""A user's own arm, named by module or file and found through the registry."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from zetta.runtime import registry
from zetta.runtime.errors import ConfigError

SIDE = """
class Side:
    facts = "facts"
    def __init__(self, name=""): self.name = name
    def read(self): ...
    def send(self, target): ...
    def hold(self): ...
    def stop(self): ...
    def clear(self): ...
    def close(self): ...

def make():
    return Side()

def named(name):
    return Side(name)

def half():
    return object()

def broken():
    return 1 / 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_arm.py"
    path.write_text(SIDE)
    return path


def test_a_factory_in_a_file_makes_the_arm(file: Path) -> None:
    made = registry.arm(f"python:{file}:make")
    assert type(made).__name__ == "Side"


def test_a_factory_that_wants_the_name_is_given_it_with_its_options(file: Path) -> None:
    name = f"python:{file}:named@serial=3"
    assert registry.arm(name).name == name  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("half", "without facts, read, send, hold, stop, clear, close"),
        ("broken", "ZeroDivisionError"),
        ("mke", "did you mean 'make'"),
    ],
)
def test_what_is_no_arm_is_refused_in_one_sentence(file: Path, attribute: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        registry.arm(f"python:{file}:{attribute}")


def test_unknown_arms_and_half_names_are_explained() -> None:
    with pytest.raises(ConfigError, match=r"unknown arm 'pyton:x:y'; did you mean 'python:'"):
        registry.arm("pyton:x:y")
    with pytest.raises(ConfigError, match=r"expected python:my_package\.arms:make"):
        registry.arm("python:make")
    with pytest.raises(ConfigError, match="no module 'no_such_package'"):
        registry.arm("python:no_such_package:make")


def test_an_installed_arm_is_listed_and_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its module is looked for only when the arm is made.
    entry = EntryPoint("theirs:", "zetta.hw_drivers.python_arm:load", "zetta.arms")
    monkeypatch.setattr(
        registry, "entry_points", lambda group: [entry] if group == "zetta.arms" else []
    )
    assert "theirs:" in registry.names("arms")
    with pytest.raises(ConfigError, match="there is no file"):
        registry.arm("theirs:./nothing.py:make")
