"""A pi0 of 0.12 M random weights, written as a checkpoint folder."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

MISSING: Final = [name for name in ("torch", "transformers") if find_spec(name) is None]
SENTENCE: Final = "put the red cube on the green plate"
H, A, STATE, WIDTH = 8, 7, 8, 12
PIXELS, PATCHES = 28, 4
"""Side of the network's picture, and the tokens that one becomes."""
WORDS: Final = (
    "<pad>", "<eos>", "<bos>", "<unk>", "\n", "<image>",
    "put", "the", "red", "cube", "on", "green", "plate",
)  # fmt: skip

TOLD: Final = """
state = ["ee_pos", "ee_axis_angle", "gripper_fingers"]
views = ["image", "wrist_image"]
clip = true

[policy]
control_hz = 20
horizon = 8
replan_steps = 4
render_profile = "toy-fast"

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

PROCESSOR: Final[dict[str, Any]] = {
    "processor_class": "PI0Processor",
    "state_mean": [0.1] * STATE,
    "state_std": [0.5] * STATE,
    "actions_mean": [0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0],
    "actions_std": [0.3] * A,
    "image_processor": {
        "image_processor_type": "PI0ImageProcessor",
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "image_seq_length": PATCHES,
        "pad_size": {"height": PIXELS, "width": PIXELS},
        "size": {"max_height": PIXELS, "max_width": PIXELS},
        "rescale_factor": 1 / 255,
    },
}
CONFIG: Final[dict[str, Any]] = {
    "architectures": ["PI0ForConditionalGeneration"],
    "model_type": "pi0",
    "chunk_size": H,
    "max_state_dim": WIDTH,
    "max_action_dim": WIDTH,
}


def write_folder(
    folder: Path,
    told: str = TOLD,
    processor: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
) -> str:
    """Write all but weights and tokenizer; return the policy's name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zetta.toml").write_text(told)
    (folder / "processor_config.json").write_text(json.dumps(processor or PROCESSOR))
    (folder / "config.json").write_text(json.dumps(config or CONFIG))
    return f"pi0:{folder}"


def write_checkpoint(folder: Path, told: str = TOLD) -> str:
    """Write a whole checkpoint; return the policy's name."""
    import torch
    from transformers import PI0Config, PI0ForConditionalGeneration

    name = write_folder(folder, told)
    gemma = {
        "model_type": "gemma", "hidden_size": 32, "num_hidden_layers": 2, "head_dim": 16,
        "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1,
    }  # fmt: skip
    sight = {
        "model_type": "siglip_vision_model", "hidden_size": 32, "intermediate_size": 64,
        "patch_size": 14, "image_size": PIXELS, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vision_use_head": False,
    }  # fmt: skip
    config = PI0Config(
        vlm_config={
            "model_type": "paligemma", "text_config": {**gemma, "vocab_size": 512},
            "vision_config": sight, "projection_dim": 32,
            "image_token_id": WORDS.index("<image>"),
        },
        dit_config=gemma, chunk_size=H, max_state_dim=WIDTH, max_action_dim=WIDTH,
        num_inference_steps=3,
    )  # fmt: skip
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = PI0ForConditionalGeneration(config)
    for weights in model.parameters():
        # The initial weights are so small that neither picture nor word would change an action.
        torch.nn.init.normal_(weights, std=0.2)
    model.save_pretrained(folder)
    write_tokenizer(folder)
    return name


def write_tokenizer(folder: Path, words: tuple[str, ...] = WORDS) -> None:
    """Write a tokenizer that knows a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "removed")]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        extra_special_tokens=["<image>"],
    ).save_pretrained(folder)
