"""Reads the page of a report as a browser would, and holds it to what a report promises."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from zetta.runtime.reporting.document import Document, Table

VOID = {"meta", "img", "br"}
LOADS = ("src", "href", "xlink:href", "srcset", "poster", "action", "background")


class Page(HTMLParser):
    """Reads a page and holds that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.sources: list[str] = []
        self.identifiers: list[str] = []
        self.styles: list[str] = []
        self.headings: list[int] = []
        self.tables = self.captions = 0
        self.unnamed: list[str] = []
        """Pictures and plots without words."""
        self.words = ""
        self.text = text
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.seen.add(tag)
        self.sources += [given[name] for name in LOADS if name in given]
        self.styles += [given["style"]] if "style" in given else []
        self.identifiers += [given["id"]] if "id" in given else []
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if (tag == "img" and not given.get("alt")) or (
            given.get("role") == "img" and not given.get("aria-label")
        ):
            self.unnamed.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data
        if self.open and self.open[-1] == "style":
            self.styles.append(data)


def check_page(text: str) -> Page:
    """Return the page, which loads nothing, runs nothing, and names whatever it shows."""
    page = Page(text)
    assert all(source.startswith(("data:image/", "#")) for source in page.sources)
    addresses = [url for style in page.styles for url in re.findall(r"url\(([^)]*)\)", style)]
    assert all(url.startswith("#") for url in addresses)
    assert not any("@import" in style or "@font-face" in style for style in page.styles)
    assert not page.seen & {"script", "link", "iframe", "object", "embed", "base", "form"}
    assert "default-src 'none'" in text
    assert len(set(page.identifiers)) == len(page.identifiers)
    inside = {source[1:] for source in page.sources if source.startswith("#")}
    assert inside <= set(page.identifiers)
    assert page.tables == page.captions
    assert page.unnamed == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    steps = zip(page.headings, page.headings[1:], strict=False)
    assert all(below - above <= 1 for above, below in steps)
    return page


def table(document: Document, caption: str) -> Table:
    """Return the first table of a report whose caption holds some words."""
    return next(b for b in document.blocks() if isinstance(b, Table) and caption in b.caption)
