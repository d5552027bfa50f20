"""The author `llm` against a real, tiny language model: plumbing, and nothing about its skill.

`ZETTA_TINY_LLM` names the folder of a causal model with its tokenizer. Without it one is made on
the spot: random weights, one token for each byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fake_llm import Handler, serving, text
from tests.skills.evolve import llm_briefs as b
from zetta.skills.evolve.authors import Draft, NoDraft
from zetta.skills.evolve.llm_author import LlmAuthor
from zetta.skills.evolve.llm_limits import LlmLimits

needed = ("pydantic_ai", "torch", "transformers")
missing = [name for name in needed if find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}"),
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    pytest.mark.timeout(600),
]
PROMPT_TOKENS, ANSWER_TOKENS = 256, 48
Says = Callable[[str], tuple[str, int, int]]
"""Answer, tokens read and tokens written."""


@pytest.fixture(scope="module")
def says() -> Says:
    """Return what the model says to a text."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = os.environ.get("ZETTA_TINY_LLM")
    return _kept(Path(folder)) if folder else _made()


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


def test_a_real_model_ends_in_a_draft_or_a_reason_and_its_cost(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic_ai import models

    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    said: list[str] = []

    def answer(handler: Handler) -> None:
        request = handler.fake.requests[-1]
        words, read, written = says(json.dumps(request["messages"]))
        said.append(words)
        usage = {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        }  # fmt: skip
        text(words, usage=usage)(handler)

    with serving(answer) as fake:
        author = LlmAuthor("tiny", fake.url, LlmLimits(repairs=2))
        ended = author.propose(b.brief())
    print(ended if isinstance(ended, NoDraft) else ended.name, said)
    assert isinstance(ended, Draft | NoDraft)
    assert said
    assert ended.cost["requests"] == len(said)
    assert ended.cost["input_tokens"] > 0
    assert ended.cost["output_tokens"] > 0
    assert ended.cost["seconds"] > 0.0
    if isinstance(ended, NoDraft):
        assert ended.reason
