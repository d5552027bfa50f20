"""What a compiled critic says, and when it says nothing."""

from __future__ import annotations

import numpy as np
import pytest
from critic_texts import HZ, compiled, critic_of, firing_when, history, problems_of

from zetta.critics.critic import is_disarmed
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.runtime.signals import SIGNALS, SignalHistory


def says(condition: str, hz: float = HZ, **series: list[float]) -> str:
    """Return what a critic says about a window: fires, passes or disarmed."""
    verdict = compiled(firing_when(condition), hz=hz).judge(history(hz, **series))
    if is_disarmed(verdict):
        return "disarmed"
    return "fires" if verdict.decision == "recover" else "passes"


def test_verdict_names_critic_skill_reason_and_evidence() -> None:
    critic = compiled(firing_when("now(w.slip) > 0.5 and once(w.lift > 1)"))

    verdict = critic.judge(history(slip=[0.1, 0.9], lift=[2.0] * 41))

    assert (verdict.decision, verdict.reason) == ("recover", "so it is")
    assert (verdict.critic, verdict.skill) == ("test", "regrasp")
    assert verdict.evidence == {"slip": 0.9, "lift": 2.0}


def test_abort_names_no_skill() -> None:
    critic = compiled(critic_of('return abort("out of reach")'))

    verdict = critic.judge(history(slip=[0.0]))

    assert (verdict.decision, verdict.skill) == ("abort", None)


def test_first_answer_that_is_reached_counts() -> None:
    body = (
        "if now(w.slip) > 2:\n    return abort('two')\n"
        "elif now(w.slip) > 1:\n    return recover('one')\nreturn ok()"
    )
    critic = compiled(critic_of(body))

    said = [critic.judge(history(slip=[slip])) for slip in (0.0, 1.5, 2.5)]

    assert [(v.decision, v.reason) for v in said] == [
        ("pass", ""), ("recover", "one"), ("abort", "two"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("now(w.slip) == 3", "fires"),
        ("now(w.slip) != 3", "passes"),
        ("2 < now(w.slip) <= 3", "fires"),
        ("2 < now(w.slip) < 3", "passes"),
        ("now(w.slip) - 1 == 2 and now(w.slip) / 2 == 1.5", "fires"),
        ("-now(w.slip) == -3 and +now(w.slip) == 3", "fires"),
        ("not now(w.slip) == 3", "passes"),
        ("(1.0 if now(w.slip) > 2 else 5.0) == 1", "fires"),
        ("min(now(w.slip), 2) == 2 and max(now(w.slip), 2) == 3", "fires"),
        ("abs(0 - now(w.slip)) == 3 and hypot(now(w.slip), 4) == 5", "fires"),
        ("held(0 < w.slip < 4, 0.1)", "fires"),
        ("held(0 < w.slip < 3, 0.1)", "passes"),
        ("once(not (w.slip < 3), 0.1) and not once(not (w.slip < 4), 0.1)", "fires"),
        ("held(w.slip < 2 or w.slip > 2.5, 0.1)", "passes"),
        ("once(w.slip < 2 or w.slip > 2.5, 0.1)", "fires"),
        ("now(w.slip > 2 and w.slip < 4)", "fires"),
        ("now(w.slip * w.slip + 1) == 10 and now(max(w.slip, 5) - w.slip) == 2", "fires"),
        ("mean(abs(0 - w.slip), 0.1) == 2", "fires"),
        ("True", "fires"),
        ("False", "passes"),
    ],
)
def test_expression_means_what_it_means_in_python(condition: str, expected: str) -> None:
    assert says(condition, slip=[1.0, 2.0, 3.0]) == expected


def test_local_names_are_changed_and_met_as_in_python() -> None:
    body = (
        "x = now(w.slip)\ny = x\nx += 1\n"
        "if x > 3:\n    y = x * 2\nelse:\n    x = x + 0.5\n    y -= 1\n"
        "if x == 2.5 and y == 0:\n    return recover('low')\n"
        "if x == 4 and y == 8:\n    return recover('high')\nreturn ok()"
    )
    critic = compiled(critic_of(body))

    said = [critic.judge(history(slip=[slip])).reason for slip in (1.0, 3.0, 2.0)]

    assert said == ["low", "high", ""]


def test_name_of_a_series_keeps_what_it_was_made_of() -> None:
    body = (
        "k = 2.0\nscaled = w.slip * k\nk = 100.0\n"
        "if maximum(scaled, 0.1) == 6:\n    return recover('two')\nreturn ok()"
    )

    assert compiled(critic_of(body)).judge(history(slip=[1.0, 2.0, 3.0])).reason == "two"


# ------------------------------------------------------------------- what is not known

NAN = float("nan")


@pytest.mark.parametrize(
    "condition",
    [
        "now(w.slip) < 9",
        "not now(w.slip) > 9",
        "now(w.slip) != 9",
        "held(w.slip < 9, 0.1)",
        "once(not (w.slip > 9), 0.1)",
        "mean(w.slip, 0.1) < 9",
        "minimum(w.slip, 0.1) < 9",
        "count(w.slip > 9, 0.1) < 9",
        "delta(w.slip, 0.1) < 9",
        "crossed(w.slip, 9, 0.1) or True",
        "now(w.lift + w.slip) < 9",
        "min(now(w.slip), 1) < 9",
        "held(min(w.slip, w.lift) < 9, 0.1)",
        "now(w.lift) < 9 and now(w.slip) < 9",
    ],
)
@pytest.mark.parametrize("slip", [[1.0, 1.0, NAN], [1.0, NAN, 1.0], [NAN, NAN, NAN], [np.inf] * 3])
def test_unknown_value_that_is_read_disarms(condition: str, slip: list[float]) -> None:
    reads_latest_only = "0.1" not in condition
    expected = "fires" if reads_latest_only and slip[-1] == 1.0 else "disarmed"

    assert says(condition, slip=slip, lift=[1.0] * 3) == expected


def test_same_conditions_fire_when_everything_is_known() -> None:
    assert says("held(min(w.slip, w.lift) < 9, 0.1)", slip=[1.0] * 3, lift=[1.0] * 3) == "fires"
    assert says("once(not (w.slip > 9), 0.1)", slip=[1.0] * 3) == "fires"


def test_episode_younger_than_the_window_disarms() -> None:
    assert says("held(w.slip > 0, 0.5)", slip=[1.0] * 10) == "disarmed"
    assert says("held(w.slip > 0, 0.5)", slip=[1.0] * 11) == "fires"


def test_signal_that_the_episode_lacks_disarms() -> None:
    window = SignalHistory(["slip"], HZ)
    window.push(np.array([1.0]))

    verdict = compiled(firing_when("now(w.slip) > 0 and now(w.lift) > 0")).judge(window)

    assert is_disarmed(verdict)
    assert "lift" in verdict.reason


def test_unknown_value_on_a_way_that_is_not_taken_does_not_disarm() -> None:
    assert says("now(w.lift) > 0 or now(w.slip) > 0", lift=[1.0], slip=[NAN]) == "fires"
    assert says("now(w.lift) > 0 and now(w.slip) > 0", lift=[0.0], slip=[NAN]) == "passes"
    assert says("now(w.lift) > 0 and now(w.slip) > 0", lift=[1.0], slip=[NAN]) == "disarmed"


def test_disarmed_verdict_says_what_was_unknown() -> None:
    verdict = compiled(firing_when("now(w.slip) > 0")).judge(history(slip=[NAN]))

    assert (verdict.decision, verdict.reason) == ("pass", "disarmed: slip is unknown")
    assert not is_disarmed(compiled(firing_when("now(w.slip) > 9")).judge(history(slip=[1.0])))


@pytest.mark.parametrize(
    "condition",
    [
        "1 / now(w.slip) > 0",
        "0 / now(w.slip) < 1",
        "1 / (1 / now(w.slip)) < 1",
        "held(1 / w.slip > 0, 0.1)",
        "held(1 / (1 / w.slip) < 1, 0.1)",
        "held(w.slip / w.slip < 9, 0.1)",
        "minimum(1 / w.slip, 0.1) < 9",
        "held(min(1 / w.slip, 1) < 9, 0.1)",
        "minimum(w.slip / now(w.slip), 0.1) < 9",
        "now(w.lift) * 1e12 * 1e12 > 0",
        "1 / (now(w.lift) * 1e12 * 1e12) < 9",
        "min(now(w.lift) * 1e12 * 1e12, 1) < 9",
        "maximum(w.lift * 1e12 * 1e12, 0.1) > 0",
        "held(1 / (w.lift * 1e12 * 1e12) < 9, 0.1)",
        "mean(w.lift, 0.1) > 0",
        "path_length(w.lift, 0.1) >= 0",
    ],
)
def test_division_by_zero_and_overflow_disarm(condition: str) -> None:
    biggest = [1.7e308, -1.7e308, 1.7e308] if "path" in condition else [1.7e308] * 3

    assert says(condition, slip=[0.0] * 3, lift=biggest) == "disarmed"


def test_local_name_with_an_overflow_disarms_where_it_is_set() -> None:
    body = (
        "x = now(w.lift) * 1e12\ny = now(w.slip)\nif y > 0:\n    return recover('a')\nreturn ok()"
    )

    assert is_disarmed(compiled(critic_of(body)).judge(history(slip=[1.0], lift=[1e300])))


def test_stale_sighting_disarms_where_an_age_is_set() -> None:
    source = firing_when("now(w.object_to_receptacle) > 0 and held(w.object_offset > 0, 0.05)")
    limited = source.replace("WINDOW_S = 2.0\n", "WINDOW_S = 2.0\nMAX_AGE_S = 1.0\n")

    def window(age: float, receptacle_age: float) -> SignalHistory:
        return history(
            object_to_receptacle=[1.0], object_offset=[1.0, 1.0],
            object_age=[age], receptacle_age=[receptacle_age],
        )  # fmt: skip

    assert compiled(source).judge(window(9.0, 9.0)).decision == "recover"
    assert compiled(limited).judge(window(1.0, 1.0)).decision == "recover"
    for ages in ((1.1, 0.0), (0.0, 1.1), (NAN, 0.0)):
        assert is_disarmed(compiled(limited).judge(window(*ages)))


def test_arming_holds_only_while_everything_in_it_is_known() -> None:
    source = firing_when("True").replace(
        "WINDOW_S = 2.0\n", 'WINDOW_S = 2.0\nARMED_WHEN = "now(w.holding) > 0.5"\n'
    )
    critic = compiled(source)

    assert critic.armed_when == "now(w.holding) > 0.5"
    assert critic.armed(history(holding=[1.0]))
    assert not critic.armed(history(holding=[0.0]))
    assert not critic.armed(history(holding=[NAN]))
    assert not critic.armed(SignalHistory([], HZ))
    assert compiled(firing_when("True")).armed(SignalHistory([], HZ))


# ------------------------------------------------------------------- what it is bound to


def test_same_window_gives_the_same_verdict_and_is_left_unchanged() -> None:
    critic = compiled(firing_when("mean(abs(w.slip * w.lift - 1), 0.5) > 0.1 or rose(w.slip > 2)"))
    random = np.random.default_rng(3)
    window = history(slip=random.normal(size=60), lift=random.normal(size=60))
    before = window.snapshot()

    verdicts = [critic.judge(window) for _ in range(3)]

    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert verdicts[0].decision == "recover"
    assert window.snapshot() == before


def test_seconds_become_ticks_of_the_control_rate() -> None:
    slip = [0.0] + [1.0] * 10

    assert says("held(w.slip > 0.5, 0.45)", hz=20.0, slip=slip) == "fires"
    assert says("held(w.slip > 0.5, 0.5)", hz=20.0, slip=slip) == "passes"
    assert says("held(w.slip > 0.5, 0.9)", hz=10.0, slip=slip) == "fires"


def test_seconds_left_out_are_the_whole_window() -> None:
    assert says("held(w.slip > 0.5)", slip=[1.0] * 40) == "disarmed"
    assert says("held(w.slip > 0.5)", slip=[1.0] * 41) == "fires"


def test_longest_window_fits_into_a_history_at_any_rate() -> None:
    source = firing_when("held(w.slip > 0.5)").replace("WINDOW_S = 2.0", "WINDOW_S = 5.0")

    for hz in (5.0, 12.5, 15.0, 20.0, 30.0, 99.9, 100.0):
        window = history(hz, slip=[1.0] * 600)
        assert compiled(source, hz=hz).judge(window).decision == "recover"


def test_parameters_take_their_defaults_or_given_values() -> None:
    source = firing_when("now(w.slip) > p.near")
    window = history(slip=[0.1])

    assert compiled(source).judge(window).decision == "recover"
    assert compiled(source, {"near": 0.15}).judge(window).decision == "pass"
    assert compiled(source).parameters["near"] == 0.05


@pytest.mark.parametrize("values", [{"near": 0.3}, {"near": NAN}, {"neer": 0.1}])
def test_value_out_of_bounds_or_unknown_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"near|neer"):
        compiled(firing_when("now(w.slip) > p.near"), values)


def test_digest_changes_with_text_and_values_only() -> None:
    source = firing_when("now(w.slip) > p.near")

    assert compiled(source).digest == compiled(source, hz=50.0).digest
    assert compiled(source).digest != compiled(source, {"near": 0.1}).digest
    assert compiled(source).digest != compiled(source + "\n").digest


def test_refused_critic_is_not_compiled_and_every_line_is_named() -> None:
    source = critic_of("a = w.nothing\nb = 2 ** 3\nreturn recover('a')")

    with pytest.raises(ScreenError) as refused:
        compiled(source)

    assert str(refused.value).splitlines() == [str(problem) for problem in problems_of(source)]
    assert len(str(refused.value).splitlines()) == 2


def test_facts_of_the_program_are_those_of_its_head() -> None:
    source = firing_when("now(w.slip) > 0").replace(
        "WINDOW_S = 2.0\n", "WINDOW_S = 2.0\nREFRACTORY_S = 1.5\n"
    )
    critic = compiled(source)

    assert (critic.window_s, critic.refractory_s, critic.skill) == (2.0, 1.5, "regrasp")
    assert (critic.docstring, critic.level) == ("A critic of a test.", "proprio")
    assert critic.signals == ("slip",)
    assert set(critic.signals) <= set(SIGNALS)
