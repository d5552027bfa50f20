"""Simulators that live in an environment of their own refuse any other interpreter."""

from __future__ import annotations

import pytest

from zetta.runtime.core import Simulator
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims import own_interpreter
from zetta.sims.maniskill.simulator import ManiSkillSimulator
from zetta.sims.robocasa.simulator import RobocasaSimulator
from zetta.sims.robosuite.simulator import RobosuiteSimulator
from zetta.sims.robotwin.simulator import RobotwinSimulator

SIMULATORS = (ManiSkillSimulator, RobocasaSimulator, RobosuiteSimulator, RobotwinSimulator)


@pytest.mark.parametrize("found", ["0.0.1", None])
@pytest.mark.parametrize("kind", SIMULATORS)
def test_another_version_is_refused_with_the_line_that_installs_it(
    kind: type[Simulator], found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if found is None:
            raise own_interpreter.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(own_interpreter, "version", version)
    simulator = kind()
    suite = next(iter(simulator.suites()))
    with pytest.raises(InfraError, match=f"{found or 'none'}, .*zetta sims install {kind.name}"):
        simulator.make(suite, 0)


@pytest.mark.parametrize("kind", SIMULATORS)
def test_lists_agree_and_unknown_names_are_refused(kind: type[Simulator]) -> None:
    simulator = kind()
    for suite, count in simulator.suites().items():
        assert simulator.task(suite, count - 1).instruction
        assert simulator.init_count(suite, 0) > 0
        with pytest.raises(ConfigError, match=str(count)):
            simulator.make(suite, count)
    with pytest.raises(ConfigError, match="nowhere"):
        simulator.task("nowhere", 0)
