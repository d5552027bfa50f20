"""`params.toml`: bounds, units and what is told about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zetta.critics.critic import load_critic, parameters_beside
from zetta.critics.parameters import Parameter, bound_values, parse_parameters, read_parameters
from zetta.runtime.errors import ConfigError, ScreenError

GOOD = '[near]\ndefault = 0.1\nlow = 0\nhigh = 0.5\nunit = "m"\ndoc = "How near."\n'


def test_parameter_is_read_with_bounds_and_unit() -> None:
    parameters, problems = parse_parameters(GOOD)

    assert problems == ()
    assert parameters == {"near": Parameter("near", 0.1, 0.0, 0.5, "m", "How near.")}


def test_no_text_is_no_parameter() -> None:
    assert parse_parameters("") == ({}, ())


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (GOOD + "\n[far]\ndefault = 2\nlow = 0\nhigh = 1\n", 8, "does not lie between"),
        (GOOD + "\n[far]\ndefault = 0.5\nlow = 1\nhigh = 0\n", 8, "does not lie between"),
        (GOOD + "\n[far]\ndefault = 0.5\nlow = 0\n", 8, "needs high = a number"),
        (GOOD + "\n[far]\ndefault = true\nlow = 0\nhigh = 1\n", 8, "needs default = a number"),
        (GOOD + '\n[far]\ndefault = "1"\nlow = 0\nhigh = 1\n', 8, "needs default = a number"),
        (GOOD + "\n[far]\ndefault = nan\nlow = 0\nhigh = 1\n", 8, "too large"),
        (GOOD + "\n[far]\ndefault = 0\nlow = -inf\nhigh = 1\n", 8, "too large"),
        (GOOD + f"\n[far]\ndefault = 0\nlow = 0\nhigh = {'9' * 400}\n", 8, "too large"),
        (GOOD + "\n[far]\ndefault = 0\nlow = 0\nhigh = 1\nunit = 3\n", 8, "unit is a text"),
        (GOOD + "\n[far]\ndefault = 0\nlow = 0\nhigh = 1\nmax = 3\n", 8, "no field 'max'"),
        ("far = 3\n" + GOOD, 1, "is no table; write [far]"),
        (GOOD + "\n[Far]\ndefault = 0\nlow = 0\nhigh = 1\n", 8, "small letters"),
        (GOOD + '\n["__class__"]\ndefault = 0\nlow = 0\nhigh = 1\n', 8, "small letters"),
        (GOOD + "\n[far\n", 8, "no TOML"),
        (GOOD + GOOD, 7, "no TOML"),
    ],
)
def test_wrong_parameter_is_told_at_its_line(text: str, line: int, reason: str) -> None:
    _, problems = parse_parameters(text)

    assert [problem.line for problem in problems] == [line]
    assert reason in problems[0].reason


@settings(max_examples=150, deadline=None)
@given(raw=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(GOOD.__add__)))
def test_no_text_whatever_breaks_the_parameters(raw: bytes | str) -> None:
    parameters, problems = parse_parameters(raw)

    assert problems or all(p.low <= p.default <= p.high for p in parameters.values())


def test_too_much_text_and_foreign_bytes_are_refused() -> None:
    assert "longer" in parse_parameters("#" * 20_000)[1][0].reason
    assert "UTF-8" in parse_parameters(b"\xff")[1][0].reason


def test_values_fill_up_with_defaults_and_stay_in_bounds() -> None:
    parameters, _ = parse_parameters(GOOD)

    assert bound_values(parameters, None) == {"near": 0.1}
    assert bound_values(parameters, {"near": 0.5}) == {"near": 0.5}
    with pytest.raises(ConfigError, match=r"between 0 and 0\.5 m"):
        bound_values(parameters, {"near": 0.6})
    with pytest.raises(ConfigError, match="did you mean 'near'"):
        bound_values(parameters, {"nea": 0.1})


def test_file_of_parameters_is_read_or_every_problem_raised(tmp_path: Path) -> None:
    path = tmp_path / "params.toml"
    with pytest.raises(ConfigError, match="there is no file"):
        read_parameters(path)
    path.write_text(GOOD, encoding="utf-8")
    assert set(read_parameters(path)) == {"near"}
    path.write_text("a = 1\nb = 2\n", encoding="utf-8")
    with pytest.raises(ScreenError) as refused:
        read_parameters(path)
    assert len(str(refused.value).splitlines()) == 2


def test_parameters_stand_beside_their_program(tmp_path: Path) -> None:
    program = tmp_path / "near_it" / "critic.py"
    program.parent.mkdir()
    program.write_text(
        '"""Near."""\nWINDOW_S = 1\n\n\ndef check(w, p):\n    if now(w.slip) > p.near:\n'
        '        return abort("near")\n    return ok()\n',
        encoding="utf-8",
    )
    assert parameters_beside(program) is None
    with pytest.raises(ScreenError, match="no parameter 'near'"):
        load_critic(program, 20.0)

    (program.parent / "params.toml").write_text(GOOD, encoding="utf-8")
    critic = load_critic(program, 20.0, values={"near": 0.2})

    assert (critic.name, critic.parameters) == ("near-it", {"near": 0.2})
    own = program.with_suffix(".toml")
    own.write_text(GOOD.replace("0.1", "0.3"), encoding="utf-8")
    assert load_critic(program, 20.0).parameters == {"near": 0.3}
