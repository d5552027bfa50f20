"""Questions to a language model with patience: asked again while waiting helps, and no longer.

A question is a whole conversation; nothing is kept between two of them. `close`, from any thread,
ends the one that runs.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from pydantic_ai import exceptions as said
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from zetta.primitives.agent.model_messages import estimated_tokens, for_client, settings_for
from zetta.primitives.agent.model_options import ModelOptions
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.prices import Price
from zetta.primitives.agent.prompt import Message
from zetta.primitives.agent.records import Spent
from zetta.runtime.core import Clock
from zetta.runtime.errors import ConfigError, InfraError, Timeout, ZettaError
from zetta.runtime.language_models import ANSWER_BYTES, Guarded, as_error, first_line, open_model
from zetta.runtime.model_addresses import ModelAddress

WAITING_HELPS: Final = (408, 409, 425, 429, 500, 502, 503, 504, 529)
"""With one of these a server says that the same request may succeed later."""
_BLIND: Final = re.compile(
    r"\b(images?|vision|multimodal)\b[^.]{0,30}(not|n't|un) ?support"
    r"|not support[^.]{0,20}\bimage|that support image input",
    re.IGNORECASE,
)
"""How a server says that its model reads no pictures; some do so with status 500."""
Verdict: TypeAlias = Literal["wait", "options", "unreadable", "give up"]


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a question."""

    text: str
    spent: Spent
    problem: str = ""
    """Why there is no text, or not a whole one."""


@dataclass(slots=True)
class _Question:
    """Where one question stands."""

    messages: Sequence[Message]
    began: float
    requests: int = 0
    failures: int = 0
    too_long: bool = False


class ModelClient:
    """Asks one model; one question at a time."""

    def __init__(
        self,
        address: ModelAddress,
        options: ModelOptions,
        patience: Patience,
        prices: Mapping[str, Price],
        clock: Clock | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Choose a model; nothing is sent.

        Args:
            address: who is asked.
            options: how.
            patience: how long.
            prices: of models by their names; the client library's own list where one is missing.
            clock: for waiting; the wall's where None.
            tell: told in a sentence why it waits.
        """
        self._address, self._patience, self._tell = address, patience, tell
        self._options = options
        self._closed = threading.Event()
        self._clock: Clock = _Wall(self._closed) if clock is None else clock
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[ModelResponse]] | None = None
        self._silences = 0
        self._costs = _Costs(address, prices.get(address.model))

    @property
    def priced(self) -> bool:
        """Whether dollars are counted; without a price they stay 0."""
        return self._costs.known

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the costs and the settings should know."""
        return (*self._costs.notes, *self._options.notes)

    def check(self) -> None:
        """Refuse a model that cannot be asked; nothing is sent.

        Raises:
            ConfigError: no such model, or its key is missing.
        """

        async def build() -> None:
            async with AsyncExitStack() as stack:
                await open_model(self._address, stack, self._patience.silence_s)

        asyncio.run(build())

    def ask(self, messages: Sequence[Message]) -> Said:
        """Return what the model says.

        Raises:
            InfraError: it cannot be reached within the patience, or this was closed.
            ConfigError: the model is unknown, or the server refuses who asks or what.
        """
        question = _Question(messages, self._clock.now())
        while True:
            spent = self._clock.now() - question.began
            left = max(self._patience.total_s - spent, self._patience.pause_s)
            question.requests += 1
            try:
                response = self._send(question, left)
            except (said.AgentRunError, said.UserError) as error:
                problem = self._weigh(error, question)
                if problem:
                    return Said("", self._spent(question, None), problem)
            else:
                return self._read(response, question)

    def close(self) -> None:
        """End the question that runs, for good; calling it again does nothing."""
        self._closed.set()
        with self._lock:
            if self._running is not None:
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)

    # ----------------------------------------------------------------------- one request

    def _send(self, question: _Question, left: float) -> ModelResponse:
        self._refuse_if_closed()
        try:
            return asyncio.run(self._request(question, left))
        except asyncio.CancelledError:
            self._refuse_if_closed()
            raise

    async def _request(self, question: _Question, left: float) -> ModelResponse:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._running = (asyncio.get_running_loop(), task)
        try:
            self._refuse_if_closed()
            return await self._talk(question, left)
        finally:
            with self._lock:
                self._running = None

    async def _talk(self, question: _Question, left: float) -> ModelResponse:
        def cut() -> None:
            question.too_long = True

        silence = min(self._patience.silence(self._silences), left)
        async with AsyncExitStack() as stack:
            model = await open_model(self._address, stack, silence, cut)
            await stack.enter_async_context(model)  # closes the connections of a provider
            settings = settings_for(
                model, self._options, silence, min(self._patience.request_s, left)
            )
            return await model_request(
                Guarded(model), for_client(question.messages), model_settings=settings
            )

    def _refuse_if_closed(self) -> None:
        if self._closed.is_set():
            raise InfraError(f"the question to {self._address.model!r} was stopped")

    # ----------------------------------------------------------------------- what came of it

    def _weigh(self, error: said.AgentRunError | said.UserError, question: _Question) -> str:
        """Return why the reply is none, or nothing when the question is to be asked again.

        Raises:
            InfraError: patience is at its end.
            ConfigError: asking again would not help.
        """
        if question.too_long:
            return f"it was longer than {ANSWER_BYTES:,} bytes and was cut off"
        match judge(error):
            case "unreadable":
                return f"the server's answer could not be read: {first_line(error)}"
            case "options":
                fewer = self._options.without_refused(first_line(error))
                if fewer is not None:
                    self._options = fewer
                    self._tell(fewer.notes[-1])
                    return ""
            case "wait":
                self._wait(error, question)
                return ""
        raise self._end(error) from None

    def _wait(self, error: said.AgentRunError | said.UserError, question: _Question) -> None:
        question.failures += 1
        if isinstance(error, said.ModelTimeoutError | said.ModelRequestTimeout):
            self._silences += 1
        asked = error.retry_after if isinstance(error, said.ModelAPIError) else None
        pause = self._patience.pause(question.failures, asked)
        spent = self._clock.now() - question.began
        if spent + pause >= self._patience.total_s:
            ended = self._end(error)
            kind = type(ended) if isinstance(ended, InfraError) else InfraError
            raise kind(
                f"{ended}; gave up after {question.requests} requests and {spent:.0f} s "
                f"(the server would have to be waited for {pause:.0f} s more, "
                f"the patience is {self._patience.total_s:.0f} s)"
            ) from None
        self._tell(f"{_trouble(error)}; the model is asked again in {pause:.0f} s")
        self._clock.sleep_until(self._clock.now() + pause)

    def _end(self, error: said.AgentRunError | said.UserError) -> ZettaError:
        where, model = self._address.where, self._address.model
        match error:
            case said.ModelHTTPError() if _BLIND.search(str(error.body)):
                return ConfigError(
                    f"{model!r} reads no pictures ({first_line(error)}); show none, or take "
                    "another model"
                )
            case said.ModelTimeoutError() | said.ModelRequestTimeout():
                return Timeout(f"{where} gave no whole answer for {model!r} in time")
            case said.ModelQuotaExceededError():
                return InfraError(f"the account behind {model!r} is spent: {first_line(error)}")
            case said.ModelContextWindowExceededError():
                return ConfigError(
                    f"a turn is longer than {model!r} reads; take fewer demonstrations or "
                    "pictures, or a model with more"
                )
            case said.ModelAPIError():
                return as_error(error, self._address)
        if isinstance(error, said.UnexpectedModelBehavior):
            return InfraError(f"{where} answers for {model!r} with something that is no JSON")
        return ConfigError(f"the model {model!r} cannot be used: {first_line(error)}")

    def _read(self, response: ModelResponse, question: _Question) -> Said:
        text = response.text or ""
        spent = self._spent(question, response)
        if question.too_long:
            return Said("", spent, f"it was longer than {ANSWER_BYTES:,} bytes and was cut off")
        cut = response.finish_reason == "length"
        most = self._options.answer_tokens
        return Said(text, spent, f"it did not end within {most:,} tokens" if cut else "")

    def _spent(self, question: _Question, response: ModelResponse | None) -> Spent:
        seconds = self._clock.now() - question.began
        if response is None:
            return Spent(question.requests, seconds=seconds)
        usage = response.usage
        read, written = usage.input_tokens, usage.output_tokens
        if not read and not written:
            read, written = estimated_tokens(question.messages, response.text or "")
            self._costs.estimated = True
        dollars = self._costs.of(read, written, usage.cache_read_tokens, usage.cache_write_tokens)
        return Spent(question.requests, read, written, dollars, seconds)


@dataclass(slots=True)
class _Costs:
    """Dollars for tokens, and what is not known about them."""

    address: ModelAddress
    price: Price | None
    known: bool = field(init=False)
    estimated: bool = False

    def __post_init__(self) -> None:
        self.known = self.price is not None or self._listed(1, 1, 0, 0) is not None

    @property
    def notes(self) -> tuple[str, ...]:
        found = []
        if not self.known:
            found.append(
                f"no price is known for {self.address.model!r}: dollars are counted as 0; "
                "give a table of prices"
            )
        if self.estimated:
            found.append("the server counts no tokens: they are estimated from the texts")
        return tuple(found)

    def of(self, read: int, written: int, cached: int, stored: int) -> float:
        """Return the dollars; 0 where no price is known."""
        if self.price is not None:
            return self.price.dollars(read, written, cached)
        return self._listed(read, written, cached, stored) or 0.0

    def _listed(self, read: int, written: int, cached: int, stored: int) -> float | None:
        """Return dollars by the client library's list; None where it does not know the model."""
        provider, _, name = self.address.model.partition(":")
        if self.address.base_url is not None or not name:
            return None
        from genai_prices import calc_price

        usage = RequestUsage(
            input_tokens=read,
            output_tokens=written,
            cache_read_tokens=cached,
            cache_write_tokens=stored,
        )
        try:
            return float(calc_price(usage, name, provider_id=provider.split("-")[0]).total_price)
        except (LookupError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class _Wall:
    """The wall's clock, whose waiting `close` ends."""

    closed: threading.Event

    def now(self) -> float:
        return time.monotonic()

    def sleep_until(self, t: float) -> bool:
        left = t - time.monotonic()
        if left > 0.0:
            self.closed.wait(left)
        return left > 0.0


_NO_JSON: Final = "expected JSON data"
"""In the client's complaint about an answer that comes from no model, such as a proxy's page."""


def judge(error: said.AgentRunError | said.UserError) -> Verdict:
    """Return what may help after a failed request."""
    match error:
        case said.ModelHTTPError() if _BLIND.search(str(error.body)):
            return "give up"
        case said.ModelQuotaExceededError() | said.ModelContextWindowExceededError():
            return "give up"
        case said.ModelAuthenticationError() | said.ModelNotFoundError():
            return "give up"
        case said.ModelConnectionError() | said.ModelRequestTimeout():
            return "wait"
        case said.ModelRateLimitError() | said.ModelUnavailableError() | said.ModelServerError():
            return "wait"
        case said.ModelHTTPError() if error.status_code in WAITING_HELPS:
            return "wait"
        case said.ModelHTTPError():
            return "options" if error.status_code in (400, 422) else "give up"
        case said.ModelRequestRejectedError():
            return "give up"
        case said.ModelAPIError():
            return "wait"  # such as an answer that is no JSON, from a proxy in between
        case said.UnexpectedModelBehavior():
            return "wait" if _NO_JSON in str(error) else "unreadable"
    return "give up"


def _message(body: object) -> str:
    """Return what a server says in an error, where it says it in the usual place."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    return message.strip()[:160] if isinstance(message, str) else ""


def _trouble(error: said.AgentRunError | said.UserError) -> str:
    match error:
        case said.ModelTimeoutError() | said.ModelRequestTimeout():
            return "the server was silent too long"
        case said.ModelHTTPError():
            said_so = _message(error.body)
            return f"the server answers {error.status_code}" + (f" ({said_so})" if said_so else "")
        case said.ModelConnectionError():
            return "the server cannot be reached"
    return f"the request failed ({first_line(error)})"
