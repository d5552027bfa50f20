"""`zetta critics`: what it prints, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from critic_texts import critic_of, firing_when

from zetta.critics.documentation import documentation
from zetta.critics.operators import OPERATORS
from zetta.primitives.catalogue import PRIMITIVES
from zetta.runtime.cli import critics as verb
from zetta.runtime.cli.main import main
from zetta.runtime.signals import SIGNALS

ROOT = Path(__file__).parents[2]
GOOD = firing_when("now(w.slip) > 0.5")
BAD = critic_of("x = w.nothing\nreturn recover('a')")
RECOVERY = '''"""Rise."""


def precondition(w, p):
    return True


def recover(robot, w, p):
    yield from robot.retreat(p.rise)


def reentry(w, p):
    return now(w.object_offset) < 0.1
'''
PARAMETERS = '[rise]\ndefault = 0.1\nlow = 0.05\nhigh = 0.2\nunit = "m"\n'


def zetta(*line: str | Path) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(part) for part in line])
    return int(left.value.code or 0)


def write(path: Path, text: str | bytes) -> Path:
    """Write a file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_good_critic_is_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert zetta("critics", "check", write(tmp_path / "critic.py", GOOD)) == 0
    assert capsys.readouterr().out == "ok\n"


def test_bad_critic_is_told_by_file_line_and_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "critic.py", BAD)

    assert zetta("critics", "check", path) == 1
    assert capsys.readouterr().out.startswith(f"{path}:8: there is no signal 'nothing'")


def test_all_files_are_checked_and_one_bad_one_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = write(tmp_path / "good.py", GOOD), write(tmp_path / "bad.py", BAD)

    assert zetta("critics", "check", good, bad, "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    assert [(f["path"], f["level"], len(f["problems"])) for f in answer["files"]] == [
        (str(good), "proprio", 0), (str(bad), None, 1),
    ]  # fmt: skip
    assert answer["files"][1]["problems"][0]["line"] == 8


def test_folder_of_a_skill_means_both_of_its_programs_and_their_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "rise" / "critic.py", GOOD)
    write(tmp_path / "rise" / "recovery.py", RECOVERY)
    assert zetta("critics", "check", tmp_path / "rise") == 1
    assert "recovery.py:9: there is no parameter 'rise'" in capsys.readouterr().out

    write(tmp_path / "rise" / "params.toml", PARAMETERS)
    assert zetta("critics", "check", tmp_path / "rise", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(f["kind"], f["level"]) for f in answer["files"]] == [
        ("critic", "proprio"), ("recovery", "vision"),
    ]  # fmt: skip


def test_wrong_parameters_are_told_once_and_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "rise" / "critic.py", GOOD)
    write(tmp_path / "rise" / "recovery.py", RECOVERY)
    toml = write(tmp_path / "rise" / "params.toml", PARAMETERS.replace("0.2", "0.01"))

    assert zetta("critics", "check", tmp_path / "rise") == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{toml}:1: [rise] default = 0.1 does not lie between low = 0.05 and 0.01"
    ]


def test_recovery_is_known_by_what_it_defines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "mine.py", RECOVERY)
    write(tmp_path / "mine.toml", PARAMETERS)

    assert zetta("critics", "check", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["kind"] == "recovery"


def test_missing_file_and_foreign_folder_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert zetta("critics", "check", tmp_path / "none.py") == 1
    assert capsys.readouterr().err == f"error: there is no file {tmp_path / 'none.py'}\n"
    assert zetta("critics", "check", tmp_path) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path} is a folder without critic.py and recovery.py")
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x7fELF\x00\x01", "there is a NUL byte"),
        (b"\xff\xfe\xfd", "this is no UTF-8"),
        (b"x" * 20_000, "longer than 16384 bytes"),
        (b"", "no docstring"),
    ],
)
def test_file_that_is_no_program_is_explained(
    raw: bytes, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "critic.py", raw)

    assert zetta("critics", "check", path) == 1
    assert reason in capsys.readouterr().out.splitlines()[0]


def test_check_without_a_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert zetta("critics", "check") == 2
    assert "FILE" in capsys.readouterr().err


def test_list_shows_every_critic_of_the_library_and_all_can_be_used(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert zetta("critics", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["critics"]

    skills = {path.parent.name for path in (ROOT / "skills" / "library").glob("*/critic.py")}
    assert {c["skill"] for c in listed} - {None} == skills
    assert [c for c in listed if c["problems"]] == []
    assert all(c["level"] in ("proprio", "policy", "vision") and c["window_s"] for c in listed)
    assert zetta("critics", "list") == 0
    assert all(c["name"] in capsys.readouterr().out for c in listed[:1])


def test_reference_in_the_documentation_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert zetta("critics", "docs") == 0
    printed = capsys.readouterr().out

    text = (ROOT / "docs" / "critics.md").read_text(encoding="utf-8")
    assert text.partition(verb.MARKER)[2].strip() == printed.strip()


def test_reference_names_every_operator_signal_and_primitive() -> None:
    text = documentation() + verb.primitives()

    known = [*(op.signature for op in OPERATORS.values()), *SIGNALS]
    known += [spec.signature for spec in PRIMITIVES.values()]
    assert [name for name in known if f"`{name}`" not in text] == []


def test_docs_rewrite_only_what_is_below_the_marker(tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", f"Mine.\n\n{verb.MARKER}\n\nold\n")

    assert zetta("critics", "docs", "--into", page) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"Mine.\n\n{verb.MARKER}\n\n## Constants")
    assert "\nold\n" not in text


def test_docs_leave_a_document_without_marker_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = write(tmp_path / "page.md", "Mine.\n")

    assert zetta("critics", "docs", "--into", page) == 1
    assert "has no line" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "Mine.\n"


def test_examples_of_the_documentation_obey_the_language() -> None:
    text = (ROOT / "docs" / "critics.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    toml = text.split("```toml\n")[1].partition("```")[0]
    toml += "\n[height]\ndefault = 0.1\nlow = 0.0\nhigh = 0.3\n"
    frame = '"""An example."""\n\n\ndef precondition(w, p):\n    return True\n\n\n{}\n\n'
    frame += "def reentry(w, p):\n    return True\n"
    parameters, problems = verb.parse_parameters(toml)

    assert problems == ()
    assert len(blocks) == 2
    critic = verb.analyse_critic(blocks[0], "docs", SIGNALS, parameters)
    recovery = verb.analyse_program(frame.format(blocks[1]), "docs", SIGNALS, parameters)
    assert not isinstance(critic, tuple), critic
    assert not isinstance(recovery, tuple), recovery
