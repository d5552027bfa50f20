"""What a run may be told beside its scene, and what of it is refused before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli.deploy import check_deployment
from zetta.runtime.core import SENSING_LEVELS, RunSpec, Sensing
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.toy_faults import ToyFaults
from zetta.skills.bundles import NO_BUNDLE

EXPERT: Final = "oracle/expert"
"""The scripted expert of the simulator, which reads simulator truth."""

OPTIONS: Final[Mapping[str, str]] = {
    "temperature": "spread of the policy's draws; 0 is deterministic",
    "noise": "noise of the scripted expert",
    "any_profile": "'yes' lets a policy see pictures of a foreign render profile",
    "worker": "'yes' runs the simulator in a process of its own",
    "recovery_share": "share of the step budget that skills may use",
    "shadow": "'yes' records what critics would do and lets the policy be",
    "localizer": "what finds things in pictures: tiny, geometry, openvocab:FOLDER",
    "toy_faults": "what goes wrong in the toy, such as camera_shift_y=0.03;slip_at=40",
    "depth_noise": "'yes' gives depth the noise and the holes of a real camera",
    "critic_isolation": "where critics run: none (in the process of the loop) or process",
    "calibration": "file of `zetta critics calibrate`",
    "signals": "'yes' computes every signal, whatever critics read",
    "inference": "async lets the policy run ahead in a thread; sync, the default, waits for it",
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
    if spec.sensing not in SENSING_LEVELS:
        raise ConfigError(
            f"unknown sensing level {spec.sensing!r}; {suggest(spec.sensing, SENSING_LEVELS)}"
        )
    check_deployment(spec)
    if spec.policy.startswith(registry.ORACLE_PREFIX):
        _check_expert(spec)


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
    if spec.policy == EXPERT:
        raise ConfigError(f"{EXPERT} infers nothing; leave --inference out")
    if not paced:
        raise ConfigError(
            "--inference async needs --realtime: a simulator that runs as fast as it can does not "
            "wait, so how far the policy lags behind would depend on the machine's load"
        )


def number(text: str, what: str) -> float:
    """Return `text` as a finite number.

    Raises:
        ConfigError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ConfigError(f"{what} is a number, got {text!r}")
    return value


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


def check_level(wanted: Sensing, allowed: Sensing, who: str) -> None:
    """Refuse what senses more than it may.

    Raises:
        ConfigError: `wanted` is above `allowed`.
    """
    if SENSING_LEVELS.index(wanted) > SENSING_LEVELS.index(allowed):
        raise ConfigError(f"{who} stops at the sensing level {allowed!r}; {wanted!r} is above it")
