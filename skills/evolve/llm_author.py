"""The author `llm`: a language model writes the skill, the screen says what is wrong with it.

Any provider by its model's name, or a server with OpenAI's interface by its address. What the model
writes is checked here and never run; a draft is judged like any other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from zetta.runtime.errors import ConfigError
from zetta.runtime.model_addresses import ModelAddress, require_client
from zetta.skills.evolve.authors import Brief, Draft, NoDraft, is_resubmission
from zetta.skills.evolve.llm_limits import LlmLimits
from zetta.skills.evolve.llm_prompt import write_prompt
from zetta.skills.evolve.screen import screen

if TYPE_CHECKING:
    from zetta.skills.evolve.llm_answer import SkillAnswer
    from zetta.skills.evolve.llm_conversation import Conversation


class LlmAuthor:
    """Asks a language model for one skill; an `Author`."""

    name = "llm"

    def __init__(
        self, model: str, base_url: str | None = None, limits: LlmLimits | None = None
    ) -> None:
        """Choose a model.

        Args:
            model: `provider:name`, such as `openai:gpt-5` or `anthropic:claude-sonnet-5`; with
                `base_url`, the name under which that server knows it.
            base_url: of a server with OpenAI's interface, such as `http://127.0.0.1:8080/v1`. It
                gets no key, unless the model's name begins with `openai:`.
            limits: what one draft may cost.

        Raises:
            ConfigError: there is no model's name, the address is none, or the package
                `pydantic-ai-slim` is missing.
        """
        if not model.strip():
            raise ConfigError("the author llm needs a model's name, such as openai:gpt-5")
        self._address = ModelAddress(model, base_url)
        require_client("the author llm")
        self._limits = limits or LlmLimits()
        self._last: Draft | None = None

    def check(self) -> None:
        """Refuse a model that cannot be asked; nothing is sent.

        Raises:
            ConfigError: no such model, or its key is missing.
        """
        from zetta.skills.evolve.llm_conversation import Server, check_model

        check_model(Server(self._address, self._limits))

    def propose(self, brief: Brief) -> Draft | NoDraft:
        """Return what the model handed in, once the screen has nothing against it.

        Raises:
            InfraError: the server cannot be reached, or fails.
            ConfigError: the model is unknown, or the server refuses who asks.
            ScreenError: a deployed skill is damaged.
        """
        from zetta.skills.evolve.llm_conversation import Conversation, Server, converse

        if not brief.failures:
            return NoDraft("there are no failures to learn from")
        last = self._last
        known = last if last is not None and is_resubmission(last, brief.rejected) else None
        prompt = write_prompt(brief, self._limits.prompt, known)
        server = Server(self._address, self._limits)
        talk = Conversation()
        converse(server, prompt, lambda answer: self._judge(answer, brief), talk)
        if talk.draft is None:
            return NoDraft(talk.reason, _cost(talk))
        draft = talk.draft
        self._last = draft
        return Draft(draft.name, draft.files, draft.hypothesis, _cost(talk))

    def _judge(self, answer: SkillAnswer, brief: Brief) -> tuple[Draft, Sequence[str]]:
        """Make a draft and return what the screen has against it; nothing of it is run."""
        from zetta.skills.evolve.llm_answer import draft_of

        parent = {package.name: package for package in brief.parent}
        draft = draft_of(answer, parent, f"zetta llm {self._address.model}")
        with tempfile.TemporaryDirectory(prefix="zetta-") as place:
            # Without episodes and windows the screen reads a draft and runs nothing.
            result = screen(
                draft, Path(place) / "candidate", brief.parent, brief.rejected, brief.sensing,
                brief.edits,
            )  # fmt: skip
        return draft, result.problems


def _cost(talk: Conversation) -> Mapping[str, float]:
    usage = talk.usage
    return {
        "requests": float(usage.requests),
        "input_tokens": float(usage.input_tokens),
        "output_tokens": float(usage.output_tokens),
        "seconds": round(talk.seconds, 2),
    }
