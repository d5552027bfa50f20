"""The recovery language: what runs, how it ends, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from zetta.critics.parameters import Parameter
from zetta.primitives.catalogue import PRIMITIVES
from zetta.primitives.robot import Robot
from zetta.runtime.core import Action, Look, Motion, Outcome, Sense
from zetta.runtime.errors import ConfigError, ScreenError
from zetta.runtime.signals import SIGNALS, SignalHistory
from zetta.skills.program import (
    MAX_OPERATIONS,
    CheckedProgram,
    Program,
    analyse_program,
    check_program,
    compile_program,
)

HZ = 20.0
PARAMETERS = {
    "height": Parameter("height", 0.1, 0.05, 0.3, "m", ""),
    "pause": Parameter("pause", 0.5, 0.1, 1.0, "s", ""),
    "far": Parameter("far", 0.1, 0.0, 0.9, "m", ""),
}
PRECONDITION = "def precondition(w, p):\n    return now(w.holding) < 0.5\n\n\n"
REENTRY = "\n\ndef reentry(w, p):\n    return now(w.holding) > 0.5\n"
HEAD = f'"""A recovery of a test."""\n\n\n{PRECONDITION}def recover(robot, w, p):\n'
BODY_LINE = 9
"""The line of the first statement of `recover` in `recovery_of`."""
NAN = float("nan")


def recovery_of(body: str) -> str:
    """Return a whole recovery around the statements of `recover`."""
    return HEAD + "".join(f"    {line}\n" for line in body.splitlines()) + REENTRY


def problems_of(body: str) -> list[tuple[int, str]]:
    """Return line within `recover`, and reason, of everything that is wrong."""
    problems = check_program(recovery_of(body), "recovery.py", SIGNALS, PARAMETERS)
    return [(problem.line - BODY_LINE + 1, problem.reason) for problem in problems]


def compiled(source: str) -> Program:
    """Return the recovery."""
    return compile_program(source, "recovery.py", "test", HZ, SIGNALS, PARAMETERS)


def window_of(**latest: float) -> SignalHistory:
    """Return a window in which some signals have had these values for five seconds."""
    window = SignalHistory(list(SIGNALS), HZ)
    push(window, 101, **latest)
    return window


def push(window: SignalHistory, ticks: int = 1, **latest: float) -> None:
    """Let some ticks pass."""
    row = np.array([latest.get(name, NAN) for name in SIGNALS])
    for _ in range(ticks):
        window.push(row)


class Stage:
    """Records which primitives are run; each takes one tick and ends as it is told."""

    def __init__(self, *ends: bool, window: SignalHistory | None = None) -> None:
        self.calls: list[str] = []
        self._ends = iter(ends)
        self._window = window

    def __getattr__(self, name: str) -> object:
        if name not in PRIMITIVES:
            raise AttributeError(name)

        def primitive(**given: object) -> Iterator[Action | Look]:
            return self._run(name, given)

        return primitive

    def _run(self, name: str, given: dict[str, object]) -> Motion:
        self.calls.append(f"{name}({', '.join(f'{key}={given[key]}' for key in given)})")
        yield np.zeros(7)
        if self._window is not None:
            push(self._window, holding=float(len(self.calls)))
        completed = next(self._ends, True)
        return Outcome(completed, f"{name} {'went well' if completed else 'went wrong'}")


def run(motion: Motion) -> tuple[int, Outcome]:
    """Return the ticks of a motion and how it ended."""
    ticks = 0
    try:
        next(motion)
        while True:
            ticks += 1
            motion.send(Sense(None))  # type: ignore[arg-type]
    except StopIteration as ended:
        outcome: Outcome = ended.value
        return ticks, outcome


def played(body: str, *ends: bool, **latest: float) -> tuple[list[str], Outcome]:
    """Return the primitives that a recovery ran and how it ended."""
    stage = Stage(*ends)
    _, outcome = run(compiled(recovery_of(body)).recover(stage, window_of(**latest)))
    return stage.calls, outcome


# ------------------------------------------------------------------- what runs


def test_primitives_run_in_order_with_their_arguments() -> None:
    body = (
        "yield from robot.open()\n"
        "yield from robot.retreat(p.height)\n"
        'yield from robot.above("object", height=0.2)\n'
        "yield from robot.move_by(0.1, dy=-0.1, dz=0)"
    )

    calls, outcome = played(body)

    assert calls == [
        "open()", "retreat(height=0.1)", "above(role=object, height=0.2)",
        "move_by(dx=0.1, dy=-0.1, dz=0.0)",
    ]  # fmt: skip
    assert outcome == Outcome(True, "move_by went well")


def test_recovery_ends_as_its_last_primitive_did() -> None:
    body = "yield from robot.open()\nyield from robot.close()"

    assert played(body, True, False)[1] == Outcome(False, "close went wrong")
    assert played(body, False, True)[1] == Outcome(True, "close went well")


def test_loop_tries_again_until_it_worked() -> None:
    body = (
        "tries = 0\n"
        "for _ in range(3):\n"
        '    ok = yield from robot.grasp("object")\n'
        "    tries += 1\n"
        "    if ok and tries > 0:\n"
        "        return\n"
        "    yield from robot.retreat()\n"
        "if tries == 3:\n"
        "    yield from robot.open()\n"
        "return ok"
    )

    calls, outcome = played(body, False, True, True)
    assert calls == ["grasp(role=object)", "retreat()", "grasp(role=object)"]
    assert outcome.completed
    calls, outcome = played(body, False, True, False, True, False, True, True)
    assert calls.count("grasp(role=object)") == 3
    assert calls[-1] == "open()"
    assert not outcome.completed


def test_nested_loops_and_names_change_as_in_python() -> None:
    body = (
        "n = 0\nm = 1\n"
        "for _ in range(2):\n"
        "    for _ in range(3):\n"
        "        n = n + m\n"
        "        yield from robot.hold(n / 100)\n"
        "    m = n\n"
        "yield from robot.hold(m / 100)"
    )
    n, m, expected = 0, 1, []
    for _ in range(2):
        for _ in range(3):
            n = n + m
            expected.append(n)
        m = n
    expected.append(m)

    calls, _ = played(body)

    assert [float(call[len("hold(seconds=") : -1]) for call in calls] == pytest.approx(
        [value / 100 for value in expected]
    )


def test_names_swap_in_a_loop_as_in_python() -> None:
    body = (
        "a = 0.1\nb = 0.2\n"
        "for _ in range(3):\n"
        "    c = a\n    a = b\n    b = c\n"
        "    yield from robot.hold(a)"
    )

    assert played(body)[0] == ["hold(seconds=0.2)", "hold(seconds=0.1)", "hold(seconds=0.2)"]


def test_window_stays_live_while_it_runs() -> None:
    body = (
        "now_held = w.holding\n"
        "for _ in range(8):\n"
        "    if now(now_held) > 2:\n"
        "        return True\n"
        "    yield from robot.hold(0.1)\n"
        "return False"
    )
    window = window_of(holding=0.0)
    stage = Stage(window=window)

    ticks, outcome = run(compiled(recovery_of(body)).recover(stage, window))

    assert (ticks, outcome.completed) == (3, True)


def test_return_of_a_condition_says_how_it_ended() -> None:
    body = "ok = yield from robot.open()\nreturn not ok"

    assert played(body, True)[1] == Outcome(False, "open went well")
    assert played(body, False)[1] == Outcome(True, "")
    assert played("return\nyield from robot.open()") == ([], Outcome(True, "nothing was done"))


def test_computed_argument_stays_within_the_bounds_of_the_primitive() -> None:
    body = "yield from robot.retreat(now(w.lift))\nyield from robot.move_by(0, 0, now(w.lift))"

    assert played(body, lift=9.0)[0] == ["retreat(height=0.4)", "move_by(dx=0.0, dy=0.0, dz=0.4)"]
    assert played(body, lift=-9.0)[0][1] == "move_by(dx=0.0, dy=0.0, dz=-0.4)"


# ------------------------------------------------------------------- what is not known


def test_unknown_value_ends_the_motion_and_says_which() -> None:
    body = "yield from robot.open()\nif now(w.slip) > 0:\n    yield from robot.close()"

    calls, outcome = played(body)

    assert calls == ["open()"]
    assert outcome == Outcome(False, "a value was unknown: slip")


@pytest.mark.parametrize(
    "body",
    [
        "yield from robot.hold(now(w.lift))",
        "yield from robot.hold(1 / now(w.holding))",
        "yield from robot.hold(mean(1 / w.holding, 0.1))",
        "yield from robot.hold(now(w.ee_speed) * 1e12 * 1e12)",
        "x = now(w.slip)\nyield from robot.open()",
        "if held(w.slip > 0, 0.1):\n    yield from robot.open()",
        "return now(w.slip) > 0\nyield from robot.open()",
    ],
)
def test_nothing_is_done_with_a_value_that_is_unknown(body: str) -> None:
    calls, outcome = played(body, holding=0.0, ee_speed=1e300)

    assert calls == []
    assert not outcome.completed
    assert outcome.reason.startswith("a value was unknown: ")


def test_signal_that_the_episode_lacks_is_unknown() -> None:
    program = compiled(recovery_of("yield from robot.hold(now(w.slip))"))

    _, outcome = run(program.recover(Stage(), SignalHistory([], HZ)))

    assert outcome == Outcome(False, "a value was unknown: slip")


def test_conditions_do_not_hold_while_a_value_is_unknown() -> None:
    program = compiled(recovery_of("yield from robot.open()"))

    for window in (window_of(), SignalHistory([], HZ)):
        assert program.precondition(window) is False
        assert program.reentry(window) is False
    assert program.precondition(window_of(holding=0.0)) is True
    assert program.precondition(window_of(holding=1.0)) is False
    assert program.reentry(window_of(holding=1.0)) is True


def test_error_of_a_primitive_is_not_taken_for_an_unknown_value() -> None:
    class Broken(Stage):
        def _run(self, name: str, given: dict[str, object]) -> Motion:
            yield np.zeros(7)
            raise KeyError("a fault of the primitive")

    motion = compiled(recovery_of("yield from robot.open()")).recover(Broken(), window_of())
    next(motion)
    with pytest.raises(KeyError, match="fault of the primitive"):
        motion.send(Sense(None))  # type: ignore[arg-type]


def test_numpy_still_warns_between_the_ticks_of_a_recovery() -> None:
    body = "yield from robot.hold(mean(w.lift / w.lift, 0.1))\nyield from robot.open()"
    motion = compiled(recovery_of(body)).recover(Stage(), window_of(lift=1.0))
    before = np.geterr()

    next(motion)

    assert np.geterr() == before


def test_recovery_can_be_interrupted() -> None:
    stage = Stage()
    motion = compiled(recovery_of("yield from robot.open()\nyield from robot.close()")).recover(
        stage, window_of()
    )
    next(motion)
    motion.close()

    assert stage.calls == ["open()"]
    with pytest.raises(StopIteration):
        next(motion)


# ------------------------------------------------------------------- facts


def test_level_is_the_highest_of_signals_and_primitives() -> None:
    def level(body: str, precondition: str = PRECONDITION) -> str:
        source = recovery_of(body).replace(PRECONDITION, precondition)
        checked = analyse_program(source, "recovery.py", SIGNALS, PARAMETERS)
        assert isinstance(checked, CheckedProgram), checked
        return checked.level

    seeing = PRECONDITION.replace("w.holding", "w.object_offset")
    assert level("yield from robot.open()") == "proprio"
    assert level('yield from robot.look("part")') == "vision"
    assert level("yield from robot.open()", seeing) == "vision"
    assert level("yield from robot.open()", seeing.replace("w.", "w.oracle_")) == "oracle"


def test_program_names_what_it_reads_and_runs() -> None:
    program = compiled(recovery_of('yield from robot.grasp("object")\nyield from robot.open()'))

    assert program.signals == ("holding",)
    assert program.primitives == ("grasp", "open")
    assert program.docstring == "A recovery of a test."


def test_robot_has_a_method_with_the_same_arguments_for_every_primitive() -> None:
    # Calls are made by name, so names must agree.
    for name, spec in PRIMITIVES.items():
        code = getattr(Robot, name).__code__
        arguments = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        assert tuple(parameter.name for parameter in spec.parameters) == arguments


def test_refused_recovery_is_not_compiled() -> None:
    with pytest.raises(ScreenError, match=r"recovery.py:9: there is no primitive 'fly'"):
        compiled(recovery_of("yield from robot.fly()"))


def test_value_out_of_bounds_is_refused() -> None:
    source = recovery_of("yield from robot.retreat(p.height)")

    with pytest.raises(ConfigError, match="height"):
        compile_program(source, "r.py", "test", HZ, SIGNALS, PARAMETERS, {"height": 0.9})


# ------------------------------------------------------------------- what is refused

OPEN = "\nyield from robot.open()"
REFUSED = {
    # statements of recover: (line within them, part of the reason)
    "robot.open()": (1, "a primitive is run by: yield from robot.open()"),
    "yield robot.open()": (1, "yield"),
    "x = robot.open()" + OPEN: (1, "only operators are called"),
    "x = robot" + OPEN: (1, "never set"),
    "x = robot.open" + OPEN: (1, "only w.<signal>"),
    "yield from robot": (1, "yield from robot.<primitive>"),
    "yield from robot.fly()": (1, "no primitive 'fly'"),
    "yield from robot.grsp('object')": (1, "did you mean 'grasp'"),
    "yield from robot._arm()": (1, "no primitive '_arm'"),
    "yield from robot.__class__()": (1, "no primitive '__class__'"),
    "yield from robot.open.close()": (1, "yield from robot.<primitive>"),
    "yield from w.ee_x": (1, "yield from robot.<primitive>"),
    "yield from open()": (1, "yield from robot.<primitive>"),
    "if (yield from robot.open()):\n    return": (1, "on a line of its own"),
    "x = not (yield from robot.open())": (1, "on a line of its own"),
    "return (yield from robot.open())": (1, "on a line of its own"),
    "yield from robot.grasp()": (1, "role is missing"),
    "yield from robot.grasp('table')": (1, 'role is "object", not'),
    "yield from robot.grasp(object)": (1, 'role is "object", not object'),
    "yield from robot.grasp(1)": (1, 'role is "object", not 1'),
    "yield from robot.place('object')": (1, 'role is "receptacle", not'),
    "yield from robot.grasp('object', 'part')": (1, "takes no more than 1"),
    "yield from robot.above('object', width=1)": (1, "has no 'width'"),
    "yield from robot.above('object', role='object')": (1, "gets 'role' twice"),
    "yield from robot.above(*w.ee_x)": (1, "'*'"),
    "yield from robot.above(**p)": (1, "'**'"),
    "yield from robot.hold('object')": (1, "text"),
    "yield from robot.hold(True)": (1, "wants a number; True is a condition"),
    "yield from robot.hold(w.slip)": (1, "write now(w.slip)"),
    "yield from robot.hold(9)": (1, "seconds lies between 0 and 5 s; got 9"),
    "yield from robot.retreat(-0.1)": (1, "height lies between 0 and 0.4 m; got -0.1"),
    "yield from robot.retreat(p.far)": (1, "p.far goes from 0 to 0.9"),
    "yield from robot.retreat(p.pause)": (1, "p.pause goes from 0.1 to 1"),
    "yield from robot.hold(p.height)": (1, "seconds is in s; p.height is in m"),
    "yield from robot.retreat(now(w.ee_z))": (1, "a place in the world"),
    "for _ in range(9):\n    yield from robot.open()": (1, "1 to 8 rounds"),
    "for _ in range(0):\n    yield from robot.open()": (1, "1 to 8 rounds"),
    "for _ in range(True):\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for _ in range(2.0):\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for _ in range(1, 3):\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for _ in range(p.far):\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for i in range(2):\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for _ in w.ee_x:\n    yield from robot.open()": (1, "for _ in range(n)"),
    "for _ in range(2):\n    yield from robot.open()\nelse:\n    pass": (1, "for _ in range(n)"),
    "for _ in range(2):\n    x = 1.0" + OPEN: (1, "every round of a loop runs a primitive"),
    "for _ in range(2):\n    if now(w.slip) > 1:\n        yield from robot.open()": (
        1, "every round of a loop runs a primitive",
    ),
    "for _ in range(2):\n    for _ in range(2):\n        pass\n    yield from robot.open()": (
        2, "every round of a loop runs a primitive",
    ),
    "for _ in range(2):\n    for _ in range(2):\n        for _ in range(2):\n"
    "            yield from robot.open()": (3, "2 deep at most"),
    "while True:\n    yield from robot.open()": (1, "for _ in range(8)"),
    "for _ in range(2):\n    yield from robot.open()\n    break": (3, "break"),
    "for _ in range(2):\n    yield from robot.open()\n    continue": (3, "continue"),
    "async for _ in range(2):\n    pass": (1, ""),
    "x = 1": (0, "recover runs no primitive"),
    "return 1" + OPEN: (1, "wants a condition; 1 is a number"),
    "return recover('a')" + OPEN: (1, "only returned from check"),
    "return robot.open()" + OPEN: (1, "only operators are called"),
    "recover(robot, w, p)" + OPEN: (1, ""),
    "x = yield from robot.open()\ny = x + 1": (2, "'+' wants numbers"),
    "x, y = yield from robot.open()": (1, "on a line of its own"),
    "w = yield from robot.open()": (1, "a word of the language"),
    "x = 0\nfor _ in range(2):\n    x = True\n    yield from robot.open()": (
        2, "another sort of thing",
    ),
    "for _ in range(2):\n    yield from robot.open()\n    x = y\n    y = 1": (3, "never set"),
    "for _ in range(2):\n    yield from robot.open()\n    s = w.slip\nx = now(s)": (
        4, "a series of the loop",
    ),
    "s = w.slip\nfor _ in range(2):\n    x = now(s)\n    s = w.lift\n    yield from robot.open()": (
        3, "a series that the loop changes",
    ),
    "import os" + OPEN: (1, "import"),
    "x = now(w.ee_z) > 0.9" + OPEN: (1, "belongs to one scene"),
    "x = mean(w.slip, 2)" + OPEN: (1, "0 to WINDOW_S = 1 s"),
    "for _ in range(8):\n    for _ in range(8):\n        x = mean(w.slip)\n"
    "        yield from robot.open()": (0, "units of work, at most 1000"),
    "x = path_length(w.slip)\n" * 30 + "yield from robot.open()": (0, "units of work"),
    "try:\n    yield from robot.open()\nfinally:\n    pass": (1, "try"),
    "with robot:\n    yield from robot.open()": (1, "with"),
    "def f():\n    yield from robot.open()" + OPEN: (1, "a function within"),
    "x = (y for y in robot)" + OPEN: (1, "a generator"),
    "robot.x = 1" + OPEN: (1, "one name is set at a time"),
    "del robot" + OPEN: (1, "del"),
}  # fmt: skip


@pytest.mark.parametrize("body", list(REFUSED))
def test_wrong_recovery_is_refused_at_its_line(body: str) -> None:
    line, reason = REFUSED[body]

    problems = problems_of(body)

    assert problems
    if line == 0:  # what concerns all of recover is told at its first line
        assert problems[0][0] == 0
    else:
        assert problems[0][0] == line
    assert reason in problems[0][1]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (PRECONDITION, "", "no function precondition(w, p)"),
        (REENTRY, "", "no function reentry(w, p)"),
        ("return now(w.holding) < 0.5", "return now(w.holding)", "compare it"),
        ("return now(w.holding) < 0.5", "return", "got nothing"),
        ("return now(w.holding) < 0.5", "x = 1", "can end without an answer"),
        ("return now(w.holding) < 0.5", "yield from robot.open()", "yield from"),
        ("return now(w.holding) < 0.5", "for _ in range(2):\n        pass", "a loop"),
        ("def precondition(w, p)", "def precondition(robot, w, p)", "def precondition(w, p)"),
        ("def recover(robot, w, p)", "def recover(w, p)", "def recover(robot, w, p)"),
        ("def recover(", "async def recover(", "async"),
        ("def recover(", "@eval\ndef recover(", "decorators"),
        ('"""A recovery of a test."""', "", "docstring"),
        ('"""A recovery of a test."""', '"""A."""\nSKILL = "x"', "none of the constants"),
        ('"""A recovery of a test."""', '"""A."""\nWINDOW_S = 9', "between 0 and 5"),
    ],
)
def test_wrong_frame_of_a_recovery_is_refused(old: str, new: str, reason: str) -> None:
    source = recovery_of("yield from robot.open()")
    assert check_program(source, "r.py", SIGNALS, PARAMETERS) == ()

    problems = check_program(source.replace(old, new, 1), "r.py", SIGNALS, PARAMETERS)

    assert any(reason in problem.reason for problem in problems), problems


def test_work_of_a_recovery_counts_every_round() -> None:
    body = "for _ in range(8):\n    x = mean(w.slip)\n    yield from robot.hold(now(w.lift))"
    once = analyse_program(recovery_of(body.replace("8", "1")), "r.py", SIGNALS, PARAMETERS)
    often = analyse_program(recovery_of(body), "r.py", SIGNALS, PARAMETERS)

    assert isinstance(once, CheckedProgram)
    assert isinstance(often, CheckedProgram)
    assert often.work == 8 * once.work <= MAX_OPERATIONS
