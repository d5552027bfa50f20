"""What a person sees of the signals while an episode runs."""

from __future__ import annotations

import io
import math
import sys

import numpy as np
import pytest

from zetta.runtime.cli.live_signals import LiveSignals
from zetta.runtime.core import ArmState, Init, Proprio, Scene, Tick, Verdict
from zetta.sims.toy import ToySimulator

VERDICT = Verdict("recover", "nothing in the hand", critic="empty-hand")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(verdicts: tuple[Verdict, ...] = ()) -> None:
    env = ToySimulator().make("toy_pick", 0)
    scene = Scene(env.toy.task, Init(0))
    step = env.reset(scene)
    arm = ArmState(np.zeros(3), np.zeros(4), np.zeros(7), 0.0)
    signals = {"holding": 1.0, "slip": 0.0123, "ee_x": -0.5, "dispersion": math.nan, "mine": 7.25}
    with LiveSignals("episode 1/1") as live:
        live.begin(scene, env.spec, "put it there", step)
        for index in (41, 42):
            said = verdicts if index == 41 else ()
            tick = Tick(index, Proprio(0.0, (arm,)), np.zeros(7), "skill:regrasp", signals, said)
            live.tick(tick, step, None)


def test_a_terminal_shows_every_signal_with_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    show((VERDICT,))

    shown = terminal.getvalue()
    assert "tick 42/160" in shown
    assert "recover empty-hand: nothing in the hand" in shown
    for name, value in (("holding", "1"), ("slip", "0.012"), ("ee_x", "-0.500"), ("mine", "7.250")):
        assert name in shown
        assert value in shown
    assert "dispersion" in shown
    assert "nan" not in shown
    assert shown.endswith("\x1b[2K") or shown.rstrip().endswith("\x1b[?25h")


def test_without_a_terminal_there_is_one_line_a_second_of_what_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show()

    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0].endswith("put it there")
    assert len(lines) == 2
    assert "tick 42/160  skill:regrasp  holding 1  slip 0.012" in lines[1]
    assert "dispersion" not in lines[1]
