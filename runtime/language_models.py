"""The client of language models: a model behind an address, and what its trouble means.

Only modules that import this one need the client library (`pip install 'zetta[llm]'`). Every
request has a deadline, and a server named by its address may send only so many bytes.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic_ai import exceptions as said
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    Model,
    ModelRequestParameters,
    create_async_httpx2_client,
    infer_model,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError, ZettaError
from zetta.runtime.model_addresses import ModelAddress

OPENAI: Final = "openai:"
"""Before a model's name, beside an address: the server gets the key of OpenAI's client."""
ANTHROPIC: Final = "anthropic:"
"""The same for a server with Anthropic's interface."""
ANSWER_BYTES: Final = 4_000_000
"""Of one answer of a server named by its address."""


async def open_model(
    address: ModelAddress,
    stack: AsyncExitStack,
    timeout: float,
    cut: Callable[[], None] = lambda: None,
) -> Model[Any]:
    """Return the model, with a connection of its own that is closed with the stack.

    Nothing is sent.

    Args:
        address: who is asked.
        stack: closes the connection.
        timeout: longest silence of a server named by its address, seconds.
        cut: told when such a server's answer is longer than `ANSWER_BYTES` and is cut off.

    Raises:
        ConfigError: no such model, or its key is missing.
    """
    try:
        if address.base_url is None:
            return _by_provider(address)
        http = create_async_httpx2_client(timeout=timeout, transport=_transport(address.base_url))
        http.event_hooks = {"response": [_Bounded(cut).watch]}
        await stack.enter_async_context(http)
        return _by_url(address, address.base_url, http)
    except ImportError as error:
        raise ConfigError(
            f"the model {address.model!r} needs a package that is missing: {_missing(error)}"
        ) from None
    except (said.UserError, openai.OpenAIError, ValueError, TypeError) as error:
        raise ConfigError(
            f"the model {address.model!r} cannot be used: {_complaint(error)}"
        ) from None


def _complaint(error: Exception) -> str:
    """Return why a model cannot be used; of a missing key the client speaks in its own code."""
    key = re.search(r"\b[A-Z][A-Z0-9_]*_API_KEY\b", str(error))
    if key is None:
        return first_line(error)
    return f"its key is missing; put it into the environment variable {key.group(0)}"


def _missing(error: ImportError) -> str:
    """Return which line installs what is missing: ours, where ours brings it."""
    words = first_line(error)
    ours = any(f"[{name}]" in words for name in ("openai", "anthropic"))
    return "run pip install 'zetta[llm]'" if ours else words


def _transport(base_url: str) -> httpx2.AsyncHTTPTransport | None:
    """Return the connection to a server on this machine; None leaves it to the client.

    No proxy stands between a machine and itself, and reading the root certificates takes longer
    than a small model's answer. Without any, a redirect to a server that needs them fails.
    """
    parts = urlsplit(base_url)
    if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
        return None
    return httpx2.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def _by_provider(address: ModelAddress) -> Model[Any]:
    if not address.key:
        return infer_model(address.model)
    return infer_model(address.model, lambda name: _made(name, api_key=address.key))


def _by_url(address: ModelAddress, base_url: str, http: httpx2.AsyncClient) -> Model[Any]:
    key = address.key or None
    if address.model.startswith(OPENAI):
        provider = OpenAIProvider(base_url=base_url, api_key=key, http_client=http)
        return OpenAIChatModel(address.model.removeprefix(OPENAI), provider=provider)
    if address.model.startswith(ANTHROPIC):
        return infer_model(
            address.model,
            lambda name: _made(name, base_url=base_url, api_key=key, http_client=http),
        )
    # This one never reads a key: one that is meant for OpenAI is not sent to somebody else.
    keyless = OpenAICompatibleProvider(
        "server",
        base_url=base_url,
        api_key=key,
        http_client=http,
        profile=OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False),
    )
    return OpenAIChatModel(address.model, provider=keyless)


def _made(name: str, **settings: object) -> Provider[Any]:
    """Return a provider with settings that its kind may have; TypeError where it has not."""
    kind: Callable[..., Provider[Any]] = infer_provider_class(name)
    return kind(**settings)


class Guarded(WrapperModel):
    """Turns what a client makes of a misshapen answer into an error of its own kind."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask; see the wrapped model."""
        try:
            return await super().request(messages, model_settings, model_request_parameters)
        except (TypeError, AttributeError, LookupError, ValueError, RecursionError) as error:
            what = f"the answer has another shape than expected ({type(error).__name__})"
            raise said.UnexpectedModelBehavior(what) from error


@dataclass(frozen=True, slots=True)
class _Bounded:
    """Cuts answers that are too long; what is left of them is no JSON."""

    cut: Callable[[], None]

    async def watch(self, response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Cut(response.stream, self.cut)


class _Cut(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, cut: Callable[[], None]) -> None:
        self._stream, self._cut = stream, cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self._stream:
            count += len(part)
            if count > ANSWER_BYTES:
                self._cut()
                return
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def as_error(error: said.ModelAPIError, address: ModelAddress) -> ZettaError:
    """Return what a failed request means: settings that must change, or machinery that failed."""
    where, model = address.where, address.model
    match error:
        case said.ModelAuthenticationError():
            # What a server says here may repeat a part of the key.
            return ConfigError(
                f"{where} refuses the key for {model!r}; set the provider's own variable, "
                "such as OPENAI_API_KEY"
            )
        case said.ModelNotFoundError() | said.ModelRequestRejectedError():
            return ConfigError(f"{where} refuses {model!r}: {first_line(error)}")
        case said.ModelConnectionError():
            return ConnectionLost(
                f"{where} cannot be reached for {model!r}; is the server running?"
            )
        case _:
            return InfraError(f"{where} failed for {model!r}: {first_line(error)}")


def first_line(error: BaseException) -> str:
    """Return the first line of a message, and not too much of it."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
