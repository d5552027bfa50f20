"""What a program says in arrays is what its compiled form says, tick by tick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.skills.evolve.search_briefs import HAND, HZ, drawn_brief
from zetta.critics.critic import compile_critic
from zetta.critics.parameters import Parameter
from zetta.critics.shadow import moments
from zetta.runtime.core import Proprio, Tick, read_only
from zetta.runtime.errors import ConfigError
from zetta.runtime.signals import SIGNALS
from zetta.skills.evolve.authors import WatchedEpisode
from zetta.skills.evolve.critic_arrays import ArrayProgram, NotInArrays, corpus_of
from zetta.skills.evolve.critic_templates import TEMPLATES
from zetta.skills.package import load_skill
from zetta.skills.shelf import library_folder

FORMS = (
    "now(w.slip) > p.a", "ago(w.slip, 0.3) > p.a", "mean(w.slip, 0.4) > p.a",
    "minimum(w.slip, p.s) < p.a", "maximum(w.slip, 0.0) > p.a", "delta(w.slip, p.s) > p.a",
    "rate(w.slip, 0.2) > p.a", "spread(w.slip, 0.2) > p.a", "path_length(w.slip, 0.3) > p.a",
    "crossed(w.slip, p.a, 0.2)", "held(w.slip > p.a, p.s)", "once(w.slip > p.a, 0.2)",
    "since(w.slip > p.a, w.lift > 0.0, 0.5)", "rose(w.slip > p.a, 0.2)",
    "count(w.slip > p.a, 0.4) > 3.0", "share(w.slip > p.a) > 0.5", "not now(w.slip) > p.a",
    "now(w.slip) < p.a or now(w.lift) > 0.0", "now(w.slip) < p.a and now(w.lift) > 0.0",
    "0.0 < now(w.slip) < p.a", "now(w.lift) / now(w.slip) > p.a",
    "held((w.slip > p.a) or (w.lift > 0.0), 0.1)", "hypot(now(w.slip), now(w.lift)) > p.a",
    "held(max(w.slip, w.lift) > p.a, 0.1)", "held(w.slip - w.lift > p.a, 0.1)",
)  # fmt: skip
NUMBERS = {
    "a": Parameter("a", 0.1, -1.0, 1.0, ""),
    "s": Parameter("s", 0.3, 0.0, 1.0, "s"),
}


def critic(condition: str) -> str:
    return (
        f'"""Watches."""\n\nWINDOW_S = 1.0\nSKILL = "some"\n\n\ndef check(w, p):\n'
        f'    if {condition}:\n        return recover("so it is")\n    return ok()\n'
    )


def logged(rows: dict[str, list[float]]) -> WatchedEpisode:
    length = len(next(iter(rows.values())))
    ticks = tuple(
        Tick(k, Proprio(k / HZ, HAND), read_only(np.zeros(7)), "policy",
             {name: values[k] for name, values in rows.items()})
        for k in range(length)
    )  # fmt: skip
    return WatchedEpisode("e", "do it", False, HZ, 100, ticks)


def said(text: str, episodes: list[WatchedEpisode], parameters, values) -> list[list[bool]]:
    compiled = compile_critic(text, "critic.py", "some", HZ, SIGNALS, parameters, values)
    return [
        [
            compiled.armed(history) and compiled.judge(history).decision == "recover"
            for _, history in moments(episode.ticks, HZ)
        ]
        for episode in episodes
    ]


def in_arrays(text: str, episodes: list[WatchedEpisode], values) -> list[list[bool]]:
    corpus = corpus_of(episodes)
    fires = ArrayProgram(text, "check", corpus).fires(values)
    return [
        list(fires[start : start + length])
        for start, length in zip(corpus.starts, corpus.lengths, strict=True)
    ]


VALUES = st.one_of(st.floats(-1.0, 1.0), st.sampled_from([0.0, 0.1, float("nan")]))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=15, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 45), min_size=1, max_size=3),
    seconds=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    draw=st.data(),
)
def test_an_operator_says_in_arrays_what_it_says_tick_by_tick(form, lengths, seconds, draw):
    values = {"a": 0.1, "s": seconds}
    episodes = [
        logged(
            {name: draw.draw(st.lists(VALUES, min_size=n, max_size=n)) for name in ("slip", "lift")}
        )
        for n in lengths
    ]
    text = critic(form)
    assert in_arrays(text, episodes, values) == said(text, episodes, NUMBERS, values)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda t: t.name)
def test_a_template_says_in_arrays_what_its_critic_says(template):
    brief = drawn_brief(2, 2)
    episodes = [*brief.failures, *brief.successes]
    rng = np.random.default_rng(4)
    parameters = {p.name: p for p in template.parameters}
    for _ in range(3):
        values = {p.name: float(rng.uniform(p.low, p.high)) for p in template.parameters}
        text = template.text("some")
        assert in_arrays(text, episodes, values) == said(text, episodes, parameters, values)


@pytest.mark.parametrize("name", ["regrasp", "pick-up-again", "restage", "reseat"])
def test_a_critic_of_the_library_says_in_arrays_what_it_says_live(name):
    package = load_skill(library_folder() / name)
    brief = drawn_brief(2, 2)
    episodes = [*brief.failures, *brief.successes]
    values = {p.name: p.default for p in package.parameters.values()}
    expected = said(package.critic_source, episodes, package.parameters, values)
    assert in_arrays(package.critic_source, episodes, values) == expected


def test_what_is_not_done_in_arrays_is_refused_and_not_guessed():
    text = critic("held(w.slip > now(w.lift), 0.2)")
    with pytest.raises(NotInArrays, match="present tick"):
        in_arrays(text, [logged({"slip": [0.0], "lift": [0.0]})], {})


def test_episodes_of_two_rates_are_refused():
    brief = drawn_brief(1, 1)
    slow = WatchedEpisode("s", "do it", True, 10.0, 100, brief.failures[0].ticks)
    with pytest.raises(ConfigError, match="same rate"):
        corpus_of([brief.failures[0], slow])
