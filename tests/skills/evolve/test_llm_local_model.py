"""The author `llm` against a real, tiny language model: plumbing, and nothing about its skill."""

from __future__ import annotations

import pytest

from tests.fake_llm import serving
from tests.skills.evolve import llm_briefs as b
from tests.tiny_llm import Says, answering, missing, tiny_model
from zetta.skills.evolve.authors import Draft, NoDraft
from zetta.skills.evolve.llm_author import LlmAuthor
from zetta.skills.evolve.llm_limits import LlmLimits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}"),
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def says() -> Says:
    return tiny_model()


def test_a_real_model_ends_in_a_draft_or_a_reason_and_its_cost(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic_ai import models

    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    said: list[str] = []
    with serving(answering(says, said)) as fake:
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
