"""What the author `llm` may spend on one draft, and how it asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from zetta.runtime.errors import ConfigError
from zetta.skills.evolve.llm_prompt import PromptLimits

OutputMode: TypeAlias = Literal["auto", "tool", "native", "prompted"]
"""How the answer is asked for: as a call of a tool or JSON in plain text, whichever comes; as a
tool that must be called; with the server's own JSON schema; or in words. `auto` goes on in words
when a server refuses tools."""


@dataclass(frozen=True, slots=True)
class LlmLimits:
    """Limits of one draft; what is beyond them ends without a draft."""

    repairs: int = 3
    """How often a refused answer is sent back."""
    requests: int = 4
    """Answers of the model, the first one included."""
    input_tokens: int = 400_000
    """Of all requests together."""
    output_tokens: int = 60_000
    """Of all answers together."""
    answer_tokens: int = 16_000
    """Of one answer; a model that thinks needs room for that too."""
    request_s: float = 300.0
    """Wall time of one request, with everything that the client tries again."""
    total_s: float = 1200.0
    """Wall time of the whole."""
    output: OutputMode = "auto"
    prompt: PromptLimits = field(default_factory=PromptLimits)

    def __post_init__(self) -> None:
        if self.repairs < 0:
            raise ConfigError(f"got {self.repairs} repairs; expected 0 or more")
        for name in (
            "requests", "input_tokens", "output_tokens", "answer_tokens", "request_s", "total_s"
        ):  # fmt: skip
            if not getattr(self, name) > 0:
                raise ConfigError(f"got {name} = {getattr(self, name)}; expected more than 0")
