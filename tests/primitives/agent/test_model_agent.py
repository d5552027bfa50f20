"""A model as an agent, against a server that does whatever a script says."""

from __future__ import annotations

import base64
import io
import json
import sys
import threading

import pytest
from PIL import Image

from tests.fake_llm import (
    Answer,
    Handler,
    anthropic,
    drip,
    flood,
    no_option,
    raw,
    serving,
    silent,
    status,
    text,
)
from tests.primitives.agent import model_drives as d
from zetta.primitives.agent.model_agent import ModelAgent, ModelSettings
from zetta.primitives.agent.model_options import ModelOptions
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.prices import Price
from zetta.primitives.agent.prompt import PICTURES, Message
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError, Timeout
from zetta.runtime.model_addresses import ModelAddress
from zetta.runtime.prompt_pictures import PictureLimits

models = pytest.importorskip("pydantic_ai.models", reason="needs pip install 'zetta[llm]'")
SHORT = Patience(total_s=20.0, request_s=0.6, silence_s=0.3)


@pytest.fixture(autouse=True)
def _only_the_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow requests, and leave no key with which anybody else would answer."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    for name in (
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)


# --------------------------------------------------------------------------- replies


def test_a_good_reply_is_an_answer_with_its_cost() -> None:
    with serving(d.reply()) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert answer.commands == ("move x +5", "gripper 0")
    assert (answer.scene, answer.plan) == (d.GOOD["scene"], d.GOOD["plan"])
    assert (answer.memory, answer.progress) == (d.GOOD["memory"], d.GOOD["progress"])
    assert (answer.trouble, answer.raw, answer.remarks) == ("", "", ())
    spent = answer.spent
    assert (spent.requests, spent.input_tokens, spent.output_tokens) == (1, 1000, 200)


@pytest.mark.parametrize(
    "wrapped",
    [
        "Let me see.\n```json\n{}\n```\nGood luck.",
        "<think>perhaps {\"commands\": [\"done\"]}?</think>{}",
        "The state {x} is fine: {}",
        "{} and again {}",
    ],
)  # fmt: skip
def test_one_object_among_words_is_read_without_a_repair(wrapped: str) -> None:
    with serving(text(wrapped.replace("{}", json.dumps(d.GOOD)))) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert answer.commands == ("move x +5", "gripper 0")
    assert answer.spent.requests == 1


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("I would move to the left now.", "no whole JSON object"),
        ('{"commands": ["move x +5"', "no whole JSON object"),
        ('{"plan": "go"}', 'has no "commands"'),
        ('{"commands": []}', '"commands" is empty'),
        ('{"commands": [{"arm": "left"}]}', "holds an object"),
        ('{"commands": 3}', "is a number"),
        ('{"commands": ["wait"]} {"commands": ["done"]}', "different commands"),
        ("", "holds no text"),
    ],
)
def test_what_is_no_reply_is_sent_back_with_the_problem_and_repaired(
    bad: str, problem: str
) -> None:
    with serving(text(bad), d.reply()) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert answer.commands
    assert answer.spent.requests == 2
    assert answer.spent.input_tokens == 2000
    asked = fake.requests[1]["messages"]
    assert problem in fake.user_text(1)
    assert '"commands"' in asked[-1]["content"]
    assert asked[: len(fake.requests[0]["messages"])] == fake.requests[0]["messages"]


def test_after_two_repairs_there_is_trouble_with_the_raw_text_and_no_command() -> None:
    with serving(text("Sorry, I only write prose.")) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert len(fake.requests) == 3
    assert answer.commands == ()
    assert answer.raw == "Sorry, I only write prose."
    assert "3 times" in answer.trouble
    assert "no whole JSON object" in answer.trouble
    assert answer.spent.requests == 3


def test_unknown_verbs_pass_since_the_grammar_judges_them() -> None:
    with serving(d.reply(commands=["fly to the moon", "DONE."])) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert answer.commands == ("fly to the moon", "DONE.")


def test_endless_dones_are_passed_on_turn_by_turn() -> None:
    with serving(d.reply(commands=["done"])) as fake:
        agent = d.agent(fake)
        assert [agent.decide(d.turn(k)).commands for k in range(4)] == [("done",)] * 4
    assert len(fake.requests) == 4


def test_too_many_commands_are_cut_and_both_the_answer_and_the_model_are_told() -> None:
    many = [f"move x +{k}" for k in range(9)]
    with serving(d.reply(commands=many), d.reply()) as fake:
        agent = d.agent(fake)
        answer = agent.decide(d.turn())
        agent.decide(d.turn(1))
        agent.decide(d.turn(2))
    assert answer.commands == tuple(many[:4])
    assert "9 commands and 4 are allowed" in answer.remarks[0]
    assert "9 commands and 4 are allowed" in fake.user_text(1)
    assert "9 commands" not in fake.user_text(2)


def test_remarks_on_an_answer_that_was_thrown_away_are_not_shown() -> None:
    with serving(d.reply(commands=["wait"] * 9), d.reply(), d.reply()) as fake:
        agent = d.agent(fake)
        agent.decide(d.turn(3))  # ahead of time; the last command then failed
        agent.decide(d.turn(3))
        agent.decide(d.turn(4))
    assert "9 commands" not in fake.user_text(1) + fake.user_text(2)


def test_fewer_commands_than_usual_may_be_left() -> None:
    with serving(d.reply()) as fake:
        answer = d.agent(fake).decide(d.turn(commands_left=1))
    assert answer.commands == ("move x +5",)


def test_a_long_memory_is_cut_and_said() -> None:
    with serving(d.reply(memory="m" * 9000, scene="s" * 9000)) as fake:
        answer = d.agent(fake).decide(d.turn())
    assert len(answer.memory) == 2500
    assert len(answer.scene) == 800
    assert "9000 characters" in answer.remarks[0]


def test_a_reply_cut_at_the_token_limit_is_told_as_such() -> None:
    with serving(text('{"commands": ["mo', finish="length"), d.reply()) as fake:
        answer = d.agent(fake, options=ModelOptions(answer_tokens=321)).decide(d.turn())
    assert answer.commands
    assert "did not end within 321 tokens" in fake.user_text(1)
    assert fake.requests[0]["max_tokens"] == 321


def test_a_whole_reply_at_the_token_limit_counts() -> None:
    with serving(text(json.dumps(d.GOOD), finish="length")) as fake:
        assert d.agent(fake).decide(d.turn()).spent.requests == 1


@pytest.mark.parametrize(
    "answer",
    [raw(b'{"choices": 1}'), raw(b"{}"), raw(b"[" * 200_000), flood],
)
def test_a_misshapen_or_endless_answer_is_trouble_and_no_crash(answer: Answer) -> None:
    with serving(answer) as fake:
        said = d.agent(fake, repairs=0).decide(d.turn())
    assert said.commands == ()
    assert said.trouble


# --------------------------------------------------------------------------- waiting


def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks() -> None:
    clock, told = d.FakeClock(), list[str]()
    busy = status(429, "slow down", {"retry-after": "17"})
    with serving(busy, busy, d.reply()) as fake:
        answer = d.agent(fake, clock, tell=told.append).decide(d.turn())
    assert answer.commands
    assert clock.waits == [17.0, 17.0]
    assert (answer.spent.requests, answer.spent.seconds) == (3, 34.0)
    assert told[0].startswith("the server answers 429")
    assert told[0].endswith("the model is asked again in 17 s")


@pytest.mark.parametrize("code", [408, 500, 502, 503, 529])
def test_a_failing_server_is_asked_again_with_growing_pauses(code: int) -> None:
    clock = d.FakeClock()
    with serving(status(code), status(code), status(code), d.reply()) as fake:
        assert d.agent(fake, clock).decide(d.turn()).commands
    assert clock.waits == [1.0, 2.0, 4.0]


def test_patience_ends_in_an_error_that_says_what_was_tried() -> None:
    clock = d.FakeClock()
    with serving(status(500)) as fake:
        agent = d.agent(fake, clock, patience=Patience(total_s=900.0))
        with pytest.raises(InfraError, match=r"failed for 'm'.*gave up after \d+ requests"):
            agent.decide(d.turn())
    assert max(clock.waits) == 60.0
    assert 800.0 < sum(clock.waits) <= 900.0


def test_a_pause_beyond_the_patience_is_not_begun() -> None:
    clock = d.FakeClock()
    with (
        serving(status(429, headers={"retry-after": "3600"})) as fake,
        pytest.raises(InfraError, match="3600 s more"),
    ):
        d.agent(fake, clock).decide(d.turn())
    assert clock.waits == []


def test_a_server_that_is_not_there_is_waited_for_and_then_named() -> None:
    clock = d.FakeClock()
    with serving(silent) as fake:
        url = fake.url
    with pytest.raises(ConnectionLost, match=r"cannot be reached.*is the server running"):
        d.agent(url, clock, patience=Patience(total_s=10.0)).decide(d.turn())
    assert clock.waits == [1.0, 2.0, 4.0]


def test_a_silence_ends_one_request_and_the_next_may_be_silent_longer() -> None:
    def late(handler: Handler) -> None:
        handler.fake.stop.wait(0.4)
        d.reply()(handler)

    with serving(silent, late) as fake:
        answer = d.agent(fake, patience=SHORT).decide(d.turn())
    assert answer.commands
    assert len(fake.requests) == 2


@pytest.mark.parametrize("endless", [drip, silent])
def test_an_endless_answer_ends_with_the_patience(endless: Answer) -> None:
    patience = Patience(total_s=2.0, request_s=0.3, silence_s=0.2)
    with serving(endless) as fake, pytest.raises(Timeout, match="no whole answer"):
        d.agent(fake, patience=patience).decide(d.turn())
    assert len(fake.requests) == 2


def test_malformed_json_of_a_server_is_asked_again() -> None:
    pages = (raw(b"\xff\xfe{"), raw(b"<html>", "text/html"), raw(b"[]"), raw(b"", "text/plain"))
    with serving(*pages, d.reply()) as fake:
        answer = d.agent(fake, d.FakeClock()).decide(d.turn())
    assert answer.commands
    assert answer.spent.requests == 5


def test_a_server_that_talks_no_json_is_an_error_of_the_machinery() -> None:
    with serving(raw(b"hello", "text/plain")) as fake, pytest.raises(InfraError, match="no JSON"):
        d.agent(fake, d.FakeClock(), patience=Patience(total_s=5.0)).decide(d.turn())


def test_a_spent_account_is_not_waited_for() -> None:
    clock = d.FakeClock()
    body = {"error": {"message": "quota", "type": "insufficient_quota",
                      "code": "insufficient_quota"}}  # fmt: skip
    spent: Answer = lambda handler: handler.send(json.dumps(body).encode(), 429)  # noqa: E731
    with serving(spent) as fake, pytest.raises(InfraError, match="account"):
        d.agent(fake, clock).decide(d.turn())
    assert clock.waits == []


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_is_told_without_what_the_server_says_about_it(code: int) -> None:
    with serving(status(code, "bad key sk-almost")) as fake, pytest.raises(ConfigError) as error:
        d.agent(fake, key="sk-almost").decide(d.turn())
    assert "sk-" not in str(error.value)


def test_close_ends_a_decision_that_runs_in_a_thread() -> None:
    caught: list[BaseException] = []
    with serving(silent) as fake:
        agent = d.agent(fake)

        def decide() -> None:
            try:
                agent.decide(d.turn())
            except InfraError as error:
                caught.append(error)

        thread = threading.Thread(target=decide)
        thread.start()
        while thread.is_alive() and not fake.requests:
            thread.join(0.01)
        agent.close()
        thread.join(20.0)
        assert not thread.is_alive()
        assert "was stopped" in str(caught[0])
        agent.close()
        with pytest.raises(InfraError, match="was stopped"):
            agent.decide(d.turn())
    assert len(fake.requests) == 1


def test_close_ends_a_pause() -> None:
    told = threading.Event()
    caught: list[BaseException] = []
    with serving(status(429, headers={"retry-after": "500"})) as fake:
        agent = ModelAgent(
            ModelAddress("m", fake.url), ModelSettings(d.GRAMMAR), tell=lambda text: told.set()
        )
        agent.begin("put it down", ("arm",))

        def decide() -> None:
            try:
                agent.decide(d.turn())
            except InfraError as error:
                caught.append(error)

        thread = threading.Thread(target=decide)
        thread.start()
        assert told.wait(30.0)
        agent.close()
        thread.join(20.0)
    assert "was stopped" in str(caught[0])


# --------------------------------------------------------------------------- options and costs


def test_refused_options_are_left_out_one_by_one_and_for_good() -> None:
    told: list[str] = []
    picky = no_option("temperature", no_option("reasoning_effort", d.reply()))
    options = ModelOptions(temperature=0.0, effort="high")
    with serving(picky) as fake:
        agent = d.agent(fake, options=options, tell=told.append)
        assert agent.decide(d.turn()).spent.requests == 3
        assert agent.decide(d.turn(1)).spent.requests == 1
    assert fake.requests[0]["temperature"] == 0.0
    assert fake.requests[0]["reasoning_effort"] == "high"
    assert "temperature" not in fake.requests[1]
    assert "reasoning_effort" in fake.requests[1]
    assert any("temperature: left out" in note for note in agent.notes)
    assert len(told) == 2


def test_a_model_with_vision_in_its_name_may_refuse_an_option_too() -> None:
    with serving(no_option("temperature", d.reply())) as fake:
        agent = d.agent(fake, model="some-vision", options=ModelOptions(temperature=0.0))
        assert agent.decide(d.turn()).spent.requests == 2


def test_a_request_that_is_refused_for_another_reason_is_told() -> None:
    with serving(status(400, "messages: too odd")) as fake:
        agent = d.agent(fake, options=ModelOptions(temperature=0.0))
        with pytest.raises(ConfigError, match="too odd"):
            agent.decide(d.turn())
    assert len(fake.requests) == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (400, "This model does not support image input"),
        (404, "No endpoints found that support image input"),
    ],
)
def test_a_model_that_reads_no_pictures_is_told_at_once(code: int, words: str) -> None:
    clock = d.FakeClock()
    with serving(status(code, words)) as fake, pytest.raises(ConfigError, match="no pictures"):
        d.agent(fake, clock).decide(d.turn())
    assert clock.waits == []


def test_too_long_a_prompt_says_what_to_take_less_of() -> None:
    body = {"error": {"message": "maximum context length is 8192 tokens",
                      "code": "context_length_exceeded", "type": "x"}}  # fmt: skip
    full: Answer = lambda handler: handler.send(json.dumps(body).encode(), 400)  # noqa: E731
    with serving(full) as fake, pytest.raises(ConfigError, match="fewer demonstrations"):
        d.agent(fake).decide(d.turn())


def test_dollars_come_from_the_table() -> None:
    with serving(d.reply()) as fake:
        agent = d.agent(fake, prices={"m": Price(2.0, 10.0)})
        assert agent.priced
        answer = agent.decide(d.turn())
    assert answer.spent.dollars == pytest.approx(1000 * 2e-6 + 200 * 10e-6)
    assert agent.notes == ()


def test_an_unknown_price_counts_nothing_and_says_so() -> None:
    with serving(d.reply()) as fake:
        agent = d.agent(fake)
        assert agent.decide(d.turn()).spent.dollars == 0.0
    assert not agent.priced
    assert "no price is known" in agent.notes[0]


def test_a_provider_has_prices_of_the_library() -> None:
    agent = ModelAgent(ModelAddress("openai:gpt-5"), ModelSettings(d.GRAMMAR))
    assert agent.priced
    assert not ModelAgent(ModelAddress("openai:unheard-of"), ModelSettings(d.GRAMMAR)).priced


def test_tokens_that_a_server_does_not_count_are_estimated_and_said() -> None:
    with serving(text(json.dumps(d.GOOD), usage=None)) as fake:
        agent = d.agent(fake)
        spent = agent.decide(d.turn()).spent
    assert spent.input_tokens > 2000
    assert spent.output_tokens > 20
    assert any("counts no tokens" in note for note in agent.notes)


# --------------------------------------------------------------------------- what is sent


def test_all_before_the_turn_is_the_same_bytes_in_each_turn() -> None:
    shown = (
        Message("user", ("EXAMPLE", b"\xff\xd8jpeg"), stable=True),
        Message("model", ("I will copy the strategy.",)),
    )
    with serving(d.reply()) as fake:
        agent = d.agent(fake, demonstrations=lambda turn: shown)
        for k in range(3):
            agent.decide(d.turn(k, memory=f"note {k}"))
    before = [json.dumps(request["messages"][:-1]) for request in fake.requests]
    assert len(fake.requests[0]["messages"]) == 4
    assert before[0] == before[1] == before[2]
    assert "note 2" in json.dumps(fake.requests[2]["messages"][-1])


def test_demonstrations_are_chosen_anew_in_each_episode_only() -> None:
    chosen: list[int] = []
    with serving(d.reply()) as fake:
        agent = d.agent(fake, demonstrations=lambda turn: chosen.append(turn.index) or ())
        for _ in range(2):
            agent.begin("stack", ("arm",))
            agent.decide(d.turn(0))
            agent.decide(d.turn(1))
    assert chosen == [0, 0]


def test_pictures_are_small_few_and_of_this_turn_only() -> None:
    big = tuple(d.picture(f"view{k}", 10 * k, (900, 1600)) for k in range(12))
    limits = PictureLimits(count=5, width=768, height=768)
    with serving(d.reply()) as fake:
        agent = d.agent(fake, pictures=limits)
        agent.decide(d.turn(pictures=big))
        agent.decide(d.turn(1, pictures=big[:1]))
    assert len(fake.pictures(0)) == 5
    assert len(fake.pictures(1)) == 1
    kind, _, encoded = fake.pictures(0)[0].partition(",")
    assert kind == "data:image/jpeg;base64"
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        assert picture.size == (768, 432)
    assert "Picture view0: the view0 view with a grid" in fake.user_text(0)


def test_an_agent_without_pictures_does_not_look() -> None:
    with serving(d.reply()) as fake:
        agent = d.agent(fake, pictures=PictureLimits(count=0))
        agent.decide(d.turn())
    assert not agent.looks
    assert fake.pictures(0) == []
    assert d.agent("http://127.0.0.1:1/v1", pictures=PICTURES).looks


def test_the_prompt_holds_the_grammar_the_format_and_no_address() -> None:
    with serving(d.reply()) as fake:
        d.agent(fake).decide(d.turn())
    system = fake.requests[0]["messages"][0]
    assert system["role"] == "system"
    told = system["content"]
    for part in (d.GRAMMAR, '"commands"', "`done` is a claim", "one arm, arm", "at most 4"):
        assert part in told
    for word in ("http", "127.0.0.1", "localhost", "{arms}", "{format}"):
        assert word not in fake.user_text(0)
    assert "put the red block into the basket" in fake.user_text(0)
    assert "move x +5: ok: it moved 5.0 cm" in fake.user_text(0)


def test_a_key_goes_to_its_server_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    with serving(d.reply()) as fake:
        d.agent(fake, key="sk-mine").decide(d.turn())
        d.agent(fake).decide(d.turn())
    assert "Bearer sk-mine" in str(fake.headers[0])
    assert "sk-of-another" not in str(fake.headers)
    assert "sk-mine" not in repr(ModelAddress("m", fake.url, "sk-mine"))


def test_no_proxy_stands_before_a_server_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(d.reply()) as fake:
        assert d.agent(fake).decide(d.turn()).commands


def test_anthropics_interface_is_spoken_and_told_where_its_cache_ends() -> None:
    pytest.importorskip("anthropic", reason="needs pip install 'zetta[llm]'")
    shown = (Message("user", ("EXAMPLE",), stable=True), Message("model", ("Understood.",)))
    with serving(anthropic(json.dumps(d.GOOD))) as fake:
        url = fake.url.removesuffix("/v1")
        agent = d.agent(
            url, model="anthropic:claude-sonnet-5", key="sk-mine",
            demonstrations=lambda turn: shown, prices={"anthropic:claude-sonnet-5": Price(3, 15)},
        )  # fmt: skip
        answer = agent.decide(d.turn())
    assert answer.commands == ("move x +5", "gripper 0")
    assert answer.spent.input_tokens == 1000
    assert answer.spent.dollars == pytest.approx(1000 * 3e-6 + 50 * 15e-6)
    sent = fake.requests[0]
    assert sent["messages"][0]["content"][0]["cache_control"]
    assert "cache_control" not in json.dumps(sent["messages"][-1])
    assert "You drive a robot" in json.dumps(sent["system"])
    assert "sk-mine" in str(fake.headers[0])


# --------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("model", "url", "what"),
    [(" ", None, "no model's name"), ("m", "127.0.0.1:80", "expected one such as http")],
)
def test_wrong_addresses_are_told(model: str, url: str | None, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        ModelAddress(model, url)


@pytest.mark.parametrize("model", ["nobody:knows", "foo", "openai:gpt-5", "anthropic:claude-x"])
def test_a_model_that_cannot_be_asked_is_refused_before_a_robot_is_touched(model: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        ModelAgent(ModelAddress(model), ModelSettings(d.GRAMMAR)).check()


def test_a_key_makes_a_provider_usable_without_its_variable() -> None:
    for model in ("openai:gpt-5", "anthropic:claude-sonnet-5"):
        ModelAgent(ModelAddress(model, key="sk-x"), ModelSettings(d.GRAMMAR)).check()


def test_a_missing_client_is_told_with_the_line_that_fixes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(ConfigError, match=r"pip install 'zetta\[llm\]'"):
        ModelAgent(ModelAddress("m"), ModelSettings(d.GRAMMAR))


@pytest.mark.parametrize(
    ("package", "model", "line"),
    [
        ("anthropic", "anthropic:claude-sonnet-5", "zetta[llm]"),
        ("groq", "groq:llama", "slim[groq]"),
    ],
)
def test_the_missing_package_of_a_provider_is_told_with_the_line_that_fixes_it(
    monkeypatch: pytest.MonkeyPatch, package: str, model: str, line: str
) -> None:
    for name in [name for name in sys.modules if package in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError) as error:
        ModelAgent(ModelAddress(model, key="k"), ModelSettings(d.GRAMMAR)).check()
    assert "needs a package that is missing" in str(error.value)
    assert line in str(error.value)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="grammar"):
        ModelSettings(" ")
    with pytest.raises(ConfigError, match="repairs"):
        ModelSettings("wait", repairs=-1)
    with pytest.raises(ConfigError, match="silence_s"):
        Patience(silence_s=0.0)
    with pytest.raises(ConfigError, match="effort"):
        ModelOptions(effort="much")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no instruction"):
        ModelAgent(ModelAddress("m"), ModelSettings("wait")).begin(" ", ("arm",))
