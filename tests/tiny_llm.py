"""A real, tiny language model behind the fake server: plumbing, and nothing about its skill.

`ZETTA_TINY_LLM` names the folder of a causal model with its tokenizer. Without it one is made on
the spot: random weights, one token for each byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tests.fake_llm import Answer, Handler, text

NEEDED = ("pydantic_ai", "torch", "transformers")
PROMPT_TOKENS, ANSWER_TOKENS = 256, 48
Says = Callable[[str], tuple[str, int, int]]
"""Answer, tokens read and tokens written."""


def missing() -> str:
    """Return what is not installed."""
    return ", ".join(name for name in NEEDED if find_spec(name) is None)


def tiny_model() -> Says:
    """Return what the model says to a text."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = os.environ.get("ZETTA_TINY_LLM")
    return _kept(Path(folder)) if folder else _made()


def answering(says: Says, said: list[str]) -> Answer:
    """Return an answer of the server that the model gives; what it says is kept in `said`."""

    def answer(handler: Handler) -> None:
        request = handler.fake.requests[-1]
        words, read, written = says(json.dumps(request["messages"]))
        said.append(words)
        usage = {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        }  # fmt: skip
        text(words, usage=usage)(handler)

    return answer


def _kept(folder: Path) -> Says:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()

    def say(prompt: str) -> tuple[str, int, int]:
        ids = tokens(prompt, return_tensors="pt").input_ids[:, -PROMPT_TOKENS:]
        out = model.generate(ids, max_new_tokens=ANSWER_TOKENS, do_sample=False)[0, ids.shape[1] :]
        return tokens.decode(out, skip_special_tokens=True), ids.shape[1], len(out)

    return say


def _made() -> Says:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()

    def say(prompt: str) -> tuple[str, int, int]:
        ids = torch.tensor([list(prompt.encode()[-PROMPT_TOKENS:])])
        out = model.generate(ids, max_new_tokens=ANSWER_TOKENS, do_sample=True)[0, ids.shape[1] :]
        return bytes(out.tolist()).decode("utf-8", "replace"), ids.shape[1], len(out)

    return say
