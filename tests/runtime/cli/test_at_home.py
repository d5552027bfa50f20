"""Critics act where their numbers were made, or where somebody has calibrated them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runtime.policy_server.open_doors import Served, served
from zetta.runtime.cli.at_home import (
    at_home,
    check_senses,
    check_thresholds,
    judged_here,
    with_stored,
)
from zetta.runtime.cli.home import calibrations_folder
from zetta.runtime.cli.recovery_budgets import skill_time, with_time
from zetta.runtime.core import EnvSpec, Init, PolicySpec, RunSpec
from zetta.runtime.embodiment import Embodiment, embodiment_of
from zetta.runtime.errors import ConfigError
from zetta.runtime.policies.echo import EchoPolicy
from zetta.runtime.policies.toy_reach import ToyReach
from zetta.sims.toy import ToySimulator
from zetta.skills.bundles import LoadedBundle, load_bundle
from zetta.skills.calibrated import CalibrationRecord, write_calibration
from zetta.skills.calibrated_policy import policy_key
from zetta.skills.compiled import compile_skill
from zetta.skills.stored_calibrations import store_calibration, stored_calibrations

SPEC = RunSpec("twin", "twin_place", 0, Init(0), policy="twin/reach", bundle="regrasp")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture(scope="module")
def bundle() -> LoadedBundle:
    return load_bundle("regrasp")


@pytest.fixture(scope="module")
def toy() -> EnvSpec:
    env = ToySimulator().make("toy_pick", 0)
    env.close()
    return env.spec


@pytest.fixture(scope="module")
def elsewhere(toy: EnvSpec) -> EnvSpec:
    return replace(toy, name="twin", versions={"arm": "twin-panda", "hand_mm": "80"})


def record(bundle: LoadedBundle, where: Embodiment | None, **changes: object) -> CalibrationRecord:
    made = CalibrationRecord(
        bundle="regrasp",
        digest=bundle.digest,
        policy="twin/reach",
        policy_digest="",
        alpha=0.1,
        sure_alpha=0.2,
        fitted=10,
        calibrated=10,
        levels={"regrasp": 2},
        parameters={"regrasp": {"empty_for": 0.6}},
        embodiment=where,
        localizer="geometry",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def given(path: Path, made: CalibrationRecord, spec: RunSpec = SPEC) -> RunSpec:
    write_calibration(path, made)
    return replace(spec, options={**spec.options, "calibration": str(path)})


def checked(
    spec: RunSpec,
    env: EnvSpec,
    bundle: LoadedBundle,
    control: str = "",
    policy: PolicySpec | None = None,
) -> None:
    check_thresholds(spec, env, bundle, control, "geometry", policy)


def test_numbers_of_packages_hold_in_libero_and_the_toy_at_their_rate_alone(
    toy: EnvSpec, elsewhere: EnvSpec
) -> None:
    assert at_home(embodiment_of(toy))
    assert at_home(Embodiment("libero", "panda", 20.0))
    assert not at_home(Embodiment("libero", "panda", 50.0))
    assert not at_home(embodiment_of(elsewhere))


def test_elsewhere_critics_may_watch_and_not_act(elsewhere: EnvSpec, bundle: LoadedBundle) -> None:
    with pytest.raises(ConfigError, match="zetta critics calibrate RUNS --bundle regrasp"):
        checked(SPEC, elsewhere, bundle)
    with pytest.raises(ConfigError, match="may watch here and not act"):
        checked(SPEC, elsewhere, bundle, "sham")
    checked(replace(SPEC, options={"shadow": "yes"}), elsewhere, bundle)
    checked(replace(SPEC, options={"uncalibrated": "yes"}), elsewhere, bundle)
    checked(SPEC, elsewhere, bundle, "takeover")
    checked(replace(SPEC, policy="agent/scripted"), elsewhere, bundle)
    checked(replace(SPEC, bundle="none"), elsewhere, load_bundle("none"))


def test_an_arm_is_no_home_whatever_it_is_called_and_takes_no_risk(
    toy: EnvSpec, bundle: LoadedBundle
) -> None:
    for options in ({}, {"uncalibrated": "yes"}):
        spec = replace(SPEC, sim="arm:bench.toml", options=options)
        with pytest.raises(ConfigError, match="--arm bench"):
            checked(spec, toy, bundle)


def test_a_calibration_holds_for_its_embodiment_and_for_what_it_saw_with(
    tmp_path: Path, toy: EnvSpec, elsewhere: EnvSpec, bundle: LoadedBundle
) -> None:
    own = record(bundle, embodiment_of(elsewhere))
    checked(given(tmp_path / "own.json", own), elsewhere, bundle)
    faster = replace(elsewhere, control_hz=50.0)
    for where in (toy, faster, replace(elsewhere, versions={"arm": "twin-panda"})):
        with pytest.raises(ConfigError, match="never carried over"):
            checked(given(tmp_path / "other.json", own), where, bundle)
    with pytest.raises(ConfigError, match="of simulators only"):
        checked(given(tmp_path / "old.json", record(bundle, None)), elsewhere, bundle)
    checked(given(tmp_path / "old.json", record(bundle, None)), toy, bundle)
    sees = replace(own, localizer="tiny")
    with pytest.raises(ConfigError, match="what the localizer 'tiny' sees"):
        checked(given(tmp_path / "sees.json", sees), elsewhere, bundle)


def test_thresholds_of_two_embodiments_lie_side_by_side_and_each_run_takes_its_own(
    elsewhere: EnvSpec, bundle: LoadedBundle
) -> None:
    class Twin(ToySimulator):
        name = "twin"

    twin = embodiment_of(elsewhere)
    libero = Embodiment("libero", "panda", 20.0)
    kept = store_calibration(calibrations_folder(), record(bundle, twin))
    store_calibration(calibrations_folder(), record(bundle, libero))
    store_calibration(calibrations_folder(), record(bundle, twin, policy="twin/reach-clumsy"))
    assert with_stored(SPEC, Twin(), bundle).options == {"calibration": str(kept)}
    for left_alone in (
        replace(SPEC, options={"shadow": "yes"}),
        replace(SPEC, options={"calibration": "mine.json"}),
        replace(SPEC, options={"uncalibrated": "yes"}),
        replace(SPEC, sim="libero"),
        replace(SPEC, policy="random"),
    ):
        assert with_stored(left_alone, Twin(), bundle) == left_alone
    store_calibration(calibrations_folder(), record(bundle, replace(twin, control_hz=50.0)))
    with pytest.raises(ConfigError, match="say which: --calibration"):
        with_stored(SPEC, Twin(), bundle)
    with pytest.raises(ConfigError, match="calibrate again"):
        store_calibration(calibrations_folder(), record(bundle, None))


def test_a_served_policy_is_known_by_what_it_is_and_not_by_its_port(
    tmp_path: Path, elsewhere: EnvSpec, bundle: LoadedBundle
) -> None:
    class Twin(ToySimulator):
        name = "twin"

    root, twin, what = calibrations_folder(), embodiment_of(elsewhere), ToyReach().spec
    with served(ToyReach) as one, served(ToyReach) as other, served(EchoPolicy) as another:
        first, second, third = (_named(SPEC, place) for place in (one, other, another))
        assert with_stored(first, Twin(), bundle) == first  # nothing is kept
        key = policy_key(first.policy, what)
        assert key == policy_key(second.policy + "@robot=left", what) != first.policy
        made = record(bundle, twin, policy=key, policy_digest=what.digest)
        kept = store_calibration(root, made)
        assert with_stored(second, Twin(), bundle).options == {"calibration": str(kept)}
        assert with_stored(third, Twin(), bundle) == third
    checked(given(tmp_path / "c.json", made, second), elsewhere, bundle, policy=what)
    with pytest.raises(ConfigError, match=r"which is .*, would drive; calibrate on shadow runs"):
        checked(
            given(tmp_path / "c.json", made, third), elsewhere, bundle, policy=EchoPolicy().spec
        )


def test_a_calibration_that_went_by_an_address_holds_there_for_the_same_weights(
    tmp_path: Path, elsewhere: EnvSpec, bundle: LoadedBundle
) -> None:
    what, spec = ToyReach().spec, replace(SPEC, policy="zmq://127.0.0.1:5601")
    old = record(bundle, embodiment_of(elsewhere), policy=spec.policy, policy_digest=what.digest)
    store_calibration(calibrations_folder(), old)
    found = stored_calibrations(calibrations_folder(), bundle, "twin", spec.policy, what)
    assert list(found.values()) == [old]
    checked(given(tmp_path / "old.json", old, spec), elsewhere, bundle, policy=what)
    changed = replace(what, digest="f" * 64)
    assert not stored_calibrations(calibrations_folder(), bundle, "twin", spec.policy, changed)
    for policy, say in ((spec.policy, changed), ("zmq://127.0.0.1:5602", what)):
        other = given(tmp_path / "old.json", old, replace(spec, policy=policy))
        with pytest.raises(ConfigError, match="would drive"):
            checked(other, elsewhere, bundle, policy=say)
    untold = replace(what, digest="")  # a server that says nothing goes by its address as before
    assert policy_key(spec.policy, untold) == spec.policy


def _named(spec: RunSpec, place: Served) -> RunSpec:
    return replace(spec, policy=f"zmq://{place.endpoint.removeprefix('tcp://')}")


def test_what_is_seen_by_nobody_is_refused_rather_than_silent(
    elsewhere: EnvSpec, bundle: LoadedBundle
) -> None:
    check_senses(bundle, elsewhere)
    wrist = tuple(replace(camera, mount="wrist") for camera in elsewhere.cameras)
    flat = tuple(replace(camera, depth=False) for camera in elsewhere.cameras)
    for cameras in ((), wrist, flat):
        with pytest.raises(ConfigError, match="no camera with depth stands in its world"):
            check_senses(bundle, replace(elsewhere, cameras=cameras))
    check_senses(load_bundle("fresh-sample"), replace(elsewhere, cameras=()))


def test_a_campaign_judges_critics_where_they_act_and_an_arm_has_none() -> None:
    assert judged_here(SPEC).options == {"uncalibrated": "yes"}
    for spec in (replace(SPEC, sim="libero"), replace(SPEC, sim="arm:bench.toml")):
        assert judged_here(spec) == spec


def test_a_slower_arm_may_take_longer_and_says_how_much(bundle: LoadedBundle) -> None:
    assert skill_time(SPEC) == 1.0
    slow = replace(SPEC, options={"skill_time": "2.5"})
    skill = compile_skill(
        bundle.packages[0], control_hz=20.0, robot=lambda: pytest.fail("starts no recovery")
    )
    assert with_time(skill, skill_time(slow)).max_ticks == 600
    for text in ("0.5", "11", "fast", "nan"):
        with pytest.raises(ConfigError, match="from 1 to 10"):
            skill_time(replace(SPEC, options={"skill_time": text}))
