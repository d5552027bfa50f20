"""What the author `llm` sends: all that an author needs, and nothing of the scene."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from tests.fake_llm import FakeServer, serving, text, tool
from tests.skills.evolve import llm_briefs as b
from zetta.runtime.prompt_pictures import PictureLimits
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, Rejection
from zetta.skills.evolve.llm_author import LlmAuthor
from zetta.skills.evolve.llm_limits import LlmLimits
from zetta.skills.evolve.llm_prompt import PromptLimits
from zetta.skills.package import SkillPackage

models = pytest.importorskip("pydantic_ai.models", reason="needs pip install 'zetta[llm]'")


@pytest.fixture(autouse=True)
def _only_the_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow requests, and leave no key with which anybody else would answer."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def ask(
    fake: FakeServer, brief: Brief | None = None, **limits: object
) -> tuple[Draft | NoDraft, LlmAuthor]:
    author = LlmAuthor("m", fake.url, LlmLimits(**limits))  # type: ignore[arg-type]
    return author.propose(brief or b.brief()), author


def test_nothing_of_the_scene_is_in_any_request(tmp_path: Path) -> None:
    brief = b.brief(strips=b.strips(tmp_path, 2), rejected=[b.rejection()])
    with serving(tool(b.LOOPING), text("hm"), tool(b.GOOD)) as fake:
        draft, _ = ask(fake, brief)
    assert isinstance(draft, Draft)
    assert len(fake.requests) == 3
    everything = fake.texts + "".join(str(h) for h in fake.headers)
    for secret in b.SECRETS:
        assert secret not in everything, secret
        for picture in fake.pictures():
            assert secret.encode() not in base64.b64decode(picture.partition(",")[2])


def test_the_request_tells_what_an_author_needs(parent: tuple[SkillPackage, ...]) -> None:
    with serving(tool(b.GOOD)) as fake:
        ask(fake, b.brief(parent, rejected=[b.rejection()]))
    told = fake.user_text()
    for part in (
        "*grasped*", "| `object_offset` | after | +2.5 | +0.1 |", "put the red cube on the green",
        "| `held(condition, seconds)` |", "`grasp(role)`", "| `slip` | m | proprio |",
        "# Branch replay", "| unchanged | -0.5 |", "| -1.00 |", b.REASON, "shadow",
        parent[0].critic_source.strip(), parent[1].recovery_source.strip(), "120 statements",
    ):  # fmt: skip
        assert part in told, part


def test_signals_and_primitives_above_the_level_are_not_shown() -> None:
    with serving(tool(b.GOOD)) as fake:
        ask(fake, b.brief(sensing="proprio"), repairs=0)
    told = fake.user_text()
    assert "`grasp(role)`" not in told
    assert "| `object_offset`" not in told
    assert "| object_offset |" not in told
    assert "| `holding` |" in told


def test_pictures_are_few_small_and_drawn_anew(tmp_path: Path) -> None:
    paths = b.strips(tmp_path, 6)
    (tmp_path / "no.png").write_text("no picture")
    limits = PromptLimits(pictures=PictureLimits(count=3, width=800, height=600, bytes=60_000))
    with serving(tool(b.GOOD)) as fake:
        ask(fake, b.brief(strips=[tmp_path / "no.png", tmp_path / "gone.png", *paths]),
            prompt=limits)  # fmt: skip
    assert len(fake.pictures()) == 3
    for address in fake.pictures():
        kind, _, encoded = address.partition(",")
        assert kind == "data:image/jpeg;base64"
        data = base64.b64decode(encoded)
        assert len(data) <= 60_000
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (800, 240)
    assert "3 pictures" in fake.user_text()


def test_the_draft_that_was_rejected_is_shown_to_the_same_author() -> None:
    other = b.answer(name="hold-tighter", critic_py=b.critic("a = now(w.slip)", "hold-tighter"))
    with serving(tool(b.GOOD), tool(other)) as fake:
        draft, author = ask(fake)
        assert isinstance(draft, Draft)
        told = Rejection(draft.hypothesis, "shadow", b.REASON, draft.digest)
        assert isinstance(author.propose(b.brief(rejected=[told])), Draft)
    assert "was rejected: hold-tight" in fake.user_text(1)
    assert "was rejected: hold-tight" not in fake.user_text(0)


def test_a_key_meant_for_openai_goes_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serving(tool(b.GOOD)) as fake:
        ask(fake)
        assert "sk-secret" not in str(fake.headers)
        LlmAuthor("openai:m", fake.url).propose(b.brief())
    assert "Bearer sk-secret" in str(fake.headers[1])
    assert fake.requests[1]["model"] == "m"


def test_a_provider_by_its_name_is_asked_with_its_own_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serving(tool(b.GOOD)) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        author = LlmAuthor("openai-chat:m")
        for _ in range(2):
            assert isinstance(author.propose(b.brief()), Draft)
    assert "Bearer sk-secret" in str(fake.headers[0])
    assert fake.requests[0]["max_completion_tokens"] == LlmLimits().answer_tokens
