"""Whether the critics of a bundle may act here: only with thresholds for this very embodiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from zetta.runtime import registry
from zetta.runtime.cli.home import calibrations_folder
from zetta.runtime.cli.vouched import check_vouched
from zetta.runtime.core import (
    SENSING_LEVELS,
    EnvSpec,
    PolicySpec,
    RunSpec,
    Sensing,
    Simulator,
)
from zetta.runtime.embodiment import Embodiment, embodiment_of
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import NO_BUNDLE, LoadedBundle
from zetta.skills.calibrated import CalibrationRecord, read_calibration
from zetta.skills.calibrated_policy import is_of, is_served
from zetta.skills.stored_calibrations import any_stored, stored_calibrations

HOME_HZ: Final[Mapping[str, float]] = {"libero": 20.0, "toy": 20.0}
"""Where the numbers in packages come from, and at which rate: by `EnvSpec.name`. In these, critics
act with the numbers as they stand; anywhere else only after a calibration."""
OPTION: Final = "uncalibrated"
"""The option with which critics act in a simulator by numbers that were made elsewhere."""
SCENES: Final = 20
"""Successful episodes from which a calibration at the usual alpha sets thresholds."""


@runtime_checkable
class Declared(Protocol):
    """An arm in the place of a simulator: what it is was written down by a person."""

    declared: EnvSpec
    """What every environment that it makes will be, as far as it is known before."""


def at_home(embodiment: Embodiment) -> bool:
    """Say whether the numbers in packages were made on this.

    >>> at_home(Embodiment("libero", "panda", 20.0)), at_home(Embodiment("libero", "panda", 50.0))
    (True, False)
    """
    return HOME_HZ.get(embodiment.name) == embodiment.control_hz


def act(spec: RunSpec, bundle: LoadedBundle, control: str) -> bool:
    """Say whether critics of a run may take the robot from its policy."""
    critics = bool(bundle.packages or bundle.watchers) and control != "takeover"
    watched_only = spec.options.get("shadow") == "yes" or not registry.infers(spec.policy)
    return critics and not watched_only


def record_of(spec: RunSpec, bundle: LoadedBundle) -> CalibrationRecord | None:
    """Return the calibration that a run names; it says nothing of a run without a bundle.

    Raises:
        ConfigError: it cannot be read, or is of other critics.
    """
    if "calibration" not in spec.options or bundle.name == NO_BUNDLE:
        return None
    return read_calibration(Path(spec.options["calibration"]), bundle)


def check_before(spec: RunSpec, bundle: LoadedBundle, control: str) -> None:
    """Refuse what is plain before anything is connected to.

    Raises:
        ConfigError: something in the bundle senses more than the arm can, a skill that could drive
            an arm is unsigned, or critics would act on one for which nobody has calibrated them.
    """
    arm = registry.is_arm(spec.sim)
    if arm and bundle.digest:
        source = registry.simulator(spec.sim)
        if isinstance(source, Declared):
            check_senses(bundle, source.declared)
    if arm and spec.options.get(OPTION) == "yes":
        raise ConfigError(
            f"{OPTION} is for simulators: on an arm critics act with calibrated thresholds only; "
            "leave it out"
        )
    check_vouched(spec, bundle)
    if arm and act(spec, bundle, control) and "calibration" not in spec.options:
        raise ConfigError(_refusal(spec, spec.sim))


def check_senses(bundle: LoadedBundle, env: EnvSpec) -> None:
    """Refuse a bundle with something in it that senses more than an environment can.

    Raises:
        ConfigError: it does; it would be silent for ever, for all that it reads is unknown.
    """
    seeing = any(camera.mount == "world" and camera.depth for camera in env.cameras)
    sees: Sensing = env.sensing if seeing else "policy"
    for what, wanted in bundle.levels.items():
        level: Sensing = env.sensing if wanted == "oracle" else sees
        if SENSING_LEVELS.index(wanted) > SENSING_LEVELS.index(level):
            truth = "it tells no simulator truth"
            why = truth if level == env.sensing else "no camera with depth stands in its world"
            raise ConfigError(
                f"the {what} senses at level {wanted!r} and {env.name} stops at {level!r}, for "
                f"{why}; leave it out of the bundle"
            )


def check_thresholds(
    spec: RunSpec,
    env: EnvSpec,
    bundle: LoadedBundle,
    control: str,
    localizer: str,
    policy: PolicySpec | None = None,
) -> None:
    """Refuse critics that would act by thresholds of another embodiment.

    Args:
        spec: what is run.
        env: where.
        bundle: whose critics.
        control: of the bundle, or nothing.
        localizer: what finds things in this run's pictures.
        policy: what drives.

    Raises:
        ConfigError: there is no calibration for this embodiment, this policy and this way of
            seeing.
    """
    check_senses(bundle, env)
    record = record_of(spec, bundle)
    if record is not None:
        check_policy(record, spec.policy, policy)
    here, arm = embodiment_of(env), registry.is_arm(spec.sim)
    home = at_home(here) and not arm
    if record is not None and (record.embodiment or not home):
        _check_record(record, here, localizer)
    risked = spec.options.get(OPTION) == "yes" and not arm
    if record is None and act(spec, bundle, control) and not home and not risked:
        raise ConfigError(_refusal(spec, str(here)))


def check_policy(record: CalibrationRecord, policy: str, spec: PolicySpec | None) -> None:
    """Refuse a calibration of another policy; what a server serves is known only by its `spec`.

    Raises:
        ConfigError: it is of another one.
    """
    if (spec is None and is_served(policy)) or is_of(record, policy, spec):
        return
    what = "" if spec is None or not is_served(policy) else f", which is {spec.name},"
    raise ConfigError(
        f"the calibration is for the policy {record.policy!r} and {policy!r}{what} would drive; "
        "calibrate on shadow runs of this policy"
    )


def served_spec(policy: str) -> PolicySpec | None:
    """Ask the server of a policy what it serves; None of one that is loaded here.

    Raises:
        ConfigError: the name has an option that is none.
        InfraError: nobody answers there.
    """
    if not is_served(policy):
        return None
    asked = registry.policy(policy)
    try:
        return asked.spec
    finally:
        asked.close()


def _check_record(record: CalibrationRecord, here: Embodiment, localizer: str) -> None:
    if record.embodiment != here:
        made = "simulators only" if record.embodiment is None else str(record.embodiment)
        raise ConfigError(
            f"the calibration is of {made} and this is {here}; thresholds are never carried over, "
            f"so calibrate on shadow runs of this one: zetta critics calibrate RUNS "
            f"--bundle {record.bundle}"
        )
    if record.localizer and record.localizer != localizer:
        raise ConfigError(
            f"the calibration is of what the localizer {record.localizer!r} sees and this run has "
            f"{localizer!r}; run with --localizer {record.localizer}, or calibrate again"
        )


def _refusal(spec: RunSpec, here: str) -> str:
    where = f"--arm {spec.sim.removeprefix(registry.ARM_PREFIX)}"
    if not registry.is_arm(spec.sim):
        where = f"--sim {spec.sim} --init sampled"
    return (
        f"the critics of the bundle {spec.bundle!r} have no thresholds for {here} with the policy "
        f"{spec.policy!r}, so they may watch here and not act: make about {SCENES} successful "
        f"episodes with zetta run {where} --policy {spec.policy} --bundle {spec.bundle} --shadow "
        f"--out RUNS, then zetta critics calibrate RUNS --bundle {spec.bundle}"
    )


def judged_here(spec: RunSpec) -> RunSpec:
    """Return `spec` for a campaign, whose own calibration and gates judge critics where they act.

    At home, where nothing is asked for, it is the same; on an arm, where no campaign is, too.
    """
    return replace(spec, options=options_here(spec.sim, spec.options))


def options_here(sim: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of such a campaign's episodes."""
    home = sim in HOME_HZ or registry.is_arm(sim)
    return dict(options) if home else {**options, OPTION: "yes"}


def with_stored(spec: RunSpec, simulator: Simulator, bundle: LoadedBundle) -> RunSpec:
    """Return `spec` with the calibration that is kept for where it runs, if it wants one.

    A run that names a calibration, or only watches, is left as it is; so is one at home.

    Raises:
        ConfigError: several are kept for environments of this name, or one cannot be read.
        InfraError: the server of its policy does not say what it serves.
    """
    name = simulator.declared.name if isinstance(simulator, Declared) else spec.sim
    watched = spec.options.get("shadow") == "yes" or spec.options.get(OPTION) == "yes"
    if watched or "calibration" in spec.options or spec.sim in HOME_HZ:
        return spec
    if not any_stored(calibrations_folder(), bundle):
        return spec
    served = served_spec(spec.policy)
    found = stored_calibrations(calibrations_folder(), bundle, name, spec.policy, served)
    if len(found) > 1:
        raise ConfigError(
            f"calibrations for {' and '.join(str(r.embodiment) for r in found.values())} are "
            "kept; say which: --calibration " + " or ".join(map(str, found))
        )
    paths: list[Path] = list(found)
    if not paths:
        return spec
    return replace(spec, options={**spec.options, "calibration": str(paths[0])})
