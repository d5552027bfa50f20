"""Which language model is meant: its name, its server and its key, before anybody is asked.

This module does not need the client library, so whoever names a model can be checked without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zetta.runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ModelAddress:
    """Who is asked.

    Raises:
        ConfigError: there is no model's name, or the address is none.
    """

    model: str
    """`provider:name`, such as `openai:gpt-5` or `anthropic:claude-sonnet-5`; with `base_url`,
    the name under which that server knows it."""
    base_url: str | None = None
    """Of a server with OpenAI's interface, such as `http://127.0.0.1:8080/v1`; of one with
    Anthropic's, where the model's name begins with `anthropic:`. It gets no key of a provider's
    own, unless the name begins with `openai:` or `anthropic:`."""
    key: str = field(default="", repr=False)
    """Goes to that server or provider and nowhere else. Empty for the provider's own variable."""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("there is no model's name; expected one such as openai:gpt-5")
        object.__setattr__(self, "model", self.model.strip())
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"got the address {self.base_url!r}; expected one such as http://127.0.0.1:8080/v1"
            )

    @property
    def where(self) -> str:
        """What a message calls the one who is asked."""
        return self.base_url or "the provider"


def require_client(who: str) -> None:
    """Refuse to go on without the client library.

    Raises:
        ConfigError: the package `pydantic-ai-slim` is missing.
    """
    try:
        import pydantic_ai  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"{who} needs the package pydantic-ai-slim, which is missing; run "
            "pip install 'zetta[llm]'"
        ) from None
