"""A campaign whose author is a language model: a scripted one, on a server of this machine."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fake_llm import FakeServer, serving, text, tool
from tests.runtime.cli.test_evolve_campaign import BASE, PLAN, Drawn, contents, manifest
from tests.skills.evolve import llm_briefs as b
from zetta.runtime.cli.evolve_campaign import find_author
from zetta.runtime.cli.evolve_rollouts import Rollouts
from zetta.runtime.cli.evolve_strips import strips_of
from zetta.runtime.cli.evolve_world import SimWorld
from zetta.runtime.cli.planted_fix import write_fix
from zetta.skills.evolve.campaign import Campaign
from zetta.skills.evolve.campaign_run import CampaignResult, run_campaign
from zetta.skills.evolve.generation import Setting

models = pytest.importorskip("pydantic_ai.models", reason="needs pip install 'zetta[llm]'")


@pytest.fixture(scope="module", autouse=True)
def _only_the_fake() -> Iterator[None]:
    """Allow requests, and leave no key with which anybody else would answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            patch.delenv(name, raising=False)
        yield


def planted_answer(folder: Path) -> dict[str, Any]:
    """Return the known fix in the words of a model's answer."""
    fix = write_fix(folder)
    numbers = tomllib.loads((fix / "params.toml").read_text(encoding="utf-8"))
    return b.answer(
        name="hold-on",
        roles=["object", "receptacle"],
        max_ticks=160,
        critic_py=(fix / "critic.py").read_text(encoding="utf-8").replace("slipped", "hold-on"),
        recovery_py=(fix / "recovery.py").read_text(encoding="utf-8"),
        params=[{"name": name, **table} for name, table in numbers.items()],
    )


@pytest.fixture(scope="module")
def developed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that has run its development and found its failures, and no more."""
    folder = tmp_path_factory.mktemp("llm") / "campaign"
    with serving(text("I am not sure.")) as fake:
        asked(folder, fake)
    for stage in contents(folder):
        if stage not in ("development", "diagnosis", "branches"):
            (folder / "000" / f"{stage}.json").unlink()
    return folder


def asked(folder: Path, fake: FakeServer) -> CampaignResult:
    campaign = Campaign(folder, manifest(author="llm"))
    author = find_author("llm", "m", fake.url, None)
    with closing(Rollouts(folder, campaign.manifest.digest, None, lambda *_: None, Drawn)) as runs:
        setting = Setting(
            campaign, PLAN, SimWorld(BASE, folder, runs, 20.0), author,
            pictures=lambda number: strips_of(folder, number, None),
        )  # fmt: skip
        return run_campaign(setting)


def test_prose_and_bad_code_are_mended_and_the_good_answer_is_promoted(
    developed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(developed, folder)
    good = planted_answer(tmp_path / "fix")
    with serving(text("Have you tried again?"), tool(b.IMPORTING), tool(good)) as fake:
        result = asked(folder, fake)

    assert result.promoted == 1
    candidate = contents(folder)["candidate"]
    assert (candidate["name"], candidate["author_cost"]["requests"]) == ("hold-on", 3)
    assert "made_by: llm" in candidate["files"]["SKILL.md"]
    pictures = fake.pictures()
    assert pictures
    assert all(each.startswith("data:image/") for each in pictures)


def test_a_model_learns_nothing_of_scenes_and_seeds(developed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(developed, folder)
    with serving(text("no idea")) as fake:
        result = asked(folder, fake)

    assert result.promoted == 0
    assert "the author llm" in result.generations[0].verdict.reason
    told = json.dumps([fake.user_text(k) for k in range(len(fake.requests))])
    for each in contents(folder)["development"]["episodes"]:
        assert str(each["trial"]["scene"]) not in told
        assert str(each["trial"]["policy_seed"]) not in told
        assert each["scene_digest"] not in told


def test_a_leaking_answer_ends_at_the_screen_and_spends_no_rollout(
    developed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(developed, folder)
    before = len(list((folder / "rollouts").rglob("*")))
    with serving(tool(b.CLOCK)) as fake:
        result = asked(folder, fake)

    assert result.promoted == 0
    assert result.generations[0].ledger.alpha_spent == 0.0
    assert "gate" not in result.generations[0].verdict.reason
    assert len(list((folder / "rollouts").rglob("*"))) == before
    assert not (folder / "000" / "candidate").exists()
