"""The plumbing of open-vocabulary finders, with detectors of a few random weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from zetta.primitives.localize import openvocab
from zetta.primitives.localize.clouds import Mask
from zetta.primitives.localize.openvocab import OpenVocabFinder
from zetta.primitives.localize.openvocab_boxes import Box, suppressed
from zetta.runtime.core import Array, Camera, Image, Landmark, Observation, Sampled, Scene
from zetta.runtime.errors import ConfigError
from zetta.sims.toy import ToyEnv
from zetta.sims.toy_tasks import toy_task

Test = TypeVar("Test", bound=Callable[..., None])

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "cube", "green", "plate", "."]


class Framed:
    """Draws the true box of every thing, and one weak box of everything."""

    def __init__(self, marks: Sequence[Landmark], camera: Camera) -> None:
        self.boxes = {mark.name: framed(mark, camera) for mark in marks}

    def detect(self, image: Image, names: Sequence[str]) -> list[Box]:
        whole = np.array([0.0, 0.0, image.shape[1], image.shape[0]])
        known = [Box(n, self.boxes[n], 0.8) for n in names if n in self.boxes]
        return [*known, *(Box(name, whole, 0.1) for name in names)]


class Vivid:
    """Outlines what has a strong colour."""

    def outline(self, image: Image, corners: Array) -> Mask:
        rgb = image.astype(float)
        return np.asarray(rgb.max(axis=-1) - rgb.min(axis=-1) > 60.0)


def framed(mark: Landmark, camera: Camera) -> Array:
    """Return the corners of a thing's box in the picture of a camera."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    points = mark.position + signs * mark.extent / 2.0
    local = (points - camera.T_world_cam[:3, 3]) @ camera.T_world_cam[:3, :3]
    uv = (local @ camera.intrinsics.T)[:, :2] / local[:, 2:]
    return np.concatenate([uv.min(axis=0) - 1.0, uv.max(axis=0) + 1.0])


def seen(seed: int = 0) -> tuple[Observation, tuple[Landmark, ...]]:
    """Return a full picture of the toy and the truth about it."""
    env = ToyEnv(toy_task("toy_distractors", 0), "full")
    env.reset(Scene(env.toy.task, Sampled(), seed))
    return env.observe(["front"], depth=True), env.landmarks()


@pytest.mark.parametrize("segmenter", [None, Vivid()], ids=["boxes", "outlines"])
def test_boxes_and_depth_become_sightings(segmenter: Vivid | None) -> None:
    observation, marks = seen()
    finder = OpenVocabFinder(Framed(marks, observation.cameras["front"]), segmenter)
    found = finder.find(observation, [m.name for m in marks])

    assert sorted(s.name for s in found) == sorted(m.name for m in marks)
    for sighting in found:
        truth = next(m for m in marks if m.name == sighting.name)
        limit = 0.02 if "plate" in sighting.name else 0.006
        assert np.hypot(*(sighting.position - truth.position)[:2]) < limit
        assert sighting.confidence == 0.8


def test_weak_detections_and_unknown_names_give_nothing() -> None:
    observation, marks = seen()
    finder = OpenVocabFinder(Framed(marks, observation.cameras["front"]))

    assert finder.find(observation, ["teapot"]) == ()
    assert finder.find(observation, []) == ()


def test_boxes_over_each_other_count_once_under_each_name() -> None:
    corners = np.array([0.0, 0.0, 10.0, 10.0])
    weak, strong = Box("cup", corners, 0.4), Box("cup", corners + 1.0, 0.6)
    other, far = Box("bowl", corners, 0.3), Box("cup", corners + 50.0, 0.2)

    assert suppressed([weak, strong, other, far]) == [strong, other, far]


def test_folder_without_a_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="pip install 'zetta[openvocab]'")
    with pytest.raises(ConfigError, match=r"holds no detector \(no config.json\); download one"):
        OpenVocabFinder.from_folders(tmp_path / "nothing")


def test_missing_package_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvocab, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"needs transformers and torch; pip install 'zetta"):
        OpenVocabFinder.from_folders(tmp_path)


# --------------------------------------------------------------------------- real architectures


def architectures(test: Test) -> Test:
    """Mark a test that imports transformers, which alone takes many seconds."""
    for mark in (pytest.mark.slow, pytest.mark.openvocab, pytest.mark.usefixtures("one_thread")):
        test = mark(test)
    return test


@pytest.fixture
def one_thread() -> Iterator[None]:
    torch = pytest.importorskip("torch", reason="pip install 'zetta[openvocab]'")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def grounding_dino(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a Grounding DINO of a few thousand random weights."""
    transformers = pytest.importorskip("transformers", reason="pip install 'zetta[openvocab]'")
    folder = tmp_path_factory.mktemp("dino")
    backbone = transformers.SwinConfig(
        image_size=64, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1],
        window_size=4, out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    text = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    config = transformers.GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, num_queries=8, max_text_len=16,
    )  # fmt: skip
    transformers.GroundingDinoForObjectDetection(config).save_pretrained(folder)
    tokens = {word: k for k, word in enumerate(VOCABULARY)}
    transformers.BertTokenizer(vocab=tokens).save_pretrained(folder)
    size = {"size": {"shortest_edge": 64, "longest_edge": 96}}
    (folder / "preprocessor_config.json").write_text(json.dumps(size), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def owl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an OWLv2 of a few thousand random weights."""
    transformers = pytest.importorskip("transformers", reason="pip install 'zetta[openvocab]'")
    folder = tmp_path_factory.mktemp("owl")
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
             "num_attention_heads": 2}  # fmt: skip
    config = transformers.Owlv2Config(
        text_config={**small, "vocab_size": 300, "max_position_embeddings": 16,
                     "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2},
        vision_config={**small, "image_size": 64, "patch_size": 16},
        projection_dim=16,
    )  # fmt: skip
    transformers.Owlv2ForObjectDetection(config).save_pretrained(folder)
    letters = [chr(k) for k in range(97, 123)]
    words = ["<|startoftext|>", "<|endoftext|>", "!", *letters, *(f"{c}</w>" for c in letters)]
    transformers.CLIPTokenizer(
        vocab={word: k for k, word in enumerate(words)}, merges=[], pad_token="!"
    ).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sam(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a SAM of a few thousand random weights."""
    transformers = pytest.importorskip("transformers", reason="pip install 'zetta[openvocab]'")
    folder = tmp_path_factory.mktemp("sam")
    config = transformers.SamConfig(
        vision_config={
            "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 64,
            "patch_size": 8, "output_channels": 16, "mlp_dim": 16, "num_pos_feats": 8,
            "global_attn_indexes": [0], "window_size": 4,
        },
        prompt_encoder_config={
            "hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4,
        },
        mask_decoder_config={
            "hidden_size": 16, "mlp_dim": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "iou_head_hidden_dim": 16, "attention_downsample_rate": 2,
        },
    )  # fmt: skip
    transformers.SamModel(config).save_pretrained(folder)
    return folder


@architectures
@pytest.mark.parametrize("kind", ["grounding_dino", "owl"])
def test_detector_from_a_folder_gives_boxes_inside_the_picture(
    kind: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(kind)
    from zetta.primitives.localize.openvocab_models import load_detector

    observation, _ = seen()
    image = observation.images["front"]
    detector = load_detector(folder)
    first, second = (detector.detect(image, ["red cube", "green plate"]) for _ in range(2))

    assert first
    assert {box.name for box in first} <= {"red cube", "green plate"}
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a.corners, b.corners)
        assert 0.0 <= a.score <= 1.0
        assert (a.corners >= 0.0).all()
        assert (a.corners <= [128, 96, 128, 96]).all()


@architectures
@pytest.mark.parametrize("kind", ["grounding_dino", "owl"])
def test_finder_runs_from_folders_with_outlines_of_sam(
    kind: str, sam: Path, request: pytest.FixtureRequest
) -> None:
    finder = OpenVocabFinder.from_folders(request.getfixturevalue(kind), sam, threshold=0.0)
    observation, _ = seen()
    found = finder.find(observation, ["red cube"])

    assert finder.level == "vision"
    assert all(np.isfinite(s.position).all() and s.name == "red cube" for s in found)


@architectures
def test_outline_of_sam_has_the_size_of_the_picture(sam: Path) -> None:
    from zetta.primitives.localize.openvocab_models import load_segmenter

    observation, _ = seen()
    image = observation.images["front"]
    outline = load_segmenter(sam).outline(image, np.array([10.0, 10.0, 60.0, 50.0]))

    assert outline.shape == image.shape[:2]
    assert outline.dtype == np.bool_


@architectures
def test_model_of_another_kind_is_refused(sam: Path, owl: Path) -> None:
    with pytest.raises(ConfigError, match="type 'sam', which is no detector; known: "):
        OpenVocabFinder.from_folders(sam)
    with pytest.raises(ConfigError, match="type 'owlv2'; a segmenter is of type 'sam'"):
        OpenVocabFinder.from_folders(owl, owl)


@architectures
def test_incomplete_folder_is_refused_without_asking_a_network(owl: Path, tmp_path: Path) -> None:
    text = (owl / "config.json").read_text(encoding="utf-8")
    (tmp_path / "config.json").write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match="is incomplete"):
        OpenVocabFinder.from_folders(tmp_path)
