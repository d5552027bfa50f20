"""Version, licence, citation and changelog say the same, in the forms that others read."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from zetta.runtime.cli import main as cli

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASES = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.M)
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_one_version_stands_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])

    assert capsys.readouterr().out == f"zetta {PROJECT['version']}\n"
    assert CITATION["version"] == PROJECT["version"]
    assert RELEASES[0][0] == PROJECT["version"]


def test_the_citation_is_valid() -> None:
    required = {"cff-version", "message", "title", "authors"}
    known = required | {
        "type", "abstract", "version", "date-released", "license", "keywords", "repository-code",
        "url", "identifiers", "doi", "commit", "contact", "license-url", "preferred-citation",
        "references", "repository", "repository-artifact",
    }  # fmt: skip

    assert required <= set(CITATION) <= known
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["authors"] == [{"name": "The Zetta authors"}]
    assert isinstance(CITATION["date-released"], datetime.date)
    assert CITATION["date-released"].isoformat() == RELEASES[0][1]
    assert len(CITATION["keywords"]) == len(set(CITATION["keywords"])) > 0


def test_the_licence_is_named_alike_and_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert PROJECT["license"] == CITATION["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert "Version 2.0, January 2004" in text
    assert all(f"\n   {number}. " in text for number in range(1, 10))
    assert "END OF TERMS AND CONDITIONS" in text
    assert "Apache-2.0, see [LICENSE](LICENSE)" in (ROOT / "README.md").read_text("utf-8")


def test_the_changelog_keeps_its_form() -> None:
    headings = re.findall(r"^##? .*$", CHANGELOG, re.M)
    kinds = re.findall(r"^### (.*)$", CHANGELOG, re.M)

    assert headings[:2] == ["# Changelog", "## [Unreleased]"]
    assert [f"## [{number}] - {date}" for number, date in RELEASES] == headings[2:]
    assert set(kinds) <= KINDS
    dates = [date for _, date in RELEASES]
    assert sorted(dates, reverse=True) == dates
    entries = CHANGELOG.split("## [Unreleased]")[1].splitlines()
    assert all(re.match(r"$|#{2,3} |- |  \S|\[", line) for line in entries)
