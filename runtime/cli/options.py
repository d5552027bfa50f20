"""What a run may be told beside its scene, and what of it is refused before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli.agents import check_agent, is_agent
from zetta.runtime.cli.deploy import check_deployment
from zetta.runtime.cli.number_lists import number
from zetta.runtime.core import SENSING_LEVELS, EnvSpec, RunSpec, Sensing
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.toy_faults import ToyFaults
from zetta.skills.bundles import NO_BUNDLE

EXPERT: Final = "oracle/expert"
"""The scripted expert of the simulator, which reads simulator truth."""

RANDOM: Final = "random"
"""Random motion of one arm."""

OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "spread of the policy's draws; 0 is deterministic",
    "noise": "noise of the scripted expert",
    "any_profile": "'yes' lets a policy see pictures of a foreign render profile",
    "worker": "'yes' runs the simulator in a process of its own",
    "recovery_share": "share of the step budget that skills may use",
    "skill_time": "how many times as long as written a skill may take, for an arm that is slower",
    "shadow": "'yes' records what critics would do and lets the policy be",
    "localizer": "what finds things in pictures: tiny, geometry, openvocab:FOLDER",
    "toy_faults": "what goes wrong in the toy, such as camera_shift_y=0.03;slip_at=40",
    "depth_noise": "'yes' gives depth the noise and the holes of a real camera",
    "critic_isolation": "where critics run: none (in the process of the loop) or process",
    "calibration": "file of `zetta critics calibrate`",
    "uncalibrated": "'yes' lets critics act in a simulator that their numbers were not made in",
    "unsigned": "'yes' lets skills drive an arm that nobody has signed",
    "signals": "'yes' computes every signal, whatever critics read",
    "inference": "async lets the policy run ahead in a thread; sync, the default, waits for it",
    "instruction": "what an arm is asked to do, in place of a task that its set-up declares",
    "step_budget": "ticks that an episode may take, in place of the published number",
    "turns": "answers that an agent may give",
    "commands_per_turn": "commands that one answer of an agent may hold",
    "tokens": "tokens that an agent may use; 0 for no limit",
    "dollars": "money that an agent may spend; 0 for no limit",
    "drive_s": "seconds that a drive may last; 0 for no limit",
    "vla": "policy that an agent may let drive, with the command `policy`",
    "think_ahead": "'yes' asks a model for the next turn while the last motion still runs",
    "overlays": "what is drawn into an agent's pictures: all, none, or such as grid,cross,marks",
    "base_url": "where an agent's model is served",
    "prices": "file with what tokens of models cost",
    "effort": "how much an agent's model thinks: none, minimal, low, medium, high, xhigh",
    "pictures": "pictures that an agent's model is shown in a turn; 0 for none",
    "total_s": "seconds until an agent's model is given up, with all that is tried again",
    "request_s": "seconds of one request to a model",
    "silence_s": "seconds without a byte from a model's server",
    "save_demonstrations": "folder that gets a demonstration of every verified success",
    "demonstrations": "folder of demonstrations that an agent is shown",
    "shots": "how many demonstrations an agent is shown",
}
"""What `RunSpec.options` may hold."""

INFERENCE: Final = ("sync", "async")


def check_options(spec: RunSpec) -> None:
    """Refuse what this version cannot assemble; nothing is built for it.

    Raises:
        ConfigError: an unknown bundle, option or sensing level, or a scripted expert where
            simulator truth may not be read.
    """
    for name in spec.options:
        if name not in OPTIONS:
            raise ConfigError(f"unknown option {name!r}; {suggest(name, OPTIONS)}")
    if spec.options.get("toy_faults"):
        if spec.sim != "toy" or spec.options.get("worker") == "yes":
            raise ConfigError("toy_faults are for --sim toy without a worker")
        ToyFaults.from_text(spec.options["toy_faults"])
    sensing_level(spec.sensing)
    check_deployment(spec)
    if spec.policy.startswith(registry.ORACLE_PREFIX):
        _check_expert(spec)
    if is_agent(spec):
        check_agent(spec)
    if "instruction" in spec.options and not registry.is_arm(spec.sim):
        raise ConfigError("only an arm takes any instruction; a simulator judges its own tasks")
    step_budget(spec)


def step_budget(spec: RunSpec) -> int | None:
    """Return the ticks that an episode may take, or None for the published number.

    Raises:
        ConfigError: it is no whole number of at least 1.
    """
    text = spec.options.get("step_budget")
    if text is None:
        return None
    ticks = number(text, "--steps (the option step_budget)")
    if ticks < 1.0 or ticks != int(ticks):
        raise ConfigError(f"an episode takes a whole number of ticks, at least 1; got {text!r}")
    return int(ticks)


def steps_option(text: str, unlimited: int) -> str:
    """Return the option `step_budget` for `--steps`; empty for the published number.

    >>> steps_option("published", 5000), steps_option("unlimited", 5000), steps_option("50", 5000)
    ('', '5000', '50')
    """
    return {"published": "", "unlimited": f"{unlimited}"}.get(text, text)


def check_inference(spec: RunSpec, paced: bool) -> None:
    """Refuse a policy that shall run ahead where ticks are not paced.

    Raises:
        ConfigError: `paced` is false, nothing is inferred, or there is no such manner.
    """
    manner = spec.options.get("inference", "sync")
    if manner not in INFERENCE:
        raise ConfigError(f"--inference is {manner!r}; {suggest(manner, INFERENCE)}")
    if manner == "sync":
        return
    if not registry.infers(spec.policy):
        raise ConfigError(f"{spec.policy} infers nothing; leave --inference out")
    if not paced:
        raise ConfigError(
            "--inference async needs --realtime: a simulator that runs as fast as it can does not "
            "wait, so how far the policy lags behind would depend on the machine's load"
        )


def _check_expert(spec: RunSpec) -> None:
    if spec.policy != EXPERT:
        raise ConfigError(f"unknown policy {spec.policy!r}; did you mean {EXPERT!r}?")
    if spec.sensing != "oracle":
        raise ConfigError(
            f"{EXPERT} reads simulator truth and this run is at the level {spec.sensing!r}; "
            "add --sensing oracle (its results are marked and make no headline)"
        )
    if "temperature" in spec.options:
        raise ConfigError(f"the policy {EXPERT!r} has no temperature; leave --temperature out")
    if spec.bundle != NO_BUNDLE:
        raise ConfigError(f"{EXPERT} runs without critics and skills; leave --bundle out")


def check_arms(spec: RunSpec, env: EnvSpec) -> None:
    """Refuse random motion of one arm where there are several, and say how to name them.

    Raises:
        ConfigError: the environment has several arms, and the policy is `random`.
    """
    if spec.policy == RANDOM and len(env.arms) > 1 and env.action.kind == "delta_pose":
        named = f"{RANDOM}@{','.join(env.arms)}"
        raise ConfigError(
            f"{spec.suite} has the arms {' and '.join(env.arms)}, and {RANDOM!r} moves one; name "
            f"them, as in: --policy {named}"
        )


def sensing_level(text: str) -> Sensing:
    """Return a sensing level by its name.

    Raises:
        ConfigError: there is no such level.
    """
    for level in SENSING_LEVELS:
        if level == text:
            return level
    raise ConfigError(f"unknown sensing level {text!r}; {suggest(text, SENSING_LEVELS)}")


def check_level(wanted: Sensing, allowed: Sensing, who: str) -> None:
    """Refuse what senses more than it may.

    Raises:
        ConfigError: `wanted` is above `allowed`.
    """
    if SENSING_LEVELS.index(wanted) > SENSING_LEVELS.index(allowed):
        raise ConfigError(f"{who} stops at the sensing level {allowed!r}; {wanted!r} is above it")
