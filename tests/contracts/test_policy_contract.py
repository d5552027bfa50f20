from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.policies.onnx_models import DECLARATION, write_example
from tests.runtime.policies.pi0_models import MISSING, write_checkpoint
from zetta.runtime import registry
from zetta.runtime.core import (
    SENSING_LEVELS,
    ArmState,
    Camera,
    Init,
    Observation,
    Policy,
    PolicySpec,
    Proprio,
    Scene,
    read_only,
)
from zetta.runtime.errors import ConfigError, ZettaError
from zetta.runtime.snapshots import ReseededPolicy, restore, saved
from zetta.sims.toy import ToySimulator

LOOKS = 4
SENTENCES = {"toy-fast": "put the red cube on the green plate"}
"""Instructions by render profile; policies of other profiles get a sentence of LIBERO."""


@cache
def load(name: str) -> Policy | str:
    """Return the policy, or why it cannot be loaded here."""
    try:
        return registry.policy(name)
    except (ModuleNotFoundError, ZettaError) as error:
        return f"{name} cannot be loaded here: {error}"


WRITTEN = ("python:", "onnx:", "pi0:")
"""Schemes of which an example is made here."""
NAMES = [n for n in registry.names("policies") if not n.endswith(":")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples are written."""
    return tmp_path_factory.mktemp("policies")


@pytest.fixture(params=[*NAMES, *WRITTEN])
def name(request: pytest.FixtureRequest, folder: Path) -> str:
    """A registered name, or that of an example; `tiny:` is what `zetta/tiny` is."""
    if request.param == "python:":
        return "python:zetta.runtime.policies.random_actions:RandomPolicy"
    if request.param == "onnx:":
        profile = 'render_profile = "toy-fast"\n[policy.action]'
        return write_example(folder, text=DECLARATION.replace("[policy.action]", profile))
    if request.param == "pi0:":
        if MISSING:
            pytest.skip(f"needs {' and '.join(MISSING)}: pip install 'zetta[pi0]'")
        return f"{write_checkpoint(folder / 'pi0')}@device=cpu"
    return str(request.param)


@pytest.fixture
def policy(name: str) -> Policy:
    loaded = load(name)
    if isinstance(loaded, str):
        pytest.skip(loaded)
    return loaded


def sentence(spec: PolicySpec) -> str:
    if spec.name.startswith(("twin/", "robosuite/")):
        return "put the red cube on the yellow plate"
    return SENTENCES.get(
        spec.render_profile or "", "pick up the alphabet soup and place it in the basket"
    )


def observations(spec: PolicySpec, seed: int) -> list[Observation]:
    """Return what an arm could have seen: real pictures of the toy, or noise for other worlds."""
    if (spec.render_profile or "").startswith("toy-"):
        return toy_observations(spec, seed)
    rng = np.random.default_rng(seed)
    return [synthetic(spec, rng, k * spec.replan_steps / spec.control_hz) for k in range(LOOKS)]


def toy_observations(spec: PolicySpec, seed: int) -> list[Observation]:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(seed)))
    seen = []
    rng = np.random.default_rng(seed)
    for _ in range(LOOKS):
        seen.append(env.observe([c.name for c in spec.cameras], depth=spec.depth))
        for row in rng.uniform(-0.3, 0.3, size=(spec.replan_steps, 7)):
            env.step(row)
    return seen


def synthetic(spec: PolicySpec, rng: np.random.Generator, t: float) -> Observation:
    quat = rng.normal(size=4)
    arm = ArmState(
        read_only(rng.uniform(-0.2, 0.9, 3)),
        read_only(quat / np.linalg.norm(quat)),
        read_only(rng.uniform(-1.0, 1.0, 7)),
        0.06,
    )
    images, depth, cameras = {}, {}, {}
    for c in spec.cameras:
        images[c.name] = read_only(rng.integers(0, 256, (c.height, c.width, 3)), np.uint8)
        k = read_only([[c.width, 0, c.width / 2], [0, c.width, c.height / 2], [0, 0, 1]])
        cameras[c.name] = Camera(c.name, k, read_only(np.eye(4)))
        if spec.depth:
            depth[c.name] = read_only(rng.uniform(0.5, 1.5, (c.height, c.width)), np.float32)
    return Observation(Proprio(t, (arm,)), sentence(spec), images, depth, cameras)


def chunks(policy: Policy, seed: int, seen: list[Observation]) -> list[bytes]:
    policy.reset(sentence(policy.spec), seed)
    return [np.asarray(policy.infer(observation).actions).tobytes() for observation in seen]


def test_policy_spec_is_consistent(policy: Policy) -> None:
    spec = policy.spec
    assert isinstance(policy, Policy)
    assert 1 <= spec.replan_steps <= spec.horizon
    assert spec.control_hz > 0
    assert spec.sensing in SENSING_LEVELS
    assert spec.digest
    action = spec.action
    assert action.size == len(action.low) == len(action.high) == len(action.scale) > 0
    assert policy.spec == spec


def test_chunks_have_the_declared_shape_and_stay_in_range(policy: Policy) -> None:
    spec = policy.spec
    policy.reset(sentence(spec), 0)
    for observation in observations(spec, 0):
        chunk = policy.infer(observation)
        assert chunk.actions.shape == (spec.horizon, spec.action.size)
        assert np.isfinite(chunk.actions).all()
        assert (chunk.actions >= np.array(spec.action.low) - 1e-6).all()
        assert (chunk.actions <= np.array(spec.action.high) + 1e-6).all()
        assert chunk.t_obs == observation.proprio.t
        assert np.isnan(chunk.dispersion) or chunk.dispersion >= 0.0


def test_equal_seeds_and_observations_give_equal_chunks(policy: Policy) -> None:
    seen = observations(policy.spec, 0)
    assert chunks(policy, 7, seen) == chunks(policy, 7, seen)


def test_reset_begins_anew_in_the_middle_of_an_episode(policy: Policy) -> None:
    seen = observations(policy.spec, 0)
    fresh = chunks(policy, 7, seen)
    chunks(policy, 8, observations(policy.spec, 1)[:2])
    assert chunks(policy, 7, seen) == fresh


def test_two_instances_do_not_share_their_draws(name: str, policy: Policy) -> None:
    seen = observations(policy.spec, 0)
    alone = chunks(policy, 7, seen)
    other = registry.policy(name)
    other.reset(sentence(policy.spec), 3)
    policy.reset(sentence(policy.spec), 7)
    between = []
    for observation in seen:
        other.infer(observation)
        between.append(np.asarray(policy.infer(observation).actions).tobytes())
    other.close()
    assert between == alone


@pytest.mark.parametrize("instruction", ["", "   "])
def test_empty_instruction_is_refused(policy: Policy, instruction: str) -> None:
    with pytest.raises(ConfigError):
        policy.reset(instruction, 0)


def test_closing_a_policy_twice_is_harmless(name: str, policy: Policy) -> None:
    another = registry.policy(name)
    another.close()
    another.close()


def test_another_instance_goes_on_where_a_copied_policy_was(name: str, policy: Policy) -> None:
    seen = observations(policy.spec, 0)
    whole = chunks(policy, 7, seen)
    policy.reset(sentence(policy.spec), 7)
    for observation in seen[:2]:
        policy.infer(observation)
    state = saved(policy, "policy")
    other = registry.policy(name)
    restore(other, "policy", state)
    rest = [np.asarray(other.infer(observation).actions).tobytes() for observation in seen[2:]]
    assert rest == whole[2:]
    assert policy is not other
    assert saved(policy, "policy") == state  # the copy shares nothing with its original
    other.close()


def test_a_reseeded_policy_is_as_if_its_draws_had_come_from_that_seed(
    name: str, policy: Policy
) -> None:
    seen = observations(policy.spec, 0)
    assert isinstance(policy, ReseededPolicy)
    policy.reset(sentence(policy.spec), 7)
    policy.infer(seen[0])
    state = saved(policy, "policy")
    ends = []
    for seed in (1, 1, 2):
        restore(policy, "policy", state)
        policy.reseed(seed)
        ends.append((saved(policy, "policy"), policy.infer(seen[1]).actions.tobytes()))
    assert ends[0] == ends[1]
    assert ends[0][0] != ends[2][0]
