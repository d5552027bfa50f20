"""A report in a real browser: it prints, it asks for nothing, and it fits a phone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.runtime.reporting.made_outcomes import outcomes
from zetta.runtime.cli.report_campaign import campaign_document
from zetta.runtime.cli.report_pdf import print_pdf
from zetta.runtime.reporting.outcome_document import outcome_document
from zetta.runtime.reporting.page import render

CHROMIUM = shutil.which("chromium")
CAMPAIGN = Path(__file__).parents[3] / "results" / "campaigns" / "tiny-lan"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt install chromium"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return pages of the two kinds."""
    folder = tmp_path_factory.mktemp("pages")
    made = outcomes({"a": [True, False] * 20, "b": [True, True] * 20}, called="b")
    texts = {
        "runs": render(outcome_document(made, 0)),
        "campaign": render(campaign_document(CAMPAIGN)[0]),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("name", ["runs", "campaign"])
def test_a_report_prints_to_pages(pages: dict[str, Path], name: str) -> None:
    pdf = pages[name].with_suffix(".pdf")
    print_pdf(pages[name], pdf)
    content = pdf.read_bytes()

    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 2


def test_a_report_asks_for_nothing_but_itself_and_fits_a_phone(pages: dict[str, Path]) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    asked: list[str] = []
    with playwright.sync_playwright() as session:
        browser = session.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for path in pages.values():
            page = browser.new_page(viewport={"width": 360, "height": 800})
            page.on("request", lambda request: asked.append(request.url))
            page.on("pageerror", lambda error: asked.append(str(error)))
            page.on("console", lambda message: asked.append(message.text))
            page.goto(path.as_uri())
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                assert contrast(page) >= 4.5
            page.close()
        browser.close()

    assert [each for each in asked if not each.startswith("data:")] == [
        path.as_uri() for path in pages.values()
    ]


def contrast(page: object) -> float:
    """Return the least contrast between text and its ground (WCAG 2)."""
    found: float = page.evaluate(  # type: ignore[attr-defined]
        """() => {
          const rgb = c => c.match(/[\\d.]+/g).map(Number);
          const light = c => { const [r, g, b] = rgb(c).slice(0, 3).map(v => { v /= 255;
            return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = e => { for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (rgb(c).length < 4 || rgb(c)[3] > 0) return c; } return 'rgb(255, 255, 255)'; };
          let least = 21;
          const named = 'p, td, th, a, caption, figcaption, .tag, li';
          for (const e of document.querySelectorAll(named)) {
            if (!e.textContent.trim()) continue;
            const a = light(getComputedStyle(e).color), b = light(ground(e));
            least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
          }
          return least;
        }"""
    )
    return found
