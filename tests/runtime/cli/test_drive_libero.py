"""`zetta drive` in LIBERO: a scripted model that sees pictures, through the real client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fake_llm import serving, text
from zetta.primitives.agent.drive_log import read_turns
from zetta.runtime.cli import main as cli

pytest.importorskip("libero", reason="needs pip install 'zetta[libero]'")
pytest.importorskip("pydantic_ai.models", reason="needs pip install 'zetta[llm]'")
pytestmark = pytest.mark.libero
APART = ("--option", "worker=yes")
"""This process may draw another world already."""


def test_a_model_behind_a_server_completes_a_task(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    replies = (
        ["go above alphabet soup", "move z 60"],
        ["jump", "pick alphabet soup"],
        ["pick alphabet soup", "place in basket"],
        ["done"],
    )
    with serving(*(text(json.dumps({"commands": each})) for each in replies)) as fake:
        given = ("--agent", "qwen", "--base-url", fake.url, "--suite", "libero_object")
        with pytest.raises(SystemExit) as left:
            cli.main(("drive", "--sim", "libero", "--init", "20", "--json", *APART, *given))
    assert left.value.code == 0
    (episode,) = json.loads(capsys.readouterr().out)["episodes"]
    assert episode["success"]
    assert episode["verified"]
    assert episode["turns"] == 4
    assert len(fake.pictures(0)) == 2
    turns = read_turns(Path(episode["log"]))
    assert "jump" in turns[1].refusals[0]
    assert turns[1].results == ()
