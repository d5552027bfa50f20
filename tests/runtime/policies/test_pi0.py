"""pi0 in this process, with a few random weights: plumbing, determinism and what is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.policies.pi0_models import (
    MISSING,
    PROCESSOR,
    SENTENCE,
    TOLD,
    A,
    H,
    write_checkpoint,
    write_tokenizer,
)
from zetta.runtime import registry
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import Array, Init, Observation, Policy, RunSpec, Scene, read_only
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.devices import choose_device, why_no_cuda
from zetta.runtime.policies.pi0.folder import Preparation
from zetta.sims.toy import ToySimulator

pytestmark = [
    pytest.mark.pi0,
    pytest.mark.skipif(
        bool(MISSING), reason=f"needs {' and '.join(MISSING)}: pip install 'zetta[pi0]'"
    ),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pi0")
    write_checkpoint(folder)
    return folder


@pytest.fixture
def copied(checkpoint: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(checkpoint, tmp_path / "copy"))


@pytest.fixture(scope="module")
def policy(checkpoint: Path) -> Policy:
    return registry.policy(f"pi0:{checkpoint}@device=cpu")


def observed(index: int = 0) -> Observation:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(index)))
    return env.observe(["front", "wrist"])


def answer(policy: Policy, seed: int = 0, observation: Observation | None = None) -> Array:
    policy.reset(SENTENCE, seed)
    return policy.infer(observation or observed()).actions


def test_an_episode_of_the_toy_runs_with_it(checkpoint: Path) -> None:
    assembler = Assembler()
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy=f"pi0:{checkpoint}@device=cpu,samples=2")
    assembled = assembler.assemble(spec)
    with assembled.episode as episode:
        episode.begin()
        for _ in range(9):
            episode.tick()
        signals = episode.snapshot()
    assembler.close()

    assert signals.tick == 9
    assert signals.driver.inferences == 3
    assert signals.driver.chunk is not None
    assert signals.driver.chunk.dispersion > 0.0


def test_equal_seeds_give_equal_actions_in_two_loadings(policy: Policy, checkpoint: Path) -> None:
    other = registry.policy(f"pi0:{checkpoint}@device=cpu")

    assert np.array_equal(answer(policy, 3), answer(other, 3))
    assert not np.array_equal(answer(policy, 3), answer(policy, 4))


def test_the_warm_up_leaves_nothing_behind(checkpoint: Path) -> None:
    fresh = registry.policy(f"pi0:{checkpoint}@device=cpu")
    with pytest.raises(SpecMismatch, match="reset"):
        fresh.infer(observed())


@pytest.mark.parametrize("what", ["front", "wrist", "state", "instruction"])
def test_every_input_reaches_the_network(policy: Policy, what: str) -> None:
    seen = observed()
    before = answer(policy, 0, seen)
    if what in seen.images:
        flipped = {**seen.images, what: read_only(255 - seen.images[what], np.uint8)}
        after = answer(policy, 0, replace(seen, images=flipped))
    elif what == "state":
        arm = replace(seen.proprio.arms[0], gripper_opening=-0.5)
        after = answer(policy, 0, replace(seen, proprio=replace(seen.proprio, arms=(arm,))))
    else:
        policy.reset("put the green cube on the red plate", 0)
        after = policy.infer(seen).actions

    assert not np.allclose(before, after, atol=1e-6)


def test_actions_are_the_networks_own_in_the_units_of_the_training_data(
    policy: Policy, copied: Path
) -> None:
    statistics = {"actions_mean": [0.0] * A, "actions_std": [0.15] * A}
    text = json.dumps({**PROCESSOR, **statistics})
    (copied / "processor_config.json").write_text(text)
    (copied / "zetta.toml").write_text(TOLD.replace("clip = true", ""))
    half = answer(registry.policy(f"pi0:{copied}@device=cpu"))
    shift = np.array(PROCESSOR["actions_mean"])

    np.testing.assert_allclose(answer(policy), np.clip(half * 2.0 + shift, -1, 1), atol=1e-6)


def test_more_steps_are_another_policy(policy: Policy, checkpoint: Path) -> None:
    finer = registry.policy(f"pi0:{checkpoint}@device=cpu,steps=9")

    assert finer.spec.digest != policy.spec.digest
    assert not np.allclose(answer(finer), answer(policy), atol=1e-6)


def test_several_samples_give_a_dispersion_and_do_the_same(
    policy: Policy, checkpoint: Path
) -> None:
    several = registry.policy(f"pi0:{checkpoint}@device=cpu,samples=4")
    several.reset(SENTENCE, 0)
    chunk = several.infer(observed())

    assert chunk.dispersion > 0.0
    # Not to the last bit: how a product is added up depends on the size of the batch.
    np.testing.assert_allclose(chunk.actions, answer(policy), atol=1e-5)
    policy.reset(SENTENCE, 0)
    assert np.isnan(policy.infer(observed()).dispersion)


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("instruction", ["", "  \n"])
def test_an_empty_instruction_is_refused(policy: Policy, instruction: str) -> None:
    with pytest.raises(ConfigError, match="is empty"):
        policy.reset(instruction, 0)


def test_a_prompt_that_is_too_long_is_refused_and_not_cut(policy: Policy) -> None:
    policy.reset("cube " * 46, 0)  # with what begins and ends it, 48 tokens
    with pytest.raises(ConfigError, match=r"49 tokens .* up to 48"):
        policy.reset("cube " * 47, 0)


def test_a_missing_or_foreign_picture_is_refused(policy: Policy) -> None:
    policy.reset(SENTENCE, 0)
    seen = observed()
    with pytest.raises(SpecMismatch, match="no picture of the camera 'wrist'"):
        policy.infer(replace(seen, images={"front": seen.images["front"]}))
    swapped = {"front": seen.images["wrist"], "wrist": seen.images["front"]}
    with pytest.raises(SpecMismatch, match=r"expected \(48, 64, 3\)"):
        policy.infer(replace(seen, images=swapped))


def test_weights_that_lack_a_part_are_refused(copied: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(copied / "model.safetensors")
    kept = {name: array for name, array in weights.items() if "action_out_proj" not in name}
    save_file(kept, copied / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match="lack 2 tensors, such as action_out_proj"):
        registry.policy(f"pi0:{copied}@device=cpu")


def test_a_tokenizer_of_another_model_is_refused(copied: Path) -> None:
    write_tokenizer(copied, ("<pad>", "<eos>", "<bos>", "<unk>", "\n", "a"))
    with pytest.raises(ConfigError, match="belong to two models"):
        registry.policy(f"pi0:{copied}@device=cpu")


def test_a_damaged_or_incomplete_folder_is_refused_without_asking_a_network(copied: Path) -> None:
    (copied / "tokenizer.json").unlink()
    with pytest.raises(ConfigError, match="no usable tokenizer"):
        registry.policy(f"pi0:{copied}@device=cpu")
    (copied / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ConfigError, match="cannot be loaded") as error:
        registry.policy(f"pi0:{copied}@device=cpu")
    assert "\n" not in str(error.value)


# --------------------------------------------------------------------------- pictures, devices


def test_pictures_are_prepared_as_transformers_does_it() -> None:
    from zetta.runtime.policies.pi0.network import prepared

    y, x, c = np.mgrid[0:6, 0:8, 0:3]
    picture = ((37 * y * y + 29 * x + 61 * c * x + 11) % 256).astype(np.uint8)
    # What PI0ImageProcessor of transformers 5.23 with torchvision 0.28 makes of it, as pixels.
    expected = np.array(
        [
            [[59, 111, 146, 210], [131, 180, 142, 73], [142, 190, 142, 61], [127.5] * 4],
            [[102, 130, 144, 114], [153, 108, 102, 130], [101, 95, 101, 133], [127.5] * 4],
            [[96, 157, 155, 114], [144, 134, 144, 141], [152, 119, 100, 153], [127.5] * 4],
        ]
    )
    to = Preparation((4, 4), (4, 4), (0.5,) * 3, (0.5,) * 3, 1 / 255, 1)
    made = (prepared(picture, to).numpy() * 0.5 + 0.5) * 255
    # Other processors scale bytes by another routine, which may round differently.
    np.testing.assert_allclose(made, expected, atol=1.01)


def test_a_device_that_is_not_there_says_why() -> None:
    for wanted, said in (("gpu", "expected auto, cpu, cuda"), ("cuda:x", "expected auto, cpu")):
        with pytest.raises(ConfigError, match=said):
            choose_device(wanted)
    reason = why_no_cuda()
    if reason is not None:
        with pytest.raises(ConfigError, match="use device=cpu"):
            choose_device("cuda:0")
        assert str(choose_device("auto")) == "cpu"


@pytest.mark.gpu
def test_a_gpu_gives_the_actions_of_the_cpu(policy: Policy, checkpoint: Path) -> None:
    reason = why_no_cuda()
    if reason is not None:
        pytest.skip(f"needs a CUDA device: {reason}")
    faster = registry.policy(f"pi0:{checkpoint}@device=cuda:0")
    rough = registry.policy(f"pi0:{checkpoint}@device=cuda:0,dtype=bfloat16")

    assert answer(faster).shape == (H, A)
    np.testing.assert_allclose(answer(faster), answer(policy), atol=2e-3)
    assert np.abs(answer(rough) - answer(policy)).mean() < 0.1
