"""Names of simulators, policies, signals and arms, and where they live. Listing imports nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from zetta.runtime.core import Policy, Simulator
from zetta.runtime.errors import ConfigError, suggest

if TYPE_CHECKING:
    from zetta.runtime.signals_source import ExtraSignal

SIMS: Mapping[str, str] = {
    "toy": "zetta.sims.toy:ToySimulator",
    "libero": "zetta.sims.libero.simulator:LiberoSimulator",
    "twin": "zetta.hw_drivers.twin.simulator:TwinSimulator",
    "robosuite": "zetta.sims.robosuite.simulator:RobosuiteSimulator",
    "maniskill": "zetta.sims.maniskill.simulator:ManiSkillSimulator",
    "robotwin": "zetta.sims.robotwin.simulator:RobotwinSimulator",
    "robocasa": "zetta.sims.robocasa.simulator:RobocasaSimulator",
}
POLICIES: Mapping[str, str] = {
    "zetta/tiny": "zetta.runtime.policies.tiny.serve:load",
    "zetta/tiny-shuffled": "zetta.runtime.policies.tiny.serve:load",
    "tiny:": "zetta.runtime.policies.tiny.serve:load",
    "toy/reach": "zetta.runtime.policies.toy_reach:load",
    "toy/reach-exact": "zetta.runtime.policies.toy_reach:load",
    "toy/reach-clumsy": "zetta.runtime.policies.toy_reach:load",
    "twin/reach": "zetta.runtime.policies.twin_reach:load",
    "twin/reach-clumsy": "zetta.runtime.policies.twin_reach:load",
    "robosuite/reach": "zetta.runtime.policies.robosuite_reach:load",
    "robosuite/reach-clumsy": "zetta.runtime.policies.robosuite_reach:load",
    "openpi:": "zetta.runtime.foreign.openpi_client:load",
    "gr00t:": "zetta.runtime.foreign.gr00t_client:load",
    "random": "zetta.runtime.policies.random_actions:load",
    "echo": "zetta.runtime.policies.echo:load",
    "zmq:": "zetta.runtime.policies.served:load",
    "python:": "zetta.runtime.policies.python_factory:load",
    "onnx:": "zetta.runtime.policies.onnx_file:load",
    "pi0:": "zetta.runtime.policies.pi0.serve:load",
    "lerobot:": "zetta.runtime.policies.lerobot.serve:load",
}
"""Each is a factory `(name) -> Policy`. A name that ends in a colon is a scheme: what follows it,
such as a folder of weights, is for the factory to read."""
ARMS: Mapping[str, str] = {
    "deoxys:": "zetta.hw_drivers.deoxys.arm_name:load",
    "lekiwi:": "zetta.hw_drivers.lekiwi.arm_name:load",
    "lerobot:": "zetta.hw_drivers.lerobot_arm:load",
    "python:": "zetta.hw_drivers.python_arm:load",
}
"""Each is a factory `(name) -> robot side`; schemes as above. Installed ones: `zetta.arms`."""

ORACLE_PREFIX = "oracle/"
"""Policies of this prefix are scripted drivers that read simulator truth."""
ARM_PREFIX = "arm:"
"""Before the set-up file of an arm, which then stands where a simulator could."""
ARM_SOURCE = "zetta.hw_drivers.arm_source:load"
AGENT_PREFIX = "agent/"
"""Policies of this prefix are agents, which drive through semantic commands."""


def names(group: str) -> tuple[str, ...]:
    """Return the known names of `group`, built in and installed.

    `group` is `sims`, `policies`, `arms` or `signals`; of the last only installed ones have names
    here.
    """
    return tuple(sorted(_table(group)))


def simulator(name: str) -> Simulator:
    """Return the simulator called `name`, or the arm of `arm:FILE`.

    Raises:
        ConfigError: unknown name, or no set-up of an arm.
    """
    if is_arm(name):
        module, _, attribute = ARM_SOURCE.partition(":")
        source = cast(Callable[[str], Simulator], getattr(import_module(module), attribute))
        return source(name)
    factory = cast(Callable[[], Simulator], _resolve("sims", name))
    return factory()


def is_arm(name: str) -> bool:
    """Say whether `name` stands for a real arm, which moves in real time and cannot be undone.

    >>> is_arm("arm:bench.toml"), is_arm("toy")
    (True, False)
    """
    return name.startswith(ARM_PREFIX)


def policy(name: str) -> Policy:
    """Load the policy called `name`; what follows an `@` is an option that its factory reads.

    Raises:
        ConfigError: unknown name or option, or its weights cannot be read.
    """
    factory = cast(Callable[[str], Policy], _resolve("policies", _key("policies", name)))
    return factory(name)


def arm(name: str, beside: Sequence[str] = ()) -> object:
    """Return the robot side of the arm called `name`, which `zetta.hw_drivers` knows the type of.

    `beside` are names that the caller knows without this registry, for the message.

    Raises:
        ConfigError: unknown name, or its factory makes no robot side.
    """
    factory = cast(Callable[[str], object], _resolve("arms", _key("arms", name), beside))
    return factory(name)


def infers(name: str) -> bool:
    """Say whether `name` is a policy that is asked for actions; experts and agents are motions.

    >>> infers("zetta/tiny"), infers("agent/scripted"), infers("oracle/expert")
    (True, False, False)
    """
    return not name.startswith((ORACLE_PREFIX, AGENT_PREFIX))


def check_policy(name: str) -> None:
    """Refuse an unknown policy without loading a known one; other drivers are checked elsewhere.

    Raises:
        ConfigError: unknown name.
    """
    if infers(name):
        _value("policies", _key("policies", name))


def installed_signals() -> tuple[ExtraSignal, ...]:
    """Make every installed source of signals: entry points `zetta.signals`, factories `() -> it`.

    Raises:
        ConfigError: what an entry point made is no source of signals.
    """
    from zetta.runtime.signals_source import ExtraSignal

    made = []
    for name in names("signals"):
        source = cast(Callable[[], object], _resolve("signals", name))()
        if not isinstance(source, ExtraSignal):
            raise ConfigError(
                f"the entry point {name!r} of zetta.signals made a {type(source).__name__}; "
                "expected an ExtraSignal, with specs and update"
            )
        made.append(source)
    return tuple(made)


def _key(group: str, name: str) -> str:
    base = name.partition("@")[0]
    scheme = base[: base.find(":") + 1]
    return scheme if scheme in _table(group) else base


def _table(group: str) -> dict[str, str]:
    built_in = {"sims": SIMS, "policies": POLICIES, "arms": ARMS, "signals": {}}[group]
    installed = {e.name: e.value for e in entry_points(group=f"zetta.{group}")}
    return {**installed, **built_in}


def _resolve(group: str, name: str, beside: Sequence[str] = ()) -> object:
    module, _, attribute = _value(group, name, beside).partition(":")
    return getattr(import_module(module), attribute)


def _value(group: str, name: str, beside: Sequence[str] = ()) -> str:
    table = _table(group)
    if name not in table:
        kind = _KINDS[group]
        raise ConfigError(f"unknown {kind} {name!r}; {suggest(name, [*table, *beside])}")
    return table[name]


_KINDS: Mapping[str, str] = {
    "sims": "simulator",
    "policies": "policy",
    "arms": "arm",
    "signals": "source of signals",
}
