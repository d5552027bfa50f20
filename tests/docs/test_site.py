"""The site: every page is in it, every link leads somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from docs import hooks
from tests.docs.blocks import ROOT, blocks_of, parsed
from zetta.runtime.cli.main import VERBS

DOCS: Final = ROOT / "docs"
WRITTEN: Final = (*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")))
GENERATED: Final = {DOCS / hooks.VERBS_PAGE: hooks.reference}
BUILD_WITHIN_S: Final = 900.0
FROM_ELSEWHERE: Final = re.compile(
    r"""<(?:script|img|link|iframe)[^>]+(?:src|href)=["']?(?:https?:)?//|@import[^;]+https?:"""
)


class Settings(yaml.SafeLoader):
    """Reads the settings of the site; what names a Python function is left as its name."""


Settings.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, name, _node: name)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(), Settings)
    return loaded


def pages_in(nav: Any) -> Iterator[str]:
    """Yield the pages of a navigation in their order."""
    if isinstance(nav, str):
        yield nav
    else:
        for below in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_in(below)


def test_navigation_holds_every_page_once(settings: dict[str, Any]) -> None:
    listed = list(pages_in(settings["nav"]))
    assert len(listed) == len(set(listed))
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} | {hooks.VERBS_PAGE}
    assert there <= set(listed), "add it to the nav of mkdocs.yml"
    assert set(listed) <= there


def test_site_takes_nothing_from_elsewhere_when_it_is_read(settings: dict[str, Any]) -> None:
    assert settings["theme"]["font"] is False
    assert "offline" in settings["plugins"]
    assert settings["strict"] is True


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_site_is_built_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    offline = ["unshare", "--net"] if os.geteuid() == 0 else []
    ended = subprocess.run(
        [*offline, sys.executable, "-m", "mkdocs", "build", "-d", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_WITHIN_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    made = sorted((tmp_path / "site").rglob("*.html"))
    assert {page.name for page in made} > {"index.html", "verbs.html"}
    for page in made:
        html = page.read_text(encoding="utf-8")
        assert FROM_ELSEWHERE.findall(html) == [], page.name
        source = DOCS / page.relative_to(tmp_path / "site").with_suffix(".md")
        if source.exists() and source.name != "api.md":  # its signatures are shown as blocks too
            shown = html.count("<pre")
            assert shown == len(blocks_of(source)), f"{source.name}: a block is not shown as one"


def test_reference_of_the_command_holds_every_verb_with_its_help() -> None:
    page = hooks.reference()
    for verb in VERBS:
        assert f"## zetta {verb}\n" in page
    assert page.count("Usage: zetta ") == page.count("```text")
    assert "Usage: zetta skills promote [OPTIONS]" in page
    assert "--recovery-share" in page


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in WRITTEN])
def test_links_of_a_page_lead_to_a_file_and_a_heading(page: Path) -> None:
    wrong = []
    for target in links_of(page):
        if re.match(r"[a-z]+:", target):
            continue  # another site: nothing is fetched
        name, _, anchor = target.partition("#")
        leads = (page.parent / name).resolve() if name else page
        if leads not in GENERATED and not leads.exists():
            wrong.append(f"{target}: there is no such file")
        elif anchor and anchor not in anchors_of(leads):
            wrong.append(f"{target}: there is no such heading")
        elif page.is_relative_to(DOCS) and not leads.is_relative_to(DOCS):
            wrong.append(f"{target}: the site does not have it")
    assert wrong == []


def links_of(page: Path) -> list[str]:
    """Return what the links and pictures of a page lead to."""
    found = []
    for token in parsed(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            target = child.attrs.get("href") or child.attrs.get("src")
            if target:
                found.append(str(target))
    return found


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """Return the names of a page's headings, as GitHub and the site make them."""
    text = GENERATED[page]() if page in GENERATED else page.read_text(encoding="utf-8")
    tokens = parsed(text)
    titles = (
        "".join(child.content for child in following.children or ())
        for token, following in pairwise(tokens)
        if token.type == "heading_open"
    )
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def test_link_that_leads_nowhere_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b` c: d\n\n[x](#a-b-c-d) [y](none.md) ![z](z.png)\n\n    [no](link.md)\n")
    assert links_of(page) == ["#a-b-c-d", "none.md", "z.png"]
    assert anchors_of(page) == {"a-b-c-d"}
