"""One conversation with a language model: a prompt out, a draft or a reason back.

Nothing of an answer is run. Every request has a deadline, and the conversation has limits. Only
this module, `llm_answer` and `runtime.language_models` need the client library.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    TextOutput,
    ToolOutput,
)
from pydantic_ai import exceptions as said
from pydantic_ai.models import Model
from pydantic_ai.output import OutputSpec
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from zetta.runtime.errors import ConfigError
from zetta.runtime.language_models import (
    ANSWER_BYTES,
    Guarded,
    as_error,
    first_line,
    open_model,
)
from zetta.runtime.model_addresses import ModelAddress
from zetta.runtime.prompt_pictures import MEDIA_TYPE
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.llm_answer import SkillAnswer, read_answer
from zetta.skills.evolve.llm_limits import LlmLimits, OutputMode
from zetta.skills.evolve.llm_prompt import Prompt

NO_TOOLS: Final = (400, 404, 405, 415, 422, 500, 501)
"""With one of these, servers answer a request whose tools they do not understand."""
TOLD_MOST: Final = 12
"""Problems that are sent back at once."""
REASON_MOST: Final = 600

Judge = Callable[[SkillAnswer], tuple[Draft, Sequence[str]]]
"""Makes a draft of an answer and says what is wrong with it; runs nothing."""


@dataclass(slots=True)
class Conversation:
    """What came of it, whether it ended well or not."""

    draft: Draft | None = None
    reason: str = ""
    problems: tuple[str, ...] = ()
    """Of the last answer."""
    answers: int = 0
    too_long: bool = False
    usage: RunUsage = field(default_factory=RunUsage)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Server:
    """Who is asked, and what that may cost."""

    address: ModelAddress
    limits: LlmLimits


def check_model(server: Server) -> None:
    """Refuse a model that cannot be asked, before anything is spent on what it would be asked.

    Nothing is sent.

    Raises:
        ConfigError: no such model, or its key is missing.
    """

    async def build() -> None:
        async with AsyncExitStack() as stack:
            await _model(server, stack, Conversation())

    asyncio.run(build())


def converse(server: Server, prompt: Prompt, judge: Judge, talk: Conversation) -> None:
    """Ask for a skill, send back what is wrong with it, and note how it ended in `talk`.

    Raises:
        InfraError: the server cannot be reached, or fails.
        ConfigError: the model is unknown, or the server refuses who asks.
    """
    began = time.monotonic()
    try:
        asyncio.run(_talk(server, prompt, judge, talk))
    finally:
        talk.seconds = time.monotonic() - began


async def _talk(server: Server, prompt: Prompt, judge: Judge, talk: Conversation) -> None:
    mode = server.limits.output
    try:
        await _ask(server, prompt, judge, talk, mode)
    except said.ModelHTTPError as error:
        if mode != "auto" or error.status_code not in NO_TOOLS or talk.usage.requests:
            _explain(error, server, talk)
            return
        try:  # a server that knows no tools, perhaps: the fields are asked for in words
            await _ask(server, prompt, judge, talk, "prompted")
        except said.AgentRunError as again:
            _explain(again, server, talk)
    except said.AgentRunError as error:
        _explain(error, server, talk)
    except said.UserError as error:
        raise ConfigError(
            f"the model {server.address.model!r} cannot be used: {first_line(error)}"
        ) from None


async def _ask(
    server: Server, prompt: Prompt, judge: Judge, talk: Conversation, mode: OutputMode
) -> None:
    limits = server.limits
    async with AsyncExitStack() as stack:
        model = await _model(server, stack, talk)
        agent = Agent(
            Guarded(model),
            output_type=_output(mode, judge, talk),
            instructions=prompt.instructions,
            retries={"output": limits.repairs, "tools": limits.repairs},
            name="author",
        )
        await stack.enter_async_context(agent)  # closes the connections of a provider
        settings = ModelSettings(
            max_tokens=limits.answer_tokens,
            timeout=limits.request_s,
            request_timeout=limits.request_s,
        )
        pictures = [BinaryContent(data, media_type=MEDIA_TYPE) for data in prompt.pictures]
        result = await agent.run(
            [prompt.text, *pictures],
            model_settings=settings,
            usage=talk.usage,
            usage_limits=UsageLimits(
                request_limit=min(limits.requests, limits.repairs + 1),
                input_tokens_limit=limits.input_tokens,
                output_tokens_limit=limits.output_tokens,
            ),
            timeout=limits.total_s,
        )
        talk.draft = result.output


def _output(mode: OutputMode, judge: Judge, talk: Conversation) -> OutputSpec[Draft]:
    """Return how the answer is asked for; in every way it goes through the judge."""

    def hand_in(answer: SkillAnswer) -> Draft:
        """Hand in the whole skill."""
        talk.answers += 1
        draft, problems = judge(answer)
        talk.problems = tuple(problems)
        if problems:
            raise ModelRetry(_told(problems))
        return draft

    def hand_in_text(text: str) -> Draft:
        try:
            answer = read_answer(text)
        except ValueError as error:
            talk.answers += 1
            talk.problems = (f"the answer is no skill: {error}",)
            raise ModelRetry(
                f"This is no skill: {error}\nHand in the skill through the tool, or answer with "
                "one JSON object and nothing else, of the fields "
                + ", ".join(SkillAnswer.model_fields)
            ) from None
        return hand_in(answer)

    match mode:
        case "auto":
            return [ToolOutput(hand_in, name="hand_in"), TextOutput(hand_in_text)]
        case "tool":
            return ToolOutput(hand_in, name="hand_in")
        case "native":
            return NativeOutput(hand_in)
        case "prompted":
            return PromptedOutput(hand_in)


def _told(problems: Sequence[str]) -> str:
    lines = [problem[:REASON_MOST] for problem in problems[:TOLD_MOST]]
    more = len(problems) - len(lines)
    return (
        "The skill is refused:\n" + "\n".join(lines) + (f"\nand {more} more" if more else "")
        + "\nCorrect this and hand in the whole skill again."
    )  # fmt: skip


async def _model(server: Server, stack: AsyncExitStack, talk: Conversation) -> Model[Any]:
    def cut() -> None:
        talk.too_long = True

    return await open_model(server.address, stack, server.limits.request_s, cut)


# --------------------------------------------------------------------------- how it ended


def _explain(error: said.AgentRunError, server: Server, talk: Conversation) -> None:
    """Note why there is no draft, or raise where that is not the model's doing."""
    limits = server.limits
    match error:
        case _ if talk.too_long:
            talk.reason = f"the answer was longer than {ANSWER_BYTES:,} bytes and was cut off"
        case said.ModelRequestTimeout() | said.ModelTimeoutError():
            talk.reason = f"no whole answer came within {limits.request_s:g} s"
        case said.RunTimedOut():
            talk.reason = f"there was no skill after {limits.total_s:g} s"
        case said.ModelContextWindowExceededError():
            talk.reason = (
                f"the brief is longer than {server.address.model} reads; take a model with more"
            )
        case said.ModelAPIError():
            raise as_error(error, server.address) from None
        case said.OutputTokenLimitExceeded():
            talk.reason = f"the answer did not end within {limits.answer_tokens:,} tokens"
        case said.UsageLimitExceeded() if not talk.problems:
            talk.reason = f"the limits of this author are spent: {first_line(error)}"
        case _:
            talk.reason = _refused(error, talk)


def _refused(error: said.AgentRunError, talk: Conversation) -> str:
    if not talk.problems:
        return f"the model gave no usable answer: {first_line(error)}"
    return f"refused {talk.answers} times, at last: {'; '.join(talk.problems)[:REASON_MOST]}"
