"""Film and signals are in step: a flash at one tick is seen at that tick and at no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.dashboard_runs import FLASH, FLASH_SIGNAL, FLASH_TICK, FLASH_VALUE, REAL
from tests.runtime.dashboard.conftest import Served

pytestmark = pytest.mark.browser

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


def test_a_click_on_the_jump_of_a_signal_shows_the_flash_and_the_tick_before_does_not(
    look: Callable[..., Any], dashboard: Served
) -> None:
    (episode,) = dashboard.episodes(FLASH)
    assert episode["ticks"] == TICKS
    page = look(f"#/episode/{episode['id']}")
    page.locator("video").wait_for(timeout=90_000)
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


def test_side_by_side_the_flash_is_at_its_tick_in_the_first_film(
    look: Callable[..., Any], dashboard: Served
) -> None:
    (flash,), other = dashboard.episodes(FLASH), dashboard.episodes(REAL)[0]
    page = look(f"#/pair/{flash['id']}/{other['id']}?tick={FLASH_TICK}")
    page.locator("video").nth(1).wait_for(timeout=90_000)

    assert is_flash(page, FLASH_TICK)
    page.keyboard.press("ArrowRight")
    assert not is_flash(page, FLASH_TICK + 1)
