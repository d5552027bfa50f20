"""What a pi0 folder says of itself is compared before anything is loaded; no torch is needed."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.policies.pi0_models import CONFIG, PROCESSOR, TOLD, A, write_folder
from zetta.runtime import registry
from zetta.runtime.core import ActionSpec
from zetta.runtime.errors import ConfigError, SpecMismatch, ZettaError
from zetta.runtime.policies.pi0.folder import digest_of, read_checkpoint
from zetta.runtime.policies.pi0.serve import dispersion


def refusal(folder: Path, **files: Any) -> str:
    write_folder(folder, **files)
    with pytest.raises(ZettaError) as error:
        read_checkpoint(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_whose_files_agree_is_read(tmp_path: Path) -> None:
    write_folder(tmp_path)
    read = read_checkpoint(tmp_path)

    assert read.told.views == ("image", "wrist_image")
    assert read.preparation.longest == (28, 28)
    assert len(read.statistics.actions_std) == A


@pytest.mark.parametrize("name", ["state_mean", "state_std", "actions_mean", "actions_std"])
def test_missing_statistics_stop_it(tmp_path: Path, name: str) -> None:
    for value in (None, []):
        said = refusal(tmp_path, processor={**PROCESSOR, name: value})
        assert f"lacks {name}" in said
        assert "not run" in said


@pytest.mark.parametrize("name", ["image_mean", "rescale_factor", "pad_size", "image_seq_length"])
def test_nothing_is_assumed_about_pictures(tmp_path: Path, name: str) -> None:
    processor = copy.deepcopy(PROCESSOR)
    del processor["image_processor"][name]
    assert f"lacks '{name}'" in refusal(tmp_path, processor=processor)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"ee_pos", ', "", "state_mean has 8 numbers, declared are 5"),
        ("horizon = 8", "horizon = 16", "horizon is 16, its chunk_size is 8"),
        ('views = ["image", "wrist_image"]', 'views = ["image"]', "2 cameras (front, wrist)"),
        ('views = ["image", "wrist_image"]\n', "", "views"),
        ("ee_axis_angle", "ee_axis_angles", "did you mean 'ee_axis_angle'"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in TOLD
    assert said in refusal(tmp_path, told=TOLD.replace(old, new))


def test_views_are_compared_with_those_that_the_checkpoint_was_trained_with(
    tmp_path: Path,
) -> None:
    features = {"observation.images.image": {}, "observation.images.wrist": {},
                "observation.state": {}}  # fmt: skip
    said = refusal(tmp_path, config={**CONFIG, "input_features": features})
    assert "it was trained with ['image', 'wrist']" in said


def test_another_model_is_refused_by_name(tmp_path: Path) -> None:
    bare = {**CONFIG, "architectures": ["PI0Model"]}
    assert "PI0Model" in refusal(tmp_path, config=bare)
    assert "use --policy lerobot:" in refusal(tmp_path, config={"type": "pi0"})


def test_missing_files_say_what_writes_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        registry.policy(f"pi0:{tmp_path / 'none'}")
    for name, said in (("zetta.toml", "docs/policies"), ("processor_config.json", "PI0Processor"),
                       ("config.json", "save_pretrained")):  # fmt: skip
        write_folder(tmp_path)
        (tmp_path / name).unlink()
        with pytest.raises(ConfigError, match=said):
            read_checkpoint(tmp_path)


def test_only_safetensors_are_weights(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(ConfigError, match=r"no \*\.safetensors"):
        digest_of(tmp_path, "")


def test_the_digest_holds_weights_statistics_and_settings(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"one")
    digests = {digest_of(tmp_path, "cpu"), digest_of(tmp_path, "cuda")}
    (tmp_path / "model.safetensors").write_bytes(b"two")
    digests.add(digest_of(tmp_path, "cpu"))
    other = {**PROCESSOR, "state_std": [0.4] * 8}
    (tmp_path / "processor_config.json").write_text(json.dumps(other))
    digests.add(digest_of(tmp_path, "cpu"))

    assert len(digests) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("dtyp=float32", "did you mean 'dtype'?"),
        ("dtype=float8", "did you mean 'float"),
        ("samples=0", "expected 1 to 1000"),
        ("steps=ten", "expected 1 to 1000"),
        ("samples", "gives 'samples' no value"),
        ("samples=2;samples=3", "twice"),
    ],
)
def test_an_option_that_is_none_is_refused(tmp_path: Path, options: str, said: str) -> None:
    with pytest.raises((ConfigError, SpecMismatch)) as error:
        registry.policy(f"{write_folder(tmp_path)}@{options}")
    assert said in str(error.value)


def test_dispersion_is_the_mean_distance_of_the_drawn_ways_in_metres() -> None:
    names = ("dx", "dy", "dz", "rx", "ry", "rz", "gripper")
    low, high, scale = (-1.0,) * 7, (1.0,) * 7, (0.05,) * 3 + (1.0,) * 4
    chunks = np.zeros((2, 4, 7))
    chunks[1, 0, 0] = 1.0  # one step of 0.05 m at the first row, kept from then on
    delta = ActionSpec("delta_pose", names, low, high, scale)
    target = ActionSpec("target_pose", names, low, high, scale)

    assert dispersion(chunks, delta) == pytest.approx(0.05)
    assert dispersion(chunks, target) == pytest.approx(0.25)
    assert np.isnan(dispersion(chunks[:1], delta))
    assert np.isnan(dispersion(chunks, ActionSpec("joint_position", names, low, high, scale)))


def test_the_declaration_in_the_documentation_reads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n(state = .*?)```", page, re.S)[0]  # the other is LeRobot's
    config = {**CONFIG, "chunk_size": 50}
    write_folder(tmp_path, told=shown, config=config)

    assert read_checkpoint(tmp_path).told.policy.horizon == 50
