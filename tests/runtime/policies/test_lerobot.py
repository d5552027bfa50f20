"""Policies of LeRobot: the folder is checked everywhere, the network where lerobot is installed."""

from __future__ import annotations

import copy
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from zetta.runtime import registry
from zetta.runtime.core import Init, Observation, Policy, Scene
from zetta.runtime.errors import ConfigError, SpecMismatch, ZettaError
from zetta.runtime.policies.lerobot.folder import digest_of, read_folder
from zetta.sims.toy import ToySimulator

SENTENCE = "put the red cube on the green plate"
H, A, STATE = 8, 7, 5
MISSING = [name for name in ("torch", "lerobot") if find_spec(name) is None]
needs_lerobot = pytest.mark.skipif(
    bool(MISSING), reason=f"needs {' and '.join(MISSING)} (docs/policies.md says how)"
)

TOLD = """
state = ["ee_pos", "gripper_fingers"]
views = ["top", "hand"]
clip = true

[policy]
control_hz = 20
horizon = 8
replan_steps = 4

[policy.action]
kind = "delta_pose"
names = ["dx", "dy", "dz", "rx", "ry", "rz", "gripper"]
low = [-1, -1, -1, -1, -1, -1, -1]
high = [1, 1, 1, 1, 1, 1, 1]
scale = [0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1]

[[policy.cameras]]
name = "front"
height = 48
width = 64

[[policy.cameras]]
name = "wrist"
height = 48
width = 48
mount = "wrist"
"""
INPUTS: dict[str, Any] = {
    "observation.images.top": {"type": "VISUAL", "shape": [3, 48, 64]},
    "observation.images.hand": {"type": "VISUAL", "shape": [3, 48, 48]},
    "observation.state": {"type": "STATE", "shape": [STATE]},
}
OUTPUTS: dict[str, Any] = {"action": {"type": "ACTION", "shape": [A]}}
CONFIG = {"type": "act", "n_obs_steps": 1, "input_features": INPUTS, "output_features": OUTPUTS}
MODES = {"VISUAL": "IDENTITY", "STATE": "MEAN_STD", "ACTION": "MIN_MAX"}


def pipeline(step: str, features: dict[str, Any], state_file: str) -> dict[str, Any]:
    return {
        "name": "policy",
        "steps": [
            {"registry_name": "to_batch_processor", "config": {}},
            {
                "registry_name": step,
                "config": {"eps": 1e-8, "features": features, "norm_map": MODES},
                "state_file": state_file,
            },
        ],
    }


BEFORE = pipeline("normalizer_processor", {**INPUTS, **OUTPUTS}, "before.safetensors")
AFTER = pipeline("unnormalizer_processor", OUTPUTS, "after.safetensors")


def write_folder(folder: Path, told: str = TOLD, **files: Any) -> str:
    """Write all but the weights; return the policy's name."""
    (folder / "zetta.toml").write_text(told)
    (folder / "config.json").write_text(json.dumps(files.get("config", CONFIG)))
    (folder / "policy_preprocessor.json").write_text(json.dumps(files.get("before", BEFORE)))
    (folder / "policy_postprocessor.json").write_text(json.dumps(files.get("after", AFTER)))
    state = {"observation.state.mean": np.zeros(STATE), "observation.state.std": np.ones(STATE)}
    save_file(state, folder / "before.safetensors")
    save_file({"action.min": -np.ones(A), "action.max": np.ones(A)}, folder / "after.safetensors")
    return f"lerobot:{folder}"


def refusal(folder: Path, *args: Any, **files: Any) -> str:
    write_folder(folder, *args, **files)
    with pytest.raises(ZettaError) as error:
        read_folder(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def without(file: Path, name: str) -> None:
    tensors = load_file(file)
    del tensors[name]
    save_file(tensors or {"nothing": np.zeros(1)}, file)


def test_a_folder_whose_files_agree_is_read(tmp_path: Path) -> None:
    write_folder(tmp_path)
    read = read_folder(tmp_path)

    assert read.kind == "act"
    assert read.sizes == ((48, 64), (48, 48))


@pytest.mark.parametrize(
    ("file", "name", "said"),
    [
        ("before.safetensors", "observation.state.std", "lacks std of observation.state"),
        ("after.safetensors", "action.min", "lacks min of action"),
    ],
)
def test_a_feature_without_statistics_is_never_passed_through(
    tmp_path: Path, file: str, name: str, said: str
) -> None:
    write_folder(tmp_path)
    without(tmp_path / file, name)
    with pytest.raises(ConfigError, match=said):
        read_folder(tmp_path)
    (tmp_path / file).unlink()
    with pytest.raises(ConfigError, match="not run"):
        read_folder(tmp_path)


def test_a_pipeline_without_normalisation_or_with_a_foreign_class_is_refused(
    tmp_path: Path,
) -> None:
    plain = {"name": "policy", "steps": [{"registry_name": "to_batch_processor", "config": {}}]}
    assert "normalises nothing" in refusal(tmp_path, before=plain)
    foreign = copy.deepcopy(AFTER)
    foreign["steps"].append({"class": "os.system", "config": {}})
    assert "names the class 'os.system'" in refusal(tmp_path, after=foreign)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"gripper_fingers"]', '"gripper_opening"]', "observation.state has the shape (5,)"),
        ('views = ["top", "hand"]', 'views = ["top"]', "2 cameras are declared for 1 views"),
        ('"hand"]', '"hnd"]', "did you mean 'hand'?"),
        ('"hand"]', '"hnd"]', "the view 'hand', which it was trained with, is fed by no camera"),
        ("width = 64", "width = 80", "the view 'top' is 48x64 and the camera 'front' 48x80"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TOLD
    assert said in refusal(tmp_path, TOLD.replace(old, new))


def test_pictures_of_another_size_are_stretched_only_when_that_is_declared(
    tmp_path: Path,
) -> None:
    write_folder(tmp_path, "resize = true\n" + TOLD.replace("width = 64", "width = 80"))
    assert read_folder(tmp_path).sizes[0] == (48, 64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_obs_steps": 2}, "the last 2 observations"),
        ({"vlm_model_name": "someone/model"}, "nothing is fetched"),
        ({"type": None}, "names no type"),
        ({"input_features": None}, "no shapes of input_features"),
    ],
)
def test_a_policy_that_cannot_be_run_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    assert said in refusal(tmp_path, config={**CONFIG, **change})


def test_missing_files_say_what_writes_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        registry.policy(f"lerobot:{tmp_path / 'none'}")
    for name, said in (("policy_postprocessor.json", "not run"), ("zetta.toml", "docs/policies"),
                       ("config.json", "save_pretrained")):  # fmt: skip
        write_folder(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(ConfigError, match=said):
            read_folder(tmp_path)
    with pytest.raises(ConfigError, match=r"no model\.safetensors"):
        digest_of(tmp_path, "")


@pytest.mark.skipif(not MISSING, reason="lerobot is installed")
def test_without_lerobot_it_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which is not installed"):
        registry.policy(write_folder(tmp_path))


# --------------------------------------------------------------------------- with lerobot


def write_act(folder: Path) -> str:
    """Write a small ACT of random weights as LeRobot does; return the policy's name."""
    import torch
    from lerobot.configs.types import FeatureType, NormalizationMode, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy
    from lerobot.policies.factory import make_pre_post_processors

    def features(told: dict[str, Any]) -> dict[str, Any]:
        return {
            name: PolicyFeature(FeatureType(each["type"]), tuple(each["shape"]))
            for name, each in told.items()
        }

    config = ACTConfig(
        input_features=features(INPUTS), output_features=features(OUTPUTS), device="cpu",
        chunk_size=H, n_action_steps=4, dim_model=32, n_heads=2, dim_feedforward=32,
        n_encoder_layers=1, n_decoder_layers=1, n_vae_encoder_layers=1, latent_dim=4,
        pretrained_backbone_weights=None, push_to_hub=False,
        normalization_mapping={k: NormalizationMode(v) for k, v in MODES.items()},
    )  # fmt: skip
    torch.manual_seed(0)
    ACTPolicy(config).save_pretrained(folder)
    rng = np.random.default_rng(0)
    statistics = {
        "observation.state": {"mean": rng.normal(size=STATE), "std": np.full(STATE, 0.5)},
        "action": {"min": np.full(A, -0.5), "max": np.full(A, 0.5)},
    }
    tensors = {
        name: {k: torch.tensor(v, dtype=torch.float32) for k, v in each.items()}
        for name, each in statistics.items()
    }
    for part in make_pre_post_processors(config, dataset_stats=tensors):
        part.save_pretrained(folder)
    (folder / "zetta.toml").write_text(TOLD)
    return f"lerobot:{folder}@device=cpu"


@pytest.fixture(scope="module")
def act(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_act(tmp_path_factory.mktemp("act"))


def observed() -> Observation:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(0)))
    return env.observe(["front", "wrist"])


def answer(policy: Policy) -> np.ndarray:
    policy.reset(SENTENCE, 0)
    return policy.infer(observed()).actions


@needs_lerobot
@pytest.mark.lerobot
def test_a_policy_of_lerobot_answers_with_its_own_pipelines(act: str) -> None:
    policy = registry.policy(act)
    rows = answer(policy)

    assert rows.shape == (H, A)
    assert np.array_equal(rows, answer(registry.policy(act)))


@needs_lerobot
@pytest.mark.lerobot
def test_its_answer_is_the_one_that_lerobot_itself_gives(act: str) -> None:
    import torch
    from lerobot.policies.act.modeling_act import ACTPolicy
    from lerobot.policies.factory import make_pre_post_processors

    folder = act.removeprefix("lerobot:").partition("@")[0]
    theirs = ACTPolicy.from_pretrained(folder)
    before, after = make_pre_post_processors(theirs.config, pretrained_path=folder)
    seen = observed()
    arm = seen.proprio.arms[0]
    fingers = [arm.gripper_opening / 2, -arm.gripper_opening / 2]
    batch = {"observation.state": torch.tensor([*arm.ee_pos, *fingers], dtype=torch.float32)}
    for view, camera in (("top", "front"), ("hand", "wrist")):
        pixels = torch.tensor(np.array(seen.images[camera])).permute(2, 0, 1)
        batch[f"observation.images.{view}"] = pixels / 255.0
    with torch.no_grad():
        expected = after(theirs.predict_action_chunk(before({**batch, "task": SENTENCE})))

    got = answer(registry.policy(act))
    np.testing.assert_allclose(got, np.clip(expected[0].numpy(), -1, 1), atol=1e-5)


@needs_lerobot
@pytest.mark.lerobot
def test_another_horizon_than_the_policys_own_is_found_when_it_is_loaded(
    act: str, tmp_path: Path
) -> None:
    name = write_act(tmp_path)
    (tmp_path / "zetta.toml").write_text(TOLD.replace("horizon = 8", "horizon = 9"))
    with pytest.raises(SpecMismatch, match=r"answered in the shape \(1, 8, 7\)"):
        registry.policy(name)
