"""A user's own graph: what is declared beside it is compared with it, sentence by sentence."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.policies.onnx_models import DECLARATION, STATE, A, Example, H, write_example
from zetta.runtime import registry
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.core import (
    Array,
    Init,
    Observation,
    Policy,
    RunSpec,
    Scene,
    read_only,
)
from zetta.runtime.errors import ConfigError, SpecMismatch, ZettaError
from zetta.runtime.policies.declaration import read_declaration
from zetta.runtime.policies.onnx_file import SpecFile
from zetta.runtime.policies.onnx_inputs import Input, make_source, stretched
from zetta.sims.toy import ToySimulator

SENTENCE = "put the red cube on the green plate"


def observed(index: int = 0) -> Observation:
    simulator = ToySimulator()
    env = simulator.make("toy_pick", 0)
    env.reset(Scene(simulator.task("toy_pick", 0), Init(index)))
    return env.observe(["front"])


def answer(policy: Policy, seed: int = 0, observation: Observation | None = None) -> Array:
    policy.reset(SENTENCE, seed)
    return policy.infer(observation or observed()).actions


def refusal(folder: Path, example: Example | None = None, text: str = DECLARATION) -> str:
    """Return why the policy cannot be loaded, in one line."""
    with pytest.raises(ZettaError) as error:
        registry.policy(write_example(folder, example, text))
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_declaration_becomes_the_spec(tmp_path: Path) -> None:
    spec = registry.policy(write_example(tmp_path)).spec

    assert (spec.horizon, spec.replan_steps, spec.control_hz) == (H, 4, 20.0)
    assert [c.name for c in spec.cameras] == ["front"]
    assert spec.action.kind == "delta_pose"
    assert len(spec.digest) == 64


def test_an_episode_of_the_toy_runs_with_it(tmp_path: Path) -> None:
    name = write_example(tmp_path)
    assembler = Assembler()
    spec = RunSpec("toy", "toy_pick", 0, Init(0), policy=name)
    result = assembler.assemble(spec).episode.run()
    assembler.close()

    assert result.ticks > 10
    assert result.inferences == -(-result.ticks // 4)


def test_equal_seeds_give_equal_noise_and_other_seeds_do_not(tmp_path: Path) -> None:
    policy = registry.policy(write_example(tmp_path))

    assert np.array_equal(answer(policy, 5), answer(policy, 5))
    assert not np.array_equal(answer(policy, 5), answer(policy, 6))


@pytest.mark.parametrize("what", ["images", "state", "instruction"])
def test_every_input_reaches_the_graph(tmp_path: Path, what: str) -> None:
    policy = registry.policy(write_example(tmp_path))
    seen = observed()
    before = answer(policy, 0, seen)
    if what == "images":
        other = {"front": read_only(255 - seen.images["front"], np.uint8)}
        after = answer(policy, 0, replace(seen, images=other))
    elif what == "state":
        arm = replace(seen.proprio.arms[0], gripper_opening=0.0)
        after = answer(policy, 0, replace(seen, proprio=replace(seen.proprio, arms=(arm,))))
    else:
        policy.reset("put the blue cube on the red plate", 0)
        after = policy.infer(seen).actions

    assert not np.allclose(before, after)


def test_the_digest_changes_with_the_declaration(tmp_path: Path) -> None:
    one = registry.policy(write_example(tmp_path)).spec.digest
    text = DECLARATION.replace("std = [0.5, 0.5, 0.5]", "std = [0.5, 0.5, 0.4]")

    assert registry.policy(write_example(tmp_path, text=text)).spec.digest != one


def test_rows_are_scaled_and_cut_only_when_that_is_declared(tmp_path: Path) -> None:
    plain = answer(registry.policy(write_example(tmp_path)))
    scale = f"\nmean = {[0.0] * A}\nstd = {[4.0] * A}\n"
    wide = answer(registry.policy(write_example(tmp_path, text=DECLARATION + scale)))
    cut = answer(registry.policy(write_example(tmp_path, text=f"{DECLARATION}{scale}clip = true")))

    assert np.allclose(wide, 4.0 * plain)
    assert np.abs(wide).max() > 1.0
    assert np.allclose(cut, np.clip(wide, -1.0, 1.0))


# --------------------------------------------------------------------------- mismatches


def test_each_difference_between_declaration_and_graph_is_one_sentence(tmp_path: Path) -> None:
    text = refusal(
        tmp_path,
        Example(pixels=("uint8", (1, 48, 64, 3)), extra={"lidar": ("float32", (1, 9))}),
        DECLARATION.replace("[inputs.words]", "[inputs.word]").replace(
            "horizon = 6", "horizon = 8"
        ),
    )

    for part in (
        "the graph takes 'lidar' (1, 9), which is not declared",
        "the graph takes 'words'",
        "no input 'word'; did you mean 'words'?",
        "input 'pixels' is a tensor(uint8), declared is float32",
        "input 'pixels' has the shape (1, 48, 64, 3), declared is (1, 3, 48, 64)",
        "output 'actions' has the shape (1, 6, 7), declared is (1, 8, 7)",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("horizon = 6", "horizon = 'six'", "SpecFile.policy.horizon"),
        ("horizon = 6\n", "", "horizon"),
        ("[policy]", "[policy]\nhorizn = 5", "horizn"),
        ("replan_steps = 4", "replan_steps = 9", "replan_steps is 9 and horizon 6"),
        ("high = [1,", "high = [-1,", "action.low of dx is not below its high"),
        ("scale = [0.05, ", "scale = [", "action.scale has 6 numbers for the 7 names"),
        ('layout = "CHW"\n', "", "layout"),
        ('"ee_pos", ', '"ee_position", ', "did you mean 'ee_pos"),
        ("0.04, 0.04]", "0.04, 0]", "std holds a number that is not above 0"),
        ("mean = [0.1, 0, 0, 0, 0]\n", "", "mean or std alone"),
        ("mean = [0.1, 0, 0, 0, 0]", "mean = [0.1]", "has 1 numbers, not 5"),
        ('"sha256-pairs-256/1"', '"sha256-pairs"', "did you mean 'sha256-pairs-256/1'?"),
        ('camera = "front"', 'camera = "frnt"', "did you mean 'front'?"),
        ('name = "actions"', 'name = "action"', "did you mean 'actions'?"),
        ("gripper_close = 1", "gripper_close = -1", "are equal"),
        ("[output]", "[output", "no TOML"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_declaration_is_named(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in DECLARATION
    assert said in refusal(tmp_path, text=DECLARATION.replace(old, new))


def test_lengths_that_the_graph_leaves_open_are_tried_when_it_is_loaded(tmp_path: Path) -> None:
    loose = Example(("float32", ("b", 3, "h", "w")), ("float32", ("b", STATE)), output=("b", H, A))
    assert registry.policy(write_example(tmp_path, loose)).spec.horizon == H

    open_ended = replace(loose, output=("b", "rows", A))
    text = DECLARATION.replace("horizon = 6", "horizon = 7")
    # Who finds it, the runtime's own shape inference or the trial, depends on its version.
    assert "the shape (1, 6, 7)" in refusal(tmp_path, open_ended, text)


def test_noise_in_a_graph_of_open_shape_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, Example(noise=("float32", (1, "rows", A))))
    assert "noise needs axes of fixed length" in said


def test_missing_files_say_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        registry.policy(f"onnx:{tmp_path / 'none.onnx'}")
    name = write_example(tmp_path)
    (tmp_path / "model.toml").unlink()
    with pytest.raises(ConfigError, match=r"write model\.toml or spec\.toml"):
        registry.policy(name)
    (tmp_path / "spec.toml").write_text(DECLARATION)
    assert registry.policy(name).spec.horizon == H


def test_a_file_that_is_no_graph_is_refused_in_one_line(tmp_path: Path) -> None:
    name = write_example(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(ConfigError, match="no usable graph") as error:
        registry.policy(name)
    assert "\n" not in str(error.value)


def test_a_foreign_picture_or_robot_is_refused(tmp_path: Path) -> None:
    policy = registry.policy(write_example(tmp_path))
    policy.reset(SENTENCE, 0)
    seen = observed()
    with pytest.raises(SpecMismatch, match="no picture of the camera 'front'"):
        policy.infer(replace(seen, images={}))
    small = {"front": read_only(np.zeros((24, 32, 3)), np.uint8)}
    with pytest.raises(SpecMismatch, match=r"expected \(48, 64, 3\)"):
        policy.infer(replace(seen, images=small))


# --------------------------------------------------------------------------- inputs


def source_of(size: tuple[int, int] | None = None, **told: object) -> np.ndarray:
    """Return what an input is made of, for one look at the toy."""
    source = make_source("it", Input(**told), size, ())  # type: ignore[arg-type]
    source.reset(SENTENCE, np.random.default_rng(0))
    made = source(observed())
    assert made.shape == source.shape
    return made


def test_pictures_keep_rows_columns_and_channels_in_either_layout() -> None:
    picture = observed().images["front"]
    rows = source_of((48, 64), source="camera", camera="front", layout="HWC")
    channels = source_of((48, 64), source="camera", camera="front", layout="CHW", divide=2.0)

    assert np.array_equal(rows, picture)
    assert np.array_equal(channels, picture.transpose(2, 0, 1) / 2.0)


def test_a_stretched_picture_has_the_asked_size_and_the_same_colours() -> None:
    made = source_of((48, 64), source="camera", camera="front", layout="HWC", resize=(24, 24))
    assert made.shape == (24, 24, 3)
    flat = read_only(np.full((48, 64, 3), 77), np.uint8)
    assert (stretched(flat, (224, 224)) == 77).all()


def test_a_state_is_composed_in_the_order_of_its_parts() -> None:
    arm = observed().proprio.arms[0]
    made = source_of(source="state", parts=("gripper_opening", "0.ee_pos", "ee_axis_angle"))

    assert made[0] == arm.gripper_opening
    assert np.array_equal(made[1:4], arm.ee_pos)
    assert np.linalg.norm(made[4:7]) <= np.pi + 1e-9


@pytest.mark.parametrize(
    ("part", "said"),
    [("joint_pos:99", "99 joints"), ("3.ee_pos", "the arm 3"), ("base", "the pose of a base")],
)
def test_a_part_that_this_robot_lacks_is_refused(part: str, said: str) -> None:
    with pytest.raises(SpecMismatch, match=said):
        source_of(source="state", parts=(part,))


def test_an_instruction_is_never_cut() -> None:
    row = source_of(source="instruction", encoding="utf8", length=40)
    assert bytes(row.astype(np.uint8)).rstrip(b"\0").decode() == SENTENCE
    with pytest.raises(ConfigError, match="nothing is cut"):
        source_of(source="instruction", encoding="utf8", length=len(SENTENCE) - 1)


def test_a_table_of_instructions_refuses_what_it_does_not_know() -> None:
    rows = {SENTENCE: (0.0, 1.0), "open the drawer": (1.0, 0.0)}
    assert source_of(source="instruction", encoding="table", table=rows).tolist() == [0.0, 1.0]
    with pytest.raises(ConfigError, match="not trained for the instruction"):
        source_of(source="instruction", encoding="table", table={"open the drawer": (1.0,)})


def test_the_declaration_in_the_documentation_reads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(\[policy\]\ncontrol_hz = 20\nhorizon = 16.*?)```", page, re.S)
    (tmp_path / "spec.toml").write_text(shown)
    declared = read_declaration(SpecFile, tmp_path / "spec.toml")

    assert declared.policy.spec("shown", "", tmp_path).horizon == 16
    for name, told in declared.inputs.items():
        assert make_source(name, told, (256, 256), (1, 16, 7)).shape


def test_the_policy_in_the_documentation_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "policies.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (tmp_path / "my_policy.py").write_text(shown)
    policy = registry.policy(f"python:{tmp_path / 'my_policy.py'}:make")
    policy.reset(SENTENCE, 0)

    assert policy.infer(observed()).actions.shape == (8, 7)
