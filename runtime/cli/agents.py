"""Agents by name, what they may spend, and where their keys come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

from zetta.primitives.agent.demonstration_choice import Ranked, chooser
from zetta.primitives.agent.demonstrations import SceneKey, read_library
from zetta.primitives.agent.human_agent import HumanAgent
from zetta.primitives.agent.mcp_agent import MCP
from zetta.primitives.agent.model_agent import ModelAgent, ModelSettings, no_demonstrations
from zetta.primitives.agent.model_options import Effort, ModelOptions
from zetta.primitives.agent.observation import turn_text
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.prices import read_prices
from zetta.primitives.agent.prompt import PICTURES, Message
from zetta.primitives.agent.records import Agent, Limits, Turn
from zetta.primitives.agent.replay_agent import ReplayAgent
from zetta.primitives.agent.scripted_agent import ScriptedAgent
from zetta.primitives.command_grammar import FORMS, GRAMMAR
from zetta.runtime.cli import output
from zetta.runtime.cli.number_lists import number
from zetta.runtime.core import RunSpec, Scene
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.model_addresses import ModelAddress
from zetta.runtime.registry import AGENT_PREFIX

KINDS: Final = ("scripted", "human", "replay:FILE", "openai:MODEL", "anthropic:MODEL")
"""What `--agent` may be; with an address, any name of a model."""
SCRIPTS: Final = ("scripted", "human", "replay", MCP)
"""The agents that are no models."""
_PATIENCE: Final = ("total_s", "request_s", "silence_s")
LIMIT_OPTIONS: Final = ("turns", "commands_per_turn", "tokens", "dollars", "drive_s")
"""The options that bound what an agent may spend."""


def is_agent(spec: RunSpec) -> bool:
    """Say whether an agent drives."""
    return spec.policy.startswith(AGENT_PREFIX)


def agent_name(spec: RunSpec) -> str:
    """Return the name of the agent that drives, as in `--agent`."""
    return spec.policy.removeprefix(AGENT_PREFIX)


def check_agent(spec: RunSpec) -> None:
    """Refuse an agent that cannot be made, or a limit that is none.

    Raises:
        ConfigError: there is no such agent, or something about it is wrong.
    """
    name = agent_name(spec)
    kind, colon, rest = name.partition(":")
    if kind == "replay" and rest:
        ReplayAgent(Path(rest))
    elif kind in SCRIPTS and (colon or kind == "replay"):
        raise ConfigError(f"got the agent {name!r}; expected one of {', '.join(KINDS)}")
    elif kind not in SCRIPTS:
        if not (colon and rest) and "base_url" not in spec.options:
            raise ConfigError(f"unknown agent {name!r}; {suggest(name, KINDS)}")
        _check_model(spec)
    elif spec.options.get("think_ahead") == "yes":
        raise ConfigError(f"only models think ahead; {name!r} answers at once")
    limits_of(spec)


def _check_model(spec: RunSpec) -> None:
    agent = model_agent(spec)
    agent.check()
    if limits_of(spec).dollars and not agent.priced:
        raise ConfigError(
            f"nobody knows what {agent.name!r} costs, so a limit in dollars would limit nothing; "
            "add --option prices=FILE, or leave --dollars out"
        )


def limits_of(spec: RunSpec) -> Limits:
    """Return what the agent may spend.

    Raises:
        ConfigError: a limit is no number, or negative.
    """
    least = {"turns": 1.0, "commands_per_turn": 1.0}
    values: dict[str, float] = {}
    for name in LIMIT_OPTIONS:
        if name in spec.options:
            values[name] = number(spec.options[name], f"the option {name}")
            if values[name] < least.get(name, 0.0):
                raise ConfigError(f"the option {name} is at least {least.get(name, 0.0):g}")
    plain = Limits()
    return Limits(
        turns=int(values.get("turns", plain.turns)),
        commands_per_turn=int(values.get("commands_per_turn", plain.commands_per_turn)),
        tokens=int(values.get("tokens", plain.tokens)),
        dollars=values.get("dollars", plain.dollars),
        wall_s=values.get("drive_s", plain.wall_s),
    )


def make_agent(spec: RunSpec, scene: Scene) -> Agent:
    """Return the agent that `spec` names.

    Args:
        spec: names it.
        scene: what is driven; no demonstration of it is shown.

    Raises:
        ConfigError: see `check_agent`; or its package or its key is missing.
    """
    check_agent(spec)
    kind, _, rest = agent_name(spec).partition(":")
    if kind == "scripted":
        return ScriptedAgent()
    if kind == "replay":
        return ReplayAgent(Path(rest))
    if kind == "human":
        from zetta.runtime.cli.terminal import asker, teller

        return HumanAgent(asker([form.words[0] for form in FORMS]), teller)
    if kind == MCP:
        raise ConfigError("the agent 'mcp' is the client of a server; start one with zetta mcp")
    return model_agent(spec, scene)


def model_agent(spec: RunSpec, scene: Scene | None = None) -> ModelAgent:
    """Return the language model that `spec` names; nothing is sent.

    Raises:
        ConfigError: something about it is wrong, or its package is missing.
    """
    given = spec.options
    address = ModelAddress(agent_name(spec), given.get("base_url") or None)
    patience = Patience(**{n: number(given[n], n) for n in _PATIENCE if n in given})
    options = ModelOptions(
        temperature=number(given["temperature"], "temperature") if "temperature" in given else None,
        effort=cast(Effort, given.get("effort", "")),
    )
    count = int(number(given.get("pictures", f"{PICTURES.count}"), "the option pictures"))
    settings = ModelSettings(
        GRAMMAR,
        turn_text,
        _demonstrations(spec, scene),
        limits_of(spec).commands_per_turn,
        pictures=replace(PICTURES, count=count),
        options=options,
        patience=patience,
        prices=read_prices(Path(given["prices"])) if "prices" in given else {},
    )
    return ModelAgent(address, settings, tell=output.note)


def _demonstrations(spec: RunSpec, scene: Scene | None) -> Callable[[Turn], Sequence[Message]]:
    folder = spec.options.get("demonstrations")
    if folder is None:
        return no_demonstrations
    shots = int(number(spec.options.get("shots", "1"), "the option shots"))
    exclude = None if scene is None else SceneKey.of(scene)
    return chooser(read_library(Path(folder)), shots, exclude, chosen=_tell_chosen)


def _tell_chosen(ranked: Sequence[Ranked]) -> None:
    names = ", ".join(str(one.demonstration.folder.name) for one in ranked) or "none fits"
    output.note(f"demonstrations shown: {names}")
