"""A parent of two skills, and the screen of drafts against it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.skills.evolve.drafts import parents
from zetta.runtime.core import Sensing
from zetta.skills.evolve.authors import Draft
from zetta.skills.evolve.screen import ScreenResult, screen
from zetta.skills.package import SkillPackage

Screen = Callable[..., ScreenResult]


@pytest.fixture
def parent(tmp_path: Path) -> tuple[SkillPackage, ...]:
    return parents(tmp_path / "parent")


@pytest.fixture
def screened(tmp_path: Path, parent: tuple[SkillPackage, ...]) -> Screen:
    """Return a screen of drafts against the parent."""

    def run(draft: Draft, sensing: Sensing = "vision", edits: int = 120, **more: object) -> object:
        rejected = more.pop("rejected", ())
        return screen(draft, tmp_path / "candidate", parent, rejected, sensing, edits, **more)  # type: ignore[arg-type]

    return run  # type: ignore[return-value]
