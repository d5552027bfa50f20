"""An agent that is a real, tiny language model: plumbing, and nothing about its skill."""

from __future__ import annotations

import pytest

from tests.fake_llm import serving
from tests.primitives.agent import model_drives as d
from tests.tiny_llm import Says, answering, missing, tiny_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=f"needs {missing()}"),
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def says() -> Says:
    return tiny_model()


def test_a_real_model_ends_in_commands_or_in_trouble_and_its_cost(
    says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic_ai import models

    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    said: list[str] = []
    with serving(answering(says, said)) as fake:
        answer = d.agent(fake).decide(d.turn())
    print(answer, said)
    assert bool(answer.commands) != bool(answer.trouble)
    assert answer.spent.requests == len(said)
    assert answer.spent.input_tokens > 0
    assert answer.spent.output_tokens > 0
