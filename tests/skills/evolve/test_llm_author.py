"""The author `llm` against a server that does whatever a script says."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fake_llm import (
    Answer,
    FakeServer,
    drip,
    flood,
    no_tools,
    raw,
    serving,
    silent,
    status,
    text,
    tool,
)
from tests.skills.evolve import llm_briefs as b
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError
from zetta.skills.evolve.authors import Brief, Draft, NoDraft
from zetta.skills.evolve.draft_check import load_draft, write_draft
from zetta.skills.evolve.llm_author import LlmAuthor
from zetta.skills.evolve.llm_limits import LlmLimits, OutputMode
from zetta.skills.package import SkillPackage, inspect

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


def refused(*answers: Answer, **limits: object) -> NoDraft:
    with serving(*answers) as fake:
        said, _ = ask(fake, **limits)
    assert isinstance(said, NoDraft), said
    assert set(said.cost) == {"requests", "input_tokens", "output_tokens", "seconds"}
    return said


# --------------------------------------------------------------------------- good ends


def test_a_good_answer_is_a_draft_that_passes_the_package_check(tmp_path: Path) -> None:
    with serving(tool(b.GOOD)) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    write_draft(draft, tmp_path / draft.name)
    seen = inspect(tmp_path / draft.name)
    assert seen.problems == ()
    assert seen.package is not None
    assert seen.package.page.provenance.made_by == "llm"
    assert draft.hypothesis == b.GOOD["hypothesis"]
    assert draft.cost["requests"] == 1
    assert (draft.cost["input_tokens"], draft.cost["output_tokens"]) == (1000, 200)
    assert draft.cost["seconds"] > 0


def test_prose_is_answered_with_what_is_expected_and_the_next_answer_counts() -> None:
    with serving(text("Let me think about the gripper."), tool(b.GOOD)) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    assert draft.cost["requests"] == 2
    assert "there is no JSON object in it" in fake.user_text(1)
    assert "critic_py" in fake.user_text(1)


def test_invalid_code_is_sent_back_with_file_line_and_reason_and_repaired() -> None:
    with serving(tool(b.LOOPING), tool(b.GOOD)) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    assert "critic.py:9: " in fake.user_text(1)
    assert "/tmp" not in fake.user_text(1)


@pytest.mark.parametrize("wrapped", ["{}", "Here it is:\n```json\n{}\n```\nGood luck.", "{{}} {}"])
def test_plain_json_of_a_server_that_ignores_tool_choice_is_read(wrapped: str) -> None:
    content = wrapped.replace("{}", json.dumps(b.GOOD)) if wrapped != "{{}} {}" else (
        "{} " + json.dumps(b.GOOD)
    )  # fmt: skip
    with serving(text(content)) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    assert draft.cost["requests"] == 1


def test_a_server_that_refuses_tools_is_asked_in_words() -> None:
    with serving(no_tools(text(json.dumps(b.GOOD)))) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    assert "tools" in fake.requests[0]
    assert "tools" not in fake.requests[1]


@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
def test_each_way_of_asking_ends_in_the_same_draft(mode: OutputMode) -> None:
    good = tool(b.GOOD) if mode == "tool" else text(json.dumps(b.GOOD))
    bad = tool(b.LOOPING) if mode == "tool" else text(json.dumps(b.LOOPING))
    with serving(bad, good) as fake:
        draft, _ = ask(fake, output=mode)
    assert isinstance(draft, Draft)
    assert load_draft(draft).name == "hold-tight"
    assert ("tools" in fake.requests[0]) == (mode == "tool")


def test_fenced_programs_are_taken_out_of_their_fence() -> None:
    fenced = b.answer(critic_py=f"```python\n{b.GOOD['critic_py']}```")
    with serving(tool(fenced)) as fake:
        draft, _ = ask(fake)
    assert isinstance(draft, Draft)
    assert draft.files["critic.py"] == b.GOOD["critic_py"]


def test_a_deployed_skill_gets_other_numbers_and_keeps_its_programs(
    parent: tuple[SkillPackage, ...],
) -> None:
    old = parent[0]
    values = {p.name: (p.default + p.high) / 2 for p in old.parameters.values()}
    numbers = [{"name": n, "default": v, "low": 0, "high": 9} for n, v in values.items()]
    with serving(
        tool(b.answer(name=old.name, params=numbers, critic_py="", recovery_py=""))
    ) as fake:
        draft, _ = ask(fake, b.brief(parent))
    assert isinstance(draft, Draft)
    package = load_draft(draft)
    assert package.critic_source == old.critic_source
    assert {p.name: p.default for p in package.parameters.values()} == pytest.approx(values)
    assert all(p.high == old.parameters[n].high for n, p in package.parameters.items())


# --------------------------------------------------------------------------- bad ends


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (b.LOOPING, "critic.py:9"),
        (b.IMPORTING, "critic.py:1"),
        (b.ORACLE, "stops at 'vision'"),
        (b.CLOCK, "counts the ticks of the episode"),
        (b.PLACE, "critic.py:9"),
        (b.answer(name="../../etc"), "cannot be named"),
        (b.answer(recovery_py=""), "recovery.py"),
        (b.answer(critic_py="(" * 9000), "critic.py"),
        (b.answer(params=[]), "slip"),
    ],
)
def test_what_stays_wrong_ends_without_a_draft(given: dict[str, object], reason: str) -> None:
    said = refused(tool(given), repairs=2)
    assert reason in said.reason
    assert "refused 3 times" in said.reason
    assert said.cost["requests"] == 3


@pytest.mark.parametrize(
    "given",
    [
        b.answer(name="x" * 5000),
        b.answer(critic_py="#" * 100_000),
        b.answer(hypothesis="\ud800"),
        b.answer(max_ticks=10_000),
        b.answer(roles=["robot"]),
        b.answer(surprise=1),
        {"name": 3},
        "{this is no JSON",
        "[" * 100_000,
    ],
)
@pytest.mark.parametrize("plain", [False, True])
def test_an_answer_of_another_shape_ends_without_a_draft(given: object, plain: bool) -> None:
    as_text = given if isinstance(given, str) else json.dumps(given)
    said = refused((text if plain else tool)(as_text), repairs=1)
    assert said.cost["requests"] == 2


def test_an_equal_draft_that_was_rejected_is_refused() -> None:
    with serving(tool(b.GOOD)) as fake:
        draft, _ = ask(fake)
        assert isinstance(draft, Draft)
        again, _ = ask(fake, b.brief(rejected=[b.rejection(digest=draft.digest)]), repairs=0)
    assert isinstance(again, NoDraft)
    assert "rejected before" in again.reason


def test_more_statements_than_the_generation_may_write_are_refused() -> None:
    with serving(tool(b.GOOD)) as fake:
        said, _ = ask(fake, replace(b.brief(), edits=5), repairs=0)
    assert isinstance(said, NoDraft)
    assert "this generation may write 5" in said.reason


@pytest.mark.parametrize("endless", [drip, silent])
def test_an_endless_answer_ends_at_the_deadline(endless: Answer) -> None:
    said = refused(endless, request_s=0.6)
    assert "0.6 s" in said.reason
    assert said.cost["seconds"] < 10


def test_answers_that_are_slow_together_end_at_the_deadline_of_all() -> None:
    assert "no skill after 0.7 s" in refused(drip, request_s=30.0, total_s=0.7).reason


def test_a_flood_is_cut_off() -> None:
    assert "cut off" in refused(flood, request_s=60.0).reason


def test_an_answer_cut_at_the_token_limit_is_told_as_such() -> None:
    assert refused(text('{"name": "hold', finish="length"), repairs=0).reason


def test_tokens_are_limited_over_all_requests() -> None:
    much = {"prompt_tokens": 10, "completion_tokens": 50_000, "total_tokens": 50_010}
    said = refused(tool(b.LOOPING, much), repairs=9, requests=9, output_tokens=90_000)
    assert said.cost["requests"] == 2
    assert said.cost["output_tokens"] == 100_000


def test_what_one_answer_may_hold_is_asked_for() -> None:
    with serving(tool(b.GOOD)) as fake:
        ask(fake, answer_tokens=1234)
    assert fake.requests[0]["max_tokens"] == 1234


@pytest.mark.parametrize(
    "answer",
    [
        raw(b'{"choices": 1}'),
        raw(b'{"choices": [{"message": 3, "finish_reason": "stop"}]}'),
        raw(b"[]"),
        raw(b"<html>", "text/html"),
        raw(b"{}"),
        raw(b"[" * 200_000),
    ],
)
def test_an_answer_that_is_none_ends_without_a_draft(answer: Answer) -> None:
    assert "no usable answer" in refused(answer).reason


@pytest.mark.parametrize("body", [b'{"choices": [oops', b"\xff\xfe{", b""])
def test_malformed_json_is_an_error_of_the_machinery(body: bytes) -> None:
    with serving(raw(body)) as fake, pytest.raises(InfraError, match="decode response as JSON"):
        ask(fake)


def test_a_failing_server_is_an_error_of_the_machinery() -> None:
    with serving(status(500)) as fake, pytest.raises(InfraError, match="failed for 'm'"):
        ask(fake)


def test_a_server_that_is_not_there_is_an_error_of_the_machinery() -> None:
    with serving(silent) as fake:
        url = fake.url
    with pytest.raises(ConnectionLost, match=r"cannot be reached.*running"):
        LlmAuthor("m", url).propose(b.brief())


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_is_told_without_what_the_server_says_about_it(code: int) -> None:
    refuse = status(code, "incorrect key sk-almost-whole")
    with serving(refuse) as fake, pytest.raises(ConfigError) as error:
        ask(fake)
    assert "sk-" not in str(error.value)


def test_an_unknown_model_is_told() -> None:
    with serving(status(404, "no model m")) as fake, pytest.raises(ConfigError, match="no model m"):
        ask(fake, output="tool")


# --------------------------------------------------------------------------- settings


def test_requests_are_refused_where_tests_forbid_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
    with serving(tool(b.GOOD)) as fake:
        with pytest.raises(RuntimeError, match="ALLOW_MODEL_REQUESTS"):
            ask(fake)
        assert fake.requests == []


@pytest.mark.parametrize(
    ("model", "url", "what"),
    [
        (" ", None, "needs a model's name"),
        ("m", "127.0.0.1:8080", "expected one such as http"),
    ],
)
def test_wrong_settings_are_told(model: str, url: str | None, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        LlmAuthor(model, url)


@pytest.mark.parametrize("model", ["gpt", "nobody:gpt", "openai:gpt"])
def test_an_unknown_provider_or_a_missing_key_is_told(model: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        LlmAuthor(model).propose(b.brief())


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(ConfigError, match="requests"):
        LlmLimits(requests=0)


def test_a_brief_without_failures_costs_nothing() -> None:
    with serving(silent) as fake:
        said, _ = ask(fake, Brief(b.brief().cluster, (), (), (), (), (), "vision", 120))
    assert isinstance(said, NoDraft)
    assert fake.requests == []


def test_a_missing_client_is_told_with_the_line_that_fixes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ConfigError, match=r"pip install 'zetta\[llm\]'"):
        LlmAuthor("m")


@pytest.mark.parametrize("model", ["nobody:knows", "foo", "openai:gpt-5"])
def test_a_model_that_cannot_be_asked_is_refused_before_anything_is_spent(model: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        LlmAuthor(model).check()


def test_a_server_of_ones_own_may_know_any_model() -> None:
    LlmAuthor("foo", "http://127.0.0.1:1/v1").check()
