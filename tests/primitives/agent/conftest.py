"""Requests go to the fake server and nowhere else."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _only_the_fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no key with which anybody else would answer."""
    for name in (
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN", "HTTP_PROXY", "http_proxy", "ALL_PROXY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
