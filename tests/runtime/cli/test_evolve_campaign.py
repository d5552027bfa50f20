"""A whole campaign on the toy: real failures; branches and the gate's episodes are drawn."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from zetta.runtime.cli.evolve_campaign import _refuse_other_things, find_author
from zetta.runtime.cli.evolve_episodes import EvolvingEpisodes
from zetta.runtime.cli.evolve_rollouts import Rollouts
from zetta.runtime.cli.evolve_world import SimWorld
from zetta.runtime.cli.main import main
from zetta.runtime.cli.planted_fix import FAULT, NAME, POLICY, write_fix
from zetta.runtime.core import Recovery, RunSpec, Sampled
from zetta.runtime.errors import ConfigError, GateError
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity, Watch
from zetta.skills.evolve.authors import Author, Brief, Draft, NoDraft
from zetta.skills.evolve.campaign import STAGES, Campaign, Manifest, manifest_key
from zetta.skills.evolve.campaign_run import CampaignResult, run_campaign
from zetta.skills.evolve.generation import Setting
from zetta.skills.evolve.plans import Budget, GatePlan, ReliabilityPlan, plan_gate
from zetta.skills.evolve.sham_author import ShamAuthor

BASE = RunSpec(
    "toy", "toy_pick", 0, Sampled(), policy=POLICY, sensing="oracle",
    options={"toy_faults": FAULT, "recovery_share": "0.7"},
)  # fmt: skip
PLAN = plan_gate(budget=Budget(development=20, search=160))


class Killed(BaseException):
    """What a test does to a campaign."""


class Drawn:
    """Runs logged episodes in the toy, and draws the outcome of all others."""

    ran: ClassVar[Counter[str]] = Counter()

    def __init__(self, kill: Callable[[int], bool] = lambda count: False) -> None:
        self._real, self._kill, self._count = EvolvingEpisodes(), kill, 0

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        return self._real.identify(specs)

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        self._count += 1
        if self._kill(self._count):
            raise Killed
        if "errand" in spec.options:
            errand = json.loads(spec.options["errand"])
            if errand["log"]:
                return self._real.run(spec, watch)
            if errand["snapshot"]:
                return continued(errand)
        arm = spec.bundle.split(":")[0][-9:] + spec.options.get("shadow", "")
        type(self).ran[f"{arm} {spec.seed} {spec.policy_seed}"] += 1
        return drawn(spec)

    def close(self) -> None:
        self._real.close()


def drawn(spec: RunSpec) -> EpisodeRecord:
    """A parent that solves a third, a fix that mends nearly all, and controls that do not."""
    luck = random.Random(f"{spec.seed}/{spec.policy_seed}")
    good, mended, timed = luck.random() < 0.33, luck.random() < 0.95, luck.random() < 0.3
    arm = spec.bundle.partition(":")[0] if ":" in spec.bundle else spec.bundle
    if spec.options.get("shadow") == "yes":
        arm = "none"
    fires = (not good and arm != "none") or (arm == "random" and timed)
    success = good or {"none": False, "sham": False, "random": timed}.get(arm, mended)
    recovery = Recovery(NAME, NAME, "drawn", 40, 60, True, "done")
    return EpisodeRecord(
        success=success, success_at_reset=False, reason="success" if success else "truncated",
        ticks=60 if success else 160, inferences=1, interventions=int(fires), sources={},
        scene_digest=str(spec.seed), wall_s=0.0, recoveries=(recovery,) if fires else (),
        actions=f"{good} {arm}" if fires else f"{good}",
    )  # fmt: skip


def continued(errand: dict[str, Any]) -> EpisodeRecord:
    """Only the recovery `fetch` helps, whenever it comes."""
    helps = errand["skill"] == "fetch"
    return EpisodeRecord(
        success=helps, success_at_reset=False, reason="success" if helps else "truncated",
        ticks=50, inferences=0, interventions=0, scene_digest="", wall_s=0.0,
        sources={"recovery": 30 if errand["skill"] else 0},
        actions=f"{errand['kind']} {errand['skill']} {errand['seed']}",
    )  # fmt: skip


class Fixer:
    """Hands in the known fix, and notes what it was told."""

    name = "human"

    def __init__(self, folder: Path) -> None:
        fix = write_fix(folder)
        self._files = {path.name: path.read_text(encoding="utf-8") for path in fix.iterdir()}
        self.briefs: list[Brief] = []

    def propose(self, brief: Brief) -> Draft | NoDraft:
        self.briefs.append(brief)
        return Draft(NAME, self._files, "what was held slips out")


def manifest(**changes: Any) -> Manifest:
    values: dict[str, Any] = {
        "sim": "toy", "suite": "toy_pick", "tasks": (0, 1), "policy": POLICY, "bundle": "none",
        "bundle_digest": "", "author": "human", "generations": 1, "rollouts": 1,
        "plan": PLAN.digest, "sensing": "oracle", "render_profile": "toy-fast",
        "key": manifest_key(["test"]),
    }  # fmt: skip
    return Manifest(**{**values, **changes})


def campaign_of(
    folder: Path, author: Author, factory: Callable[[], Drawn] = Drawn,
    tell: Callable[[str], None] = lambda text: None, plan: GatePlan = PLAN, **changes: Any,
) -> CampaignResult:  # fmt: skip
    campaign = Campaign(folder, manifest(plan=plan.digest, **changes))
    with closing(
        Rollouts(folder, campaign.manifest.digest, None, lambda *_: None, factory)
    ) as rollouts:
        world = SimWorld(BASE, folder, rollouts, 20.0)
        return run_campaign(Setting(campaign, plan, world, author, tell))


def contents(folder: Path) -> dict[str, Any]:
    """Return every stage's content without what it cost, which no two runs share."""
    found = {}
    for path in (folder / "000" / f"{stage}.json" for stage in STAGES):
        if not path.exists():
            continue
        text = json.loads(path.read_text(encoding="utf-8"))["content"]
        text.pop("cost", None)
        found[path.stem] = without_times(text)
    return found


def without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {k: without_times(v) for k, v in content.items() if k != "critic_p99_s"}
    return [without_times(each) for each in content] if isinstance(content, list) else content


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CampaignResult, Fixer]:
    folder = tmp_path_factory.mktemp("whole")
    author = Fixer(tmp_path_factory.mktemp("fix"))
    return folder, campaign_of(folder, author), author


def test_a_fix_is_promoted_and_every_stage_leaves_a_record(
    whole: tuple[Path, CampaignResult, Fixer],
) -> None:
    folder, result, _ = whole
    assert result.promoted == 1
    assert set(contents(folder)) == set(STAGES)
    report = contents(folder)["report"]
    assert [arm["arm"] for arm in report["arms"]] == ["parent", "candidate", "sham", "random"]
    assert report["gain_low"] > 0.0


def test_a_promoted_skill_goes_into_a_library_with_its_proof(
    whole: tuple[Path, CampaignResult, Fixer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(SystemExit) as left:
        main(["skills", "promote", str(whole[0])])
    assert not left.value.code
    said = capfd.readouterr()
    assert f"promote {NAME}" in said.out
    assert f"{NAME} is proven" in said.err


def test_an_author_sees_neither_scenes_nor_seeds_nor_truth_nor_held_out_episodes(
    whole: tuple[Path, CampaignResult, Fixer],
) -> None:
    folder, _, author = whole
    brief = author.briefs[0]
    episodes = contents(folder)["development"]["episodes"]
    shown = {each.name for each in (*brief.failures, *brief.other_failures, *brief.successes)}
    assert 0 < len(shown) <= len(episodes) / 2 + 1
    text = repr(brief)
    for each in episodes:
        assert str(each["trial"]["scene"]) not in text
        assert each["scene_digest"] not in text


def test_a_campaign_killed_at_every_stage_ends_with_the_same_records(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder, author = tmp_path / "killed", Fixer(tmp_path / "fix")
    Drawn.ran.clear()
    dead: set[str] = set()

    def tell(text: str) -> None:
        if text not in dead:
            dead.add(text)
            raise Killed

    for _ in STAGES:
        with pytest.raises(Killed):
            campaign_of(folder, author, tell=tell)
    assert campaign_of(folder, author, tell=tell).promoted == 1
    assert contents(folder) == contents(whole[0])
    assert max(Drawn.ran.values()) == 1, "an episode that was finished was run again"


def test_a_campaign_killed_in_mid_rollout_loses_nothing(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder, author = tmp_path / "killed", Fixer(tmp_path / "fix")
    Drawn.ran.clear()
    kills = 0
    for _ in range(40):
        try:
            campaign_of(folder, author, lambda: Drawn(lambda count: count > 25))
            break
        except Killed:
            kills += 1
    assert kills > 5
    assert contents(folder) == contents(whole[0])
    assert max(Drawn.ran.values()) == 1


def test_a_finished_campaign_is_read_again_when_its_budget_is_used_up(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder = tmp_path / "campaign"
    shutil.copytree(whole[0], folder)
    assert campaign_of(folder, Fixer(tmp_path / "fix")).promoted == 1


def test_a_sealed_campaign_does_not_change(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="sealed with another tasks"):
        campaign_of(whole[0], Fixer(tmp_path / "fix"), tasks=(0,))


class Silent(Fixer):
    """Has nothing to say."""

    def propose(self, brief: Brief) -> Draft | NoDraft:
        return NoDraft("nothing pays")


def up_to_branches(whole: Path, folder: Path) -> Path:
    """Return a copy of a campaign that knows its failures and has no candidate yet."""
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "000" / "candidate")
    for stage in STAGES[STAGES.index("candidate") :]:
        (folder / "000" / f"{stage}.json").unlink()
    return folder


def test_an_author_without_an_idea_ends_the_generation_and_spends_no_risk(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder = up_to_branches(whole[0], tmp_path / "campaign")
    result = campaign_of(folder, Silent(tmp_path / "fix"))
    assert result.promoted == 0
    assert "nothing pays" in result.generations[0].verdict.reason
    assert result.generations[0].ledger.alpha_spent == 0.0


class Meddling(Drawn):
    """A runtime whose critics change what the policy does although nobody acts upon them."""

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        record = super().run(spec, watch)
        held_back = spec.options.get("shadow") == "yes"
        return replace(record, actions="others") if held_back else record


def test_critics_that_change_anything_by_watching_end_the_campaign(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder = up_to_branches(whole[0], tmp_path / "campaign")
    shutil.rmtree(folder / "rollouts")
    with pytest.raises(GateError, match="critics alone change"):
        campaign_of(folder, Fixer(tmp_path / "fix"), Meddling)


def test_pass_k_is_asked_for_when_everything_else_passed(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    plan = replace(PLAN, reliability=ReliabilityPlan(k=2, scenes=6, runs=4))
    result = campaign_of(tmp_path, Fixer(tmp_path / "fix"), plan=plan)
    stages = [each.stage for each in result.generations[0].verdict.stages]
    assert stages[-1] == "pass_k"
    repeated = contents(tmp_path)["controls"]["evidence"]["repetitions"]
    assert [each["runs"] for each in repeated] == [4] * 6
    assert sum(each["candidate"] for each in repeated) > sum(each["baseline"] for each in repeated)
    assert contents(whole[0])["controls"]["evidence"]["repetitions"] == []
    assert plan.rollouts == PLAN.rollouts + 48


class Worthless(Fixer):
    """Hands in a skill that never fires."""

    def propose(self, brief: Brief) -> Draft | NoDraft:
        files = dict(self._files)
        files["critic.py"] = files["critic.py"].replace("w.holding > 0.5", "w.holding > 1.5")
        return Draft(NAME, files, "worthless")


def test_a_candidate_that_never_fires_ends_in_the_shadow(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder = up_to_branches(whole[0], tmp_path / "campaign")
    result = campaign_of(folder, Worthless(tmp_path / "fix"))
    assert "shadow replay" in result.generations[0].verdict.reason


def test_a_campaign_broken_off_before_it_was_sealed_goes_on_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "001-probe.log").touch()
    _refuse_other_things(tmp_path)

    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ConfigError, match=r"holds 'thesis\.tex' and no campaign"):
        _refuse_other_things(tmp_path)


def test_authors_are_found_by_name(tmp_path: Path) -> None:
    assert find_author("search", "", "", None).name == "search"
    assert find_author("sham", "", "", None).name == "sham"
    assert find_author("human", "", "", tmp_path).name == "human"
    assert find_author("llm", "model", "http://127.0.0.1:1/v1", None).name == "llm"
    for name, said in (("serach", "search"), ("human", "--drafts"), ("llm", "model's name")):
        with pytest.raises(ConfigError, match=said):
            find_author(name, "", "", None)


def test_a_sham_keeps_the_critic_and_does_nothing(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    folder = up_to_branches(whole[0], tmp_path / "campaign")
    inner = Fixer(tmp_path / "fix")
    result = campaign_of(folder, ShamAuthor(inner))
    written = contents(folder)["candidate"]["files"]
    assert written["critic.py"] == inner._files["critic.py"]
    assert "grasp" not in written["recovery.py"]
    assert contents(folder)["screen"]["result"]["passed"]
    assert len(result.generations) == 1


def test_equal_episodes_are_taken_from_another_campaign(
    whole: tuple[Path, CampaignResult, Fixer], tmp_path: Path
) -> None:
    campaign = Campaign(tmp_path / "other", manifest(author="other"))
    Drawn.ran.clear()
    with closing(
        Rollouts(
            tmp_path / "other", campaign.manifest.digest, None, lambda *_: None,
            lambda: Drawn(lambda count: True), whole[0],
        )
    ) as rollouts:  # fmt: skip
        world = SimWorld(BASE, tmp_path / "other", rollouts, 20.0)
        run_campaign(Setting(campaign, PLAN, world, Silent(tmp_path / "fix")))
    theirs, ours = contents(whole[0]), contents(tmp_path / "other")
    for stage in ("development", "diagnosis", "branches"):
        assert ours[stage] == theirs[stage]
