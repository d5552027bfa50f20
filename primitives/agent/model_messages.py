"""Our messages and options in the client library's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic_ai import BinaryContent, CachePoint
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.settings import ModelSettings

from zetta.primitives.agent.model_options import ModelOptions
from zetta.primitives.agent.prompt import Message
from zetta.runtime.prompt_pictures import MEDIA_TYPE

LETTERS_PER_TOKEN: Final = 4
TOKENS_PER_PICTURE: Final = 1000
"""Both are rules of thumb, for servers that count nothing."""


def for_client(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return messages as the client library wants them.

    A provider with explicit caches is told where the part ends that is the same in each turn.
    """
    made: list[ModelMessage] = []
    for message in messages:
        texts = [part for part in message.parts if isinstance(part, str)]
        match message.author:
            case "system":
                made.append(ModelRequest([SystemPromptPart("\n".join(texts))]))
            case "model":
                made.append(ModelResponse([TextPart("\n".join(texts))]))
            case "user":
                made.append(ModelRequest([UserPromptPart(_content(message))]))
    return made


def _content(message: Message) -> str | list[UserContent]:
    if not message.stable and all(isinstance(part, str) for part in message.parts):
        return message.text  # the plainest form, for servers that read no parts
    content: list[UserContent] = [
        part if isinstance(part, str) else BinaryContent(part, media_type=MEDIA_TYPE)
        for part in message.parts
    ]
    return [*content, CachePoint()] if message.stable else content


def settings_for(
    model: Model[Any], options: ModelOptions, silence: float, request: float
) -> ModelSettings:
    """Return the settings of one request; nothing is repeated by the client itself."""
    settings = OpenAIChatModelSettings(
        max_tokens=options.answer_tokens,
        timeout=silence,
        request_timeout=request,
        max_retries=0,
        cache={"messages": False},
    )
    used = options.in_use
    if "temperature" in used and options.temperature is not None:
        settings["temperature"] = options.temperature
    if "effort" in used and options.effort:
        if isinstance(model, OpenAIChatModel):
            # Sent as it is: nobody knows what a server of one's own understands.
            settings["openai_reasoning_effort"] = options.effort
        else:
            settings["thinking"] = False if options.effort == "none" else options.effort
    return settings


def estimated_tokens(messages: Sequence[Message], reply: str) -> tuple[int, int]:
    """Return a guess of the tokens read and written."""
    parts = [part for message in messages for part in message.parts]
    pictures = sum(isinstance(part, bytes) for part in parts)
    letters = sum(len(part) for part in parts if isinstance(part, str))
    read = letters // LETTERS_PER_TOKEN + pictures * TOKENS_PER_PICTURE
    return read, -(-len(reply) // LETTERS_PER_TOKEN)
