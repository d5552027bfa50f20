"""What RoboCasa offers is told without RoboCasa."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from zetta.runtime.cli.run_plan import Wishes, plan
from zetta.runtime.core import Init
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims import probes
from zetta.sims.apart import ApartSimulator, NamesTasks
from zetta.sims.robocasa import engine, kitchen
from zetta.sims.robocasa.robot import ACTION, REST
from zetta.sims.robocasa.simulator import RobocasaSimulator
from zetta.sims.robocasa.tasks import ATOMIC, BUNDLED, SPLITS, TASKS, kitchens

HORIZONS = {
    "CloseBlenderLid": 900, "CloseFridge": 900, "CloseToasterOvenDoor": 450, "CoffeeSetupMug": 600,
    "NavigateKitchen": 450, "OpenCabinet": 1050, "OpenDrawer": 750, "OpenStandMixerHead": 450,
    "PickPlaceCounterToCabinet": 750, "PickPlaceCounterToStove": 600,
    "PickPlaceDrawerToCounter": 750, "PickPlaceSinkToCounter": 900,
    "PickPlaceToasterToCounter": 600, "SlideDishwasherRack": 450, "TurnOffStove": 750,
    "TurnOnElectricKettle": 450, "TurnOnMicrowave": 450, "TurnOnSinkFaucet": 600,
}  # fmt: skip
"""Of RoboCasa365's release 1.0.1."""


@pytest.fixture
def robocasa() -> RobocasaSimulator:
    return RobocasaSimulator()


def test_there_are_eighteen_atomic_tasks_with_the_horizons_of_the_release() -> None:
    assert {task.name: task.max_steps for task in ATOMIC} == HORIZONS
    assert len(ATOMIC) == 18


def test_tasks_are_named_and_counted_by_suite(robocasa: RobocasaSimulator) -> None:
    assert isinstance(robocasa, NamesTasks)
    assert robocasa.suites() == {
        BUNDLED: 4, "robocasa_target": 18, "robocasa_pretrain": 18, "robocasa_all": 18,
    }  # fmt: skip
    for suite, listed in TASKS.items():
        for index, task in enumerate(listed):
            assert robocasa.task_number(suite, task.name) == index
            assert robocasa.task(suite, index).max_steps == task.max_steps
            assert robocasa.init_count(suite, index) > 1


def test_kitchens_of_training_are_none_of_the_target() -> None:
    target, pretrain = set(kitchens("target")), set(kitchens("pretrain"))
    assert not {layout for layout, _ in target} & {layout for layout, _ in pretrain}
    assert not {style for _, style in target} & {style for _, style in pretrain}
    assert set(SPLITS) == set(TASKS)


def test_unknown_names_are_told_with_the_nearest(robocasa: RobocasaSimulator) -> None:
    with pytest.raises(ConfigError, match="did you mean 'OpenDrawer'"):
        robocasa.task_number(BUNDLED, "OpenDrawr")
    with pytest.raises(ConfigError, match="--suite robocasa_target"):
        robocasa.task_number(BUNDLED, "TurnOffStove")
    with pytest.raises(ConfigError, match="tasks 0-3"):
        robocasa.task(BUNDLED, 4)


def test_a_task_can_be_chosen_by_its_name(robocasa: RobocasaSimulator) -> None:
    apart = ApartSimulator(robocasa, "python")
    specs = plan(Wishes("robocasa", tasks="CloseDrawer"), apart)
    assert [(s.suite, s.task, s.layout, s.policy) for s in specs] == [
        (BUNDLED, 1, Init(0), "random")
    ]


def test_a_robosuite_without_the_argument_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, argument in (("old_suite", "seed"), ("new_suite", "load_model_on_init=True")):
        (tmp_path / f"{name}.py").write_text(
            f"class Base:\n    def __init__(self, {argument}): ...\n", encoding="utf-8"
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = "{}:Base:load_model_on_init"
    assert probes.refused_argument(asked.format("new_suite")) == ""
    said = probes.refused_argument(asked.format("old_suite"))
    assert "does not take load_model_on_init" in said
    assert "cannot be imported" in probes.refused_argument(asked.format("no_suite"))


def test_without_assets_a_kitchen_of_the_benchmark_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(engine.ASSETS, raising=False)
    with pytest.raises(InfraError, match=r"needs? assets.*zetta sims assets robocasa"):
        engine.build(ATOMIC[0], "target", 20.0)
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "wood.png").touch()
    monkeypatch.setenv(engine.ASSETS, str(tmp_path))
    with pytest.raises(InfraError, match=r"lacks fixtures/sinks, .*zetta sims assets robocasa"):
        engine.build(ATOMIC[0], "target", 20.0)
    assert engine.missing(tmp_path)[0] == "fixtures/sinks"


def test_the_action_has_an_arm_and_columns_that_rest() -> None:
    assert (ACTION.size, ACTION.arms_size) == (12, 7)
    assert len(ACTION.low) == len(ACTION.high) == len(ACTION.scale) == 12
    assert ACTION.rest == REST
    inside = zip(ACTION.low[7:], REST, ACTION.high[7:], strict=True)
    assert all(low <= rest <= high for low, rest, high in inside)
    # A row of RoboCasa's own limits, turned into the world, is still one of ours.
    corner, angle = np.array([1.0, 1.0]), np.linspace(0, 2 * np.pi, 60)
    turned = np.cos(angle) * corner[0] - np.sin(angle) * corner[1]
    assert np.abs(turned).max() <= ACTION.high[0] + 1e-9


def test_flat_colours_follow_from_the_names_of_pictures() -> None:
    assert kitchen.colour("textures/metals/bright_metal.png") == (40, 44, 56)
    assert kitchen.colour("textures/flat/dark_gray.png") != kitchen.colour("textures/flat/gray.png")
    strange = kitchen.colour("textures/odd/unheard_of.png")
    assert strange == kitchen.colour("textures/odd/unheard_of.png")
    assert all(0 <= part < 256 for part in strange)
