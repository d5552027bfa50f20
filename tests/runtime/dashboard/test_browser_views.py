"""Every view in a real browser: its data, its keys, its names, and how it fits a phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.dashboard_runs import (
    FLASH,
    FLASH_SIGNAL,
    FLASH_TICK,
    FLASH_VALUE,
    HELPED,
    PLAIN,
    REAL,
)
from tests.runtime.dashboard.conftest import Served
from tests.skills.evolve.made_campaign import HOSTILE
from zetta.runtime.success_rates import mcnemar

pytestmark = pytest.mark.browser

Look = Callable[..., Any]
DRAWN_MS = 180_000
"""Films are drawn by another process, which a busy machine lets wait."""

NAMELESS = """() => [...document.querySelectorAll(
  'button, a[href], select, input, img, canvas, video, dialog[open], [role=img], [tabindex="0"]')]
  .filter((e) => e.checkVisibility())
  .filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('alt') || e.labels?.length
    || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent
    || e.textContent.trim() || e.title))
  .map((e) => e.outerHTML.slice(0, 120))"""
WIDTHS = "() => [document.documentElement.scrollWidth, window.innerWidth]"
GROUND = "() => getComputedStyle(document.documentElement).backgroundColor"


def address_of(view: str, served: Served) -> str:
    match view:
        case "run":
            return f"#/run/{served.run(HELPED)}"
        case "episode" | "why":
            return f"#/episode/{served.episodes(REAL)[0]['id']}?tick=41"
        case "compare":
            return f"#/compare/{served.run(PLAIN)}/{served.run(HELPED)}"
        case "pair":
            first, second = served.episodes(REAL)
            return f"#/pair/{first['id']}/{second['id']}"
        case "campaign":
            return f"#/campaign/{served.run('tiny-lan')}"
        case _:
            return f"#/{view}"


SHOWN = {
    "fleet": HELPED,
    "run": "bring the red cube on the tray",
    "episodes": "Episodes of every run",
    "episode": "put the red cube on the green plate",
    "why": "Why did it intervene? Tick 41",
    "compare": "exact McNemar",
    "pair": "who drove",
    "campaigns": "tiny-lan",
    "campaign": "better than random moments after 15 pairs",
    "library": "keeps-away-regrasp",
}
"""A word of its data that each view must show."""


@pytest.mark.parametrize("view", SHOWN)
def test_a_view_has_its_data_and_names_in_dark_and_light_and_fits_a_phone(
    view: str, look: Look, dashboard: Served
) -> None:
    page = look(address_of(view, dashboard))
    page.get_by_text(SHOWN[view]).first.wait_for()

    assert page.get_by_role("heading", level=1).count() == 1
    assert page.evaluate(NAMELESS) == []
    light = page.evaluate(GROUND)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(GROUND) != light
    page.set_viewport_size({"width": 360, "height": 760})
    wide, narrow = page.evaluate(WIDTHS)
    assert wide <= narrow


def test_the_theme_button_wins_over_the_system(look: Look) -> None:
    page = look("#/fleet")
    page.get_by_text(HELPED).first.wait_for()
    light = page.evaluate(GROUND)
    page.keyboard.press("d")
    dark = page.evaluate(GROUND)
    page.reload()
    page.get_by_text(HELPED).first.wait_for()

    assert light != dark == page.evaluate(GROUND)


def test_keys_lead_through_a_run_into_an_episode_and_to_its_event(
    look: Look, dashboard: Served
) -> None:
    page = look(f"#/run/{dashboard.run(REAL)}")
    page.get_by_role("row").nth(2).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    place = page.get_by_label("Present tick")
    place.wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.get_by_text("tick 11 ·").wait_for()
    page.keyboard.press("n")
    page.get_by_text("tick 41 ·").wait_for()


def test_the_filter_of_a_run_counts_what_is_left(look: Look, dashboard: Served) -> None:
    answer = json.loads((dashboard.root / HELPED / "run.json").read_text(encoding="utf-8"))
    failed = answer["n"] - answer["successes"]
    page = look(f"#/run/{dashboard.run(HELPED)}")
    page.get_by_text("60 episodes").first.wait_for()
    page.get_by_label("Outcome").select_option("failed")

    page.get_by_text(f"{failed} episodes").first.wait_for()


def test_why_shows_the_line_that_spoke_with_what_it_saw(look: Look, dashboard: Served) -> None:
    page = look(address_of("why", dashboard))
    code = page.get_by_role("region", name="Code of the critic regrasp")
    code.wait_for()

    assert 'return recover("the hand goes away without the object")' in code.inner_text()
    assert "object_offset" in code.inner_text()


def test_compare_tests_the_pairs_as_an_evaluation_does(look: Look, dashboard: Served) -> None:
    scores = []
    for name in (PLAIN, HELPED):
        told = json.loads((dashboard.root / name / "run.json").read_text(encoding="utf-8"))
        scores.append([None if e["error"] else e["success"] for e in told["episodes"]])
    pairs = [pair for pair in zip(*scores, strict=True) if None not in pair]
    test = mcnemar(pairs.count((False, True)), pairs.count((True, False)))
    page = look(address_of("compare", dashboard))
    tile = page.locator(".tile", has_text="exact McNemar")
    tile.wait_for()

    assert f"p = {test.p_two_sided:.3g}" in tile.inner_text()
    told = page.locator(".tile", has_text=f"{test.wins} : {test.harms}")
    assert told.count() == 1
    page.get_by_label("Outcome", exact=True).select_option("win")
    page.get_by_text(f"{test.wins} pairs").first.wait_for()


def test_choosing_two_runs_compares_them_and_a_key_exchanges_them(
    look: Look, dashboard: Served
) -> None:
    page = look("#/compare")
    page.get_by_label("First", exact=True).select_option(dashboard.run(PLAIN))
    page.get_by_label("Second", exact=True).select_option(dashboard.run(HELPED))
    page.get_by_text("26 : 8").wait_for()
    page.get_by_role("heading", level=1).click()  # keys are not for the field that was chosen in
    page.keyboard.press("x")
    page.get_by_text("8 : 26").wait_for()
    assert page.get_by_label("First", exact=True).input_value() == dashboard.run(HELPED)


@pytest.mark.timeout(400)
def test_two_episodes_play_on_one_axis(look: Look, dashboard: Served) -> None:
    page = look(address_of("pair", dashboard))
    films = page.locator("video")
    films.nth(1).wait_for(timeout=DRAWN_MS)
    page.wait_for_function("() => [...document.querySelectorAll('video')].every(v => v.readyState)")
    page.keyboard.press("n")
    page.get_by_text("tick 41 ·").wait_for()

    page.wait_for_function(
        "() => [...document.querySelectorAll('video')]"
        ".every(v => !v.seeking && Math.abs(v.currentTime - 41.5 / 20) < 0.02)"
    )
    assert page.get_by_text("The actions part at").count() == 1
    page.get_by_label("Add a signal").select_option("elapsed")
    page.get_by_label("elapsed of both episodes over ticks").wait_for()


def test_other_episodes_on_the_scene_are_one_step_away(look: Look, dashboard: Served) -> None:
    page = look(address_of("episode", dashboard))
    page.get_by_role("link", name="on the same scene").click()
    page.get_by_text("this one").wait_for()
    page.get_by_role("row").filter(has_not_text="this one").last.click()
    page.get_by_text("First: who drove").wait_for()


def test_the_funnel_of_a_campaign_is_in_order_with_its_nulls(look: Look, dashboard: Served) -> None:
    page = look(address_of("campaign", dashboard))
    stages = page.get_by_role("list", name="Stages of the gate").get_by_role("listitem")
    stages.first.wait_for()
    words = [text.split()[0] for text in stages.all_inner_texts()]

    assert words == [
        "development", "diagnosis", "branches", "screen", "shadow", "same", "no", "parent", "sham",
        "random", "cost", "report", "verdict",
    ]  # fmt: skip
    assert "a worthless candidate passes with a chance of at most 0.2" in stages.nth(5).inner_text()
    assert page.get_by_role("img", name="11 pairs: 7 won, 0 harmed").count() >= 1
    assert page.get_by_role("img", name="failure 000 of generation 0").count() == 1


def test_what_authors_write_is_text_in_the_browser_too(look: Look, dashboard: Served) -> None:
    page = look(f"#/campaign/{dashboard.run('hostile')}")
    page.get_by_text("Candidate again").first.click()
    page.get_by_text(HOSTILE).first.wait_for()

    assert page.locator("main script").count() == 0


def test_rolling_back_asks_first_and_then_does_what_the_command_does(
    look: Look, dashboard: Served
) -> None:
    pointer = dashboard.library / "current"
    before = pointer.read_text(encoding="utf-8")
    page = look("#/library", token=True)
    back = page.get_by_role("button", name="Roll back to").first
    back.click()
    dialog = page.get_by_role("dialog")
    assert "It leaves out: regrasp." in dialog.inner_text()
    dialog.get_by_role("button", name="Leave it as it is").click()
    assert pointer.read_text(encoding="utf-8") == before

    back.click()
    page.get_by_label("Why").fill("it harms")
    page.get_by_role("dialog").get_by_role("button", name="Roll back", exact=True).click()
    page.get_by_role("cell", name="it harms").wait_for()
    assert pointer.read_text(encoding="utf-8") != before
    assert page.get_by_role("cell", name="rollback", exact=True).count() == 1
    page.get_by_role("button", name=f"Roll back to {before[:12]}").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back", exact=True).click()
    page.get_by_role("row", name=f"{before[:12]} in use").wait_for()


def test_without_the_token_nothing_can_be_rolled_back(look: Look, dashboard: Served) -> None:
    page = look("#/library")
    page.get_by_text("keeps-away-regrasp").first.wait_for()

    assert page.get_by_role("button", name="Roll back to").first.is_disabled()


# ------------------------------------------------------------------------------ film and signals

SEEN = """() => {
  const film = document.querySelector('video');
  const canvas = document.createElement('canvas');
  canvas.width = film.videoWidth;
  canvas.height = film.videoHeight;
  const pen = canvas.getContext('2d');
  pen.drawImage(film, 0, 0);
  const pixel = pen.getImageData(canvas.width / 4, canvas.height / 3, 1, 1).data;
  return [...pixel].slice(0, 3);
}"""
SETTLED = """at => {
  const film = document.querySelector('video');
  return film && film.readyState >= 2 && !film.seeking && Math.abs(film.currentTime - at) < 0.001;
}"""
TICKS, MARGIN = 119, 12
HZ = 20.0


def is_flash(page: Any, tick: int) -> bool:
    """Say whether the frame that is drawn at a tick, once it is there, is the red one."""
    page.wait_for_function(SETTLED, arg=(tick + 0.5) / HZ)
    red, green, _ = page.evaluate(SEEN)
    return bool(red > 120 and green < 60)


@pytest.mark.timeout(400)
def test_a_click_on_the_jump_of_a_signal_shows_the_flash_and_the_tick_before_does_not(
    look: Look, dashboard: Served
) -> None:
    (episode,) = dashboard.episodes(FLASH)
    assert episode["ticks"] == TICKS
    page = look(f"#/episode/{episode['id']}")
    page.locator("video").wait_for(timeout=DRAWN_MS)
    lane = page.get_by_role("img", name=FLASH_SIGNAL).first
    lane.scroll_into_view_if_needed()
    box = lane.bounding_box()
    assert not is_flash(page, 0)

    share = FLASH_TICK / (TICKS - 1)
    page.mouse.click(
        box["x"] + MARGIN + share * (box["width"] - 2 * MARGIN), box["y"] + box["height"] / 2
    )
    page.get_by_text(f"tick {FLASH_TICK} ·").wait_for()
    assert page.get_by_text(f"{FLASH_VALUE:g} m/s").count() == 1
    assert is_flash(page, FLASH_TICK)

    page.keyboard.press("ArrowLeft")
    assert not is_flash(page, FLASH_TICK - 1)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert not is_flash(page, FLASH_TICK + 1)
    page.keyboard.press("ArrowLeft")
    assert is_flash(page, FLASH_TICK)


@pytest.mark.timeout(400)
def test_side_by_side_the_flash_is_at_its_tick_in_the_first_film(
    look: Look, dashboard: Served
) -> None:
    (flash,), other = dashboard.episodes(FLASH), dashboard.episodes(REAL)[0]
    page = look(f"#/pair/{flash['id']}/{other['id']}?tick={FLASH_TICK}")
    page.locator("video").nth(1).wait_for(timeout=DRAWN_MS)

    assert is_flash(page, FLASH_TICK)
    page.keyboard.press("ArrowRight")
    assert not is_flash(page, FLASH_TICK + 1)
