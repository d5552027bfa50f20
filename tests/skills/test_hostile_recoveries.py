"""A hostile author against the recovery language: refused at its line, or stopped within budget."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.runtime.scripted_parts import Notebook
from tests.skills.evolve.drafts import CRITIC, RECOVERY, draft_of, indented
from zetta.critics.parameters import Parameter
from zetta.runtime import registry
from zetta.runtime.cli.deploy import deploy
from zetta.runtime.core import EpisodeResult, Init, RunSpec, Scene
from zetta.runtime.loop import Episode
from zetta.runtime.signals import SIGNALS
from zetta.sims.toy import ToySimulator
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.candidates import write_candidate
from zetta.skills.evolve.screen import ScreenResult, screen
from zetta.skills.program import check_program

LINE = 9
"""Of the first statement of `recover`."""
OPEN = "\nyield from robot.open()"
PARAMETERS = {
    "stall": Parameter("stall", 1.0, 0.5, 3.0, "s"),
    "rise": Parameter("rise", 0.08, 0.02, 0.2, "m"),
}
LOOP = "for _ in range(8):\n    "

GENERATORS = {
    # statements of recover: the line of them that is wrong
    "yield from (robot.open() for _ in range(9))": 1,
    "yield from [robot.open()]": 1,
    "yield from robot.open().send(None)": 1,
    "robot.open().throw(w)" + OPEN: 1,
    "robot.open().close()" + OPEN: 1,
    "x = robot.open().gi_frame" + OPEN: 1,
    "x = robot.open().gi_frame.f_back.f_globals" + OPEN: 1,
    "m = robot.open()\nyield from m": 1,
    "yield from recover(robot, w, p)": 1,
    "yield from iter(robot.open, 1)": 1,
    "yield from robot.open() if True else robot.close()": 1,
    "yield from (yield from robot.open())": 1,
    "x = yield" + OPEN: 1,
    "yield 0.0" + OPEN: 1,
    "yield robot.look('object')" + OPEN: 1,
    "yield from robot.open(*[])": 1,
    "yield from robot.open(seconds=9)": 1,
    "await robot.open()" + OPEN: 1,
    "return robot.open()" + OPEN: 1,
    "x = (yield from robot.open()) and (yield from robot.close())" + OPEN: 1,
}
LOOPS = {
    "for _ in range(8):\n    pass" + OPEN: 1,
    "for _ in range(1000000000):\n    yield from robot.open()": 1,
    "for _ in range(8 ** 9):\n    yield from robot.open()": 1,
    "for _ in range(0x7fffffffffffffffffff):\n    yield from robot.open()": 1,
    "for _ in range(p.rise * 100):\n    yield from robot.open()": 1,
    "for _ in range(now(w.holding)):\n    yield from robot.open()": 1,
    "for _ in range(-8):\n    yield from robot.open()": 1,
    "for _ in range(8, 9, 0):\n    yield from robot.open()": 1,
    "for _ in iter(w.holding):\n    yield from robot.open()": 1,
    "for _ in robot.open():\n    yield from robot.close()": 1,
    "for _ in range(2):\n    for _ in range(2):\n        for _ in range(2):\n"
    "            yield from robot.open()": 3,
    "for _ in range(8):\n    if now(w.holding) > 1:\n        yield from robot.open()": 1,
    "while True:\n    yield from robot.look('object')": 1,
    "while now(w.holding) < 1:\n    yield from robot.hold(1)": 1,
    "recover(robot, w, p)" + OPEN: 1,
    "def again():\n    yield from again()\nyield from again()": 1,
    "f = lambda: f()" + OPEN: 1,
    "x = [0] * 1000000000" + OPEN: 1,
    "x = 9 ** 9 ** 9" + OPEN: 1,
    "async for _ in range(2):\n    yield from robot.open()": 1,
}
TRUTH = {
    "x = robot._env" + OPEN: 1,
    "x = robot.env.truth()" + OPEN: 1,
    "x = robot._arm.sense.proprio" + OPEN: 1,
    "yield from robot._run(robot.open)": 1,
    "yield from robot._last_seen('object')": 1,
    "yield from robot.__init__()": 1,
    "yield from robot.held()": 1,
    "x = getattr(robot, '_arm')" + OPEN: 1,
    "x = vars(robot)" + OPEN: 1,
    "x = globals()" + OPEN: 1,
    "x = w.__class__" + OPEN: 1,
    "x = w.holding.__class__.__mro__" + OPEN: 1,
    "x = w.last('oracle_object_x', 1)" + OPEN: 1,
    "x = w['oracle_object_x']" + OPEN: 1,
    "x = p.__dict__" + OPEN: 1,
    "x = type(w)" + OPEN: 1,
    "robot.look = robot.open" + OPEN: 1,
    "robot, w = w, robot" + OPEN: 1,
    "global done\ndone = 1" + OPEN: 1,
    "done.completed = True" + OPEN: 1,
    "x = done.completed" + OPEN: 1,
    "x = reading(w)" + OPEN: 1,
    "x = nothing" + OPEN: 1,
    "from zetta.sims import toy" + OPEN: 1,
    "import gc" + OPEN: 1,
    "x = open('/etc/passwd')" + OPEN: 1,
    "print('x', file=w)" + OPEN: 1,
    "exec('1')" + OPEN: 1,
    "x = __import__('os')" + OPEN: 1,
    "try:\n    x = 1\nexcept BaseException:\n    pass" + OPEN: 1,
    "with open('x') as f:\n    pass" + OPEN: 1,
    "x = now(w.ee_z) < 0.9" + OPEN: 1,
    "yield from robot.move_by(now(w.object_x), 0, 0)": 1,
}
ARGUMENTS = {
    "yield from robot.hold(6)": 1,
    "yield from robot.hold(-0.001)": 1,
    "yield from robot.hold(1e999)": 1,
    "yield from robot.hold(float('nan'))": 1,
    "yield from robot.hold(nan)": 1,
    "yield from robot.hold(1j)": 1,
    "yield from robot.hold(None)": 1,
    "yield from robot.hold('1')": 1,
    "yield from robot.hold(True)": 1,
    "yield from robot.hold(w.holding)": 1,
    "yield from robot.move_by(0.41, 0, 0)": 1,
    "yield from robot.move_by(0, 0, -1e12)": 1,
    "yield from robot.turn_by(4)": 1,
    "yield from robot.retreat(p.stall)": 1,
    "yield from robot.look('object' + '')": 1,
    "yield from robot.look(f'object')": 1,
    "yield from robot.look('obj' 'ect', 1)": 1,
    "yield from robot.look('../object')": 1,
    "yield from robot.look('оbject')": 1,
    "yield from robot.look(b'object')": 1,
    "yield from robot.look('%s' % w)": 1,
    "yield from robot.look('{0.__class__}'.format(robot))": 1,
    "yield from robot.look(('object', 'part'))": 1,
    "x = 'a' * 1000000000" + OPEN: 1,
    "x = 'a'" + OPEN: 1,
    "x = p.rise.__format__('1000000000d')" + OPEN: 1,
}
TEXTS: dict[str, tuple[str, int]] = {
    # what it is: (statements, line within them)
    "nul": ("x = 1\0" + OPEN, 1),
    "name that folds": ("yield from robot.ｏpen()", 1),
    "name in cyrillic": ("yield from rоbot.open()", 1),
    "backwards": ("x = 1  # \u202e" + OPEN, 1),
    "zero width": ("yield from robot.op\u200ben()", 1),
    "deep": ("x = " + "(" * 90 + "1" + ")" * 90 + " + w" + OPEN, 1),
    "deeper": ("x = " + "-" * 9000 + "1" + OPEN, 1),
    "deep sum": ("x = " + "1 + (" * 30 + "1" + ")" * 30 + OPEN, 1),
    "deep call": ("yield from robot.hold(" + "abs(" * 30 + "1" + ")" * 31, 1),
    "deep blocks": (
        "".join("    " * k + "if now(w.holding) > 1:\n" for k in range(24)) + "    " * 24 + "return"
        + OPEN, 21,
    ),
    "too long": ("# " + "a" * 17000 + OPEN, 1 - LINE + 1),
    "too many": ("x = 1.0\n" * 200 + "yield from robot.open()", 197),
}  # fmt: skip


def refusals(body: str) -> list[str]:
    """Return what is wrong with a recovery of these statements."""
    source = RECOVERY.format(body=indented(body))
    return [str(p) for p in check_program(source, "recovery.py", SIGNALS, PARAMETERS)]


@pytest.mark.parametrize("body", [*GENERATORS, *LOOPS, *TRUTH, *ARGUMENTS])
def test_a_hostile_statement_is_refused_at_its_line(body: str) -> None:
    line = {**GENERATORS, **LOOPS, **TRUTH, **ARGUMENTS}[body]

    said = refusals(body)

    assert said, "it got through"
    assert said[0].startswith(f"recovery.py:{LINE + line - 1}: "), said


@pytest.mark.parametrize("name", list(TEXTS))
def test_a_hostile_text_is_refused_at_its_line(name: str) -> None:
    body, line = TEXTS[name]

    said = refusals(body)

    assert said
    assert any(each.startswith(f"recovery.py:{LINE + line - 1}: ") for each in said), said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return now(w.policy_drives) > 0.5", "yield from robot.open()"),
        ("return now(w.policy_drives) > 0.5", "w.policy_drives = 1.0\n    return True"),
        ("return now(w.policy_drives) > 0.5", "p.rise = 1.0\n    return True"),
        ("return now(w.policy_drives) > 0.5", "global count\n    return True"),
        ("return now(w.policy_drives) > 0.5", "print('x')\n    return True"),
        ("return now(w.policy_drives) > 0.5", "x = open('x', 'w')\n    return True"),
        ("return now(w.policy_drives) > 0.5", "return precondition(w, p)"),
        ("return now(w.policy_drives) > 0.5", "return robot.open()"),
        ("return now(w.policy_drives) > 0.5", "for _ in range(8):\n        x = 1\n    return True"),
        ("return now(w.stalled_for) < p.stall", "return recover('again')"),
        ("return now(w.stalled_for) < p.stall", "recover(robot, w, p)\n    return False"),
    ],
)
def test_conditions_have_no_effects_and_call_nobody(old: str, new: str) -> None:
    source = RECOVERY.format(body=indented("yield from robot.open()"))
    at = source[: source.index(old)].count("\n") + 1

    said = [str(p) for p in check_program(source.replace(old, new), "r.py", SIGNALS, PARAMETERS)]

    assert said[0].startswith(f"r.py:{at}: "), said


def test_the_hostile_set_is_large() -> None:
    assert len(GENERATORS) + len(LOOPS) + len(TRUTH) + len(ARGUMENTS) + len(TEXTS) >= 100


# ------------------------------------------------------------------- whole drafts


def screened(draft: Draft, folder: Path) -> ScreenResult:
    return screen(draft, folder / "candidate", (), (), "vision", 120)


@pytest.mark.parametrize(
    ("file", "old", "new", "at"),
    [
        ("SKILL.md", "max_ticks: 60", "max_ticks: 999999", "SKILL.md:7: "),
        ("SKILL.md", "max_ticks: 60", "max_ticks: 600", "SKILL.md:7: "),
        ("SKILL.md", "max_ticks: 60", "max_ticks: .inf", "SKILL.md:7: "),
        ("SKILL.md", "max_ticks: 60", "max_ticks: 60\nmax_ticks: 70", "SKILL.md:8: "),
        ("SKILL.md", "name: unstick", "name: ../unstick", "SKILL.md:2: "),
        ("SKILL.md", "name: unstick", "name: /etc", "SKILL.md:2: "),
        ("SKILL.md", "applies: always", "applies: &a [*a, *a]", "SKILL.md:"),
        ("SKILL.md", "version: 0.1.0", "version: 0.1.0\nhook: recovery.py", "SKILL.md:4: "),
        ("critic.py", 'SKILL = "unstick"', 'SKILL = "regrasp"', "critic.py:4: "),
        ("critic.py", "WINDOW_S = 2.0", "WINDOW_S = 1e9", "critic.py:3: "),
        ("params.toml", "high = 3.0", "high = inf", "params.toml:1: "),
        ("params.toml", "default = 1.0", "default = nan", "params.toml:1: "),
        ("params.toml", "[rise]", '["__class__"]', "params.toml:8: "),
        ("params.toml", "[rise]", "[rise.deep]", "params.toml:"),
        ("params.toml", "[rise]", "x = " + "[" * 5000 + "]" * 5000 + "\n[rise]", "params.toml:"),
    ],
)
def test_a_hostile_page_or_number_is_refused_at_its_line(
    tmp_path: Path, file: str, old: str, new: str, at: str
) -> None:
    draft = draft_of()
    text = draft.files[file].replace(old, new, 1)
    assert text != draft.files[file]

    result = screened(Draft(draft.name, {**draft.files, file: text}, "h"), tmp_path)

    assert any(problem.startswith(at) for problem in result.problems), result.problems
    assert not (tmp_path / "candidate").exists()


@pytest.mark.parametrize("text", ["x" * 1_000_001, "\udc80", "\0"])
def test_a_file_that_is_huge_or_no_text_is_refused(tmp_path: Path, text: str) -> None:
    files = {**draft_of().files, "replay/a.json": text}
    (problem, *_) = screened(Draft("unstick", files, "h"), tmp_path).problems
    assert problem.startswith("replay/a.json:1: ")


def test_very_many_files_are_refused(tmp_path: Path) -> None:
    many = {f"replay/w{k}.json": "{}" for k in range(201)}
    result = screened(Draft("unstick", {**draft_of().files, **many}, "h"), tmp_path)
    assert "a package holds 200" in result.problems[0]


def test_what_is_refused_never_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {**draft_of().files, "recovery.py": "print('ran')\n", "critic.py": "print('ran')\n"}
    assert not screened(Draft("unstick", files, "h"), tmp_path).passed
    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------- what is allowed is bounded

ALWAYS = (
    "if now(w.interventions) > 0.5 and now(w.since_handback) < 0.3:\n    return ok()\n"
    'return recover("whenever I can")'
)
"""A critic that asks for its skill at all times, but for the ticks that free it of its latch."""


def run(
    folder: Path, recover: str, reentry: str = "return False", max_ticks: int = 60
) -> EpisodeResult:
    """Run an episode of the toy in which a hostile skill asks for the robot at every tick."""
    recovery = RECOVERY.format(body=indented(recover)).replace(
        "return now(w.stalled_for) < p.stall", reentry
    )
    critic = CRITIC.format(name="unstick", body=indented(ALWAYS))
    draft = draft_of(roles="[]", recovery=recovery, critic=critic)
    page = draft.files["SKILL.md"].replace("max_ticks: 60", f"max_ticks: {max_ticks}").replace(
        "roles: []", "roles: []\nuses: [object, receptacle, part]"
    )  # fmt: skip
    draft = Draft(draft.name, {**draft.files, "SKILL.md": page}, "h")
    bundle = write_candidate(draft, [], folder / "bundle")
    toy = ToySimulator()
    env, scene = toy.make("toy_pick", 0), Scene(toy.task("toy_pick", 0), Init(0))
    driver = registry.policy("toy/reach")
    spec = RunSpec("toy", "toy_pick", 0, Init(0), bundle=str(bundle), sensing="oracle")
    parts = deploy(spec, env, scene, driver.spec)
    return Episode(
        env, scene, parts.arbiter, driver, signals=parts.signals, localizer=parts.localizer,
        sinks=[Notebook()],
    ).run()  # fmt: skip


def check_bounded(result: EpisodeResult, max_ticks: int = 60) -> None:
    """Hold what a skill did against the arbiter's default budgets."""
    most = int(0.2 * result.scene.task.max_steps)
    driven = result.sources.get("skill:unstick", 0)
    assert driven <= most
    assert all(recovery.ticks <= max_ticks for recovery in result.recoveries)
    assert len(result.recoveries) <= 3
    assert not any(recovery.completed for recovery in result.recoveries)


@pytest.mark.parametrize(
    ("recover", "why"),
    [
        (LOOP + "yield from robot.hold(5)", "ticks for recoveries are spent"),
        (LOOP + "yield from robot.move_by(0, 0, 0)", "re-entry condition does not hold"),
        (LOOP + "yield from robot.until_contact(0, 0, 0)", ""),
        (LOOP + "yield from robot.until_contact(0, 0, -0.4)", ""),
        (LOOP + "yield from robot.turn_by(3.14159)", ""),
        (LOOP + 'yield from robot.follow("object", 5)', ""),
        (LOOP + 'yield from robot.grasp("object")', ""),
        (LOOP + 'yield from robot.place("receptacle")', ""),
        (LOOP + 'yield from robot.push("object")', ""),
        (LOOP + 'yield from robot.turn("part")', "it looked 16"),
        (LOOP + 'yield from robot.pull("part")', "it looked 16"),
        (LOOP + "yield from robot.hold(1 / (now(w.ee_speed) - now(w.ee_speed)))", "unknown"),
        (LOOP + "yield from robot.retreat(now(w.lift) * 1e12 * 1e12)", ""),
        (LOOP + "yield from robot.hold(0)", "re-entry condition does not hold"),
        (LOOP + 'yield from robot.look("object")', "it looked 16 times without acting"),
        (LOOP + LOOP.replace("\n", "\n    ") + '    yield from robot.look("part")', "it looked 16"),
        (LOOP + "yield from robot.hold(0)\n    yield from robot.hold(0)", "it looked 16"),
        (LOOP + 'yield from robot.follow("object", 0)', ""),
        ("return\nyield from robot.open()", "re-entry condition does not hold"),
    ],
)
def test_what_never_ends_or_never_moves_is_stopped_within_its_ticks(
    tmp_path: Path, recover: str, why: str
) -> None:
    result = run(tmp_path, recover)

    check_bounded(result)
    assert result.recoveries
    assert any(why in recovery.ending for recovery in result.recoveries), result.recoveries
    assert result.reason != "error"


def test_a_recovery_longer_than_its_page_is_interrupted_at_its_last_tick(tmp_path: Path) -> None:
    result = run(tmp_path, LOOP + "yield from robot.hold(5)", max_ticks=7)
    assert [r.ticks for r in result.recoveries] == [7, 7, 7]
    assert result.recoveries[0].ending == "interrupted: its 7 ticks are spent"


def test_a_reentry_that_never_holds_does_not_order_the_skill_again_and_again(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, "yield from robot.hold(0.1)")
    # Two attempts of two ticks in each of three hand-overs, and then the policy is left alone.
    assert [r.ticks for r in result.recoveries] == [4, 4, 4]
    starts = [r.tick for r in result.recoveries]
    assert all(b - a >= 4 + 10 for a, b in pairwise(starts))


def test_no_reentry_condition_hides_that_a_recovery_only_looked(tmp_path: Path) -> None:
    result = run(tmp_path, LOOP + 'yield from robot.look("object")', reentry="return True")
    assert {r.ticks for r in result.recoveries} == {0}
