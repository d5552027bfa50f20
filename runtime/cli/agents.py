"""Agents by name, what they may spend, and where their keys come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from zetta.primitives.agent.human_agent import HumanAgent
from zetta.primitives.agent.mcp_agent import MCP
from zetta.primitives.agent.records import Agent, Limits
from zetta.primitives.agent.replay_agent import ReplayAgent
from zetta.primitives.agent.scripted_agent import ScriptedAgent
from zetta.runtime.cli.number_lists import number
from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.registry import AGENT_PREFIX

KINDS: Final = ("scripted", "human", "replay:FILE", "openai:MODEL", "anthropic:MODEL")
"""What `--agent` may be."""
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
    if kind in ("scripted", "human", MCP) and not colon:
        pass
    elif kind == "replay" and rest:
        ReplayAgent(Path(rest))
    elif not (colon and kind in MODELS and rest):
        raise ConfigError(f"unknown agent {name!r}; {suggest(name, KINDS)}")
    if spec.options.get("think_ahead") == "yes" and kind not in MODELS:
        raise ConfigError(f"only models think ahead; {name!r} answers at once")
    limits_of(spec)


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


def make_agent(spec: RunSpec) -> Agent:
    """Return the agent that `spec` names.

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
        return _human()
    if kind == MCP:
        raise ConfigError("the agent 'mcp' is the client of a server; start one with zetta mcp")
    return MODELS[kind](spec)


def _human() -> Agent:
    from zetta.runtime.cli.terminal import asker, teller

    return HumanAgent(asker(), teller)


MODELS: Final[Mapping[str, Callable[[RunSpec], Agent]]] = {}
"""Providers of models, by the part of the name before the colon."""
