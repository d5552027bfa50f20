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
from zetta.primitives.overlays import parse_overlays
from zetta.runtime.cli import output
from zetta.runtime.cli.number_lists import number
from zetta.runtime.core import RunSpec, Scene
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.model_addresses import ModelAddress
from zetta.runtime.registry import AGENT_PREFIX, check_policy

KINDS: Final = ("scripted", "human", "replay:FILE", "openai:MODEL", "anthropic:MODEL")
"""What `--agent` may be; with an address, any name of a model."""
SCRIPTS: Final = ("scripted", "human", "replay", MCP)
"""The agents that are no models."""
_PATIENCE: Final = ("total_s", "request_s", "silence_s")
LIMIT_OPTIONS: Final = {
    "turns": "--turns",
    "commands_per_turn": "--commands-per-turn",
    "tokens": "--tokens",
    "dollars": "--dollars",
    "drive_s": "--seconds",
}
"""The options that bound what an agent may spend, and how they are typed."""
MODEL_OPTIONS: Final = {
    "base_url": "--base-url",
    "think_ahead": "--think-ahead",
    "demonstrations": "--demonstrations",
    "shots": "--shots",
    "prices": "the option prices",
    "effort": "the option effort",
    "pictures": "the option pictures",
}
"""The options that only a model heeds, and how they are typed."""


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
        _check_for_models(spec)
    elif kind in SCRIPTS and (colon or kind == "replay"):
        raise ConfigError(f"got the agent {name!r}; expected one of {', '.join(KINDS)}")
    elif kind not in SCRIPTS:
        if not (colon and rest) and "base_url" not in spec.options:
            raise ConfigError(
                f"unknown agent {name!r}; {suggest(name, KINDS)}; a model on a server of your own "
                "needs --base-url"
            )
        _check_model(spec)
    else:
        _check_for_models(spec)
    if "vla" in spec.options:
        check_policy(spec.options["vla"])
    parse_overlays(spec.options.get("overlays", "all"))
    _check_folder(spec)
    limits_of(spec)


def _check_model(spec: RunSpec) -> None:
    agent = model_agent(spec)
    agent.check()
    if limits_of(spec).dollars and not agent.priced:
        raise ConfigError(
            f"nobody knows what {agent.name!r} costs, so a limit in dollars would limit nothing; "
            "add --option prices=FILE, or leave --dollars out"
        )


def _check_for_models(spec: RunSpec) -> None:
    """Refuse what only a model would heed."""
    for name, flag in MODEL_OPTIONS.items():
        if name in spec.options:
            raise ConfigError(f"{flag} is for models; leave it out with {agent_name(spec)!r}")


def _check_folder(spec: RunSpec) -> None:
    """Make the folder for demonstrations now, so that none is lost after its drive."""
    folder = spec.options.get("save_demonstrations")
    if folder is None:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot keep demonstrations in {folder}: {error.strerror}; name another folder"
        ) from error


def limits_of(spec: RunSpec) -> Limits:
    """Return what the agent may spend.

    Raises:
        ConfigError: a limit is no number, or negative.
    """
    least = {"turns": 1.0, "commands_per_turn": 1.0}
    values: dict[str, float] = {}
    for name, flag in LIMIT_OPTIONS.items():
        if name in spec.options:
            values[name] = number(spec.options[name], flag)
            if values[name] < least.get(name, 0.0):
                raise ConfigError(
                    f"{flag} is at least {least.get(name, 0.0):g}, got {spec.options[name]}"
                )
    plain = Limits()
    return Limits(
        turns=int(values.get("turns", plain.turns)),
        commands_per_turn=int(values.get("commands_per_turn", plain.commands_per_turn)),
        tokens=int(values.get("tokens", plain.tokens)),
        dollars=values.get("dollars", plain.dollars),
        wall_s=values.get("drive_s", plain.wall_s),
        # A person may err as often as it takes, and a record goes on to its end.
        idle_turns=0 if agent_name(spec).partition(":")[0] in ("human", "replay") else 6,
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
        return ReplayAgent(Path(rest), output.note)
    if kind == "human":
        from zetta.runtime.cli.terminal import asker, keep_pictures, teller

        return HumanAgent(asker([form.words[0] for form in FORMS]), teller, GRAMMAR, keep_pictures)
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
    shown = chooser(read_library(Path(folder)), shots, exclude, chosen=_tell_chosen)
    return shown if shots else no_demonstrations


def _tell_chosen(ranked: Sequence[Ranked]) -> None:
    names = ", ".join(str(one.demonstration.folder.name) for one in ranked) or "none fits"
    output.note(f"demonstrations shown: {names}")
