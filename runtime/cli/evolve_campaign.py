"""`zetta evolve --sim …`: a whole campaign, from failures to promoted skills."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from zetta.runtime.cli import output
from zetta.runtime.cli.assemble import find_scene, find_simulator
from zetta.runtime.cli.at_home import judged_here
from zetta.runtime.cli.deploy import bundle_digest
from zetta.runtime.cli.evaluation_request import default_policy
from zetta.runtime.cli.evolve_episodes import EvolvingEpisodes
from zetta.runtime.cli.evolve_report import keep_report, report_of
from zetta.runtime.cli.evolve_rollouts import WORKER_LOGS, Rollouts, workers_of
from zetta.runtime.cli.evolve_strips import keep_strips, strips_of
from zetta.runtime.cli.evolve_world import SHOWN, SimWorld
from zetta.runtime.cli.options import EXPERT, check_options
from zetta.runtime.cli.run_plan import meant_tasks
from zetta.runtime.core import RunSpec, Sampled, Sensing
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.records import to_json
from zetta.runtime.reporting.wording import counted
from zetta.runtime.rollouts.factory import Identity
from zetta.runtime.rollouts.pool import Pool, PoolSettings
from zetta.skills.bundles import NO_BUNDLE
from zetta.skills.evolve.authors import Author
from zetta.skills.evolve.campaign import MANIFEST, Campaign, Manifest, manifest_key, read_manifest
from zetta.skills.evolve.campaign_run import CampaignResult, run_campaign
from zetta.skills.evolve.generation import Setting
from zetta.skills.evolve.generation_records import Judged
from zetta.skills.evolve.human_author import HumanAuthor
from zetta.skills.evolve.plans import Budget, GatePlan, ReliabilityPlan, keep_plan, plan_gate
from zetta.skills.evolve.sham_author import ShamAuthor

BATCH: Final = 8
AUTHORS: Final = ("search", "llm", "human", "sham")


@dataclass(frozen=True, slots=True)
class Wish:
    """A campaign as it was asked for."""

    sim: str
    suite: str
    tasks: str
    policy: str
    author: str
    generations: int
    budget: int | None
    bundle: str
    sensing: str
    render: str
    options: dict[str, str]
    seed: str
    workers: int
    development: int
    search: int
    batch: int = BATCH
    branch_seeds: int = 1
    pass_k: int | None = None
    model: str = ""
    """Of the author llm."""

    @property
    def writer(self) -> str:
        """The author, with the model where there is one."""
        return f"{self.author} {self.model}".strip()


def evolve(
    wish: Wish, author: Author, out: Path | None, reuse: Path | None = None, strips: bool = True
) -> tuple[CampaignResult, Path, Manifest]:
    """Run a campaign, or go on with the one in `out`; its report has pictures if `strips`.

    Raises:
        ConfigError: something does not exist, or `out` holds another campaign.
        GateError, InfraError: see `run_campaign`.
    """
    tasks = _tasks(wish)
    base = _base(wish, tasks)
    plan = plan_gate(
        budget=Budget(development=wish.development, search=wish.search),
        reliability=None if wish.pass_k is None else ReliabilityPlan(wish.pass_k),
    )
    folder = output.run_folder("evolve", out, resume=True)
    _refuse_other_things(folder)
    pool = workers_of(wish.sim, wish.workers, folder)
    # With signals, as its episodes have them: what has no ticks for those is refused for that.
    identity = _identify(replace(base, options={**base.options, **SHOWN}), pool)
    manifest = _manifest(wish, base, tasks, plan, identity, folder)
    if reuse is not None:
        _check_reusable(reuse, manifest)
    campaign = Campaign(folder.resolve(), manifest)
    keep_plan(campaign.folder, plan)
    total = manifest.rollouts
    output.note(
        f"{wish.suite}, {counted(len(tasks), 'task')}, {wish.policy}, author {author.name}: "
        f"at most {plan.rollouts} rollouts a generation and {total} in all"
    )
    with _told(total) as told, closing(_rollouts(campaign, pool, told, reuse)) as rollouts:
        hz = float(identity.conventions["control_hz"])
        world = SimWorld(base, campaign.folder, rollouts, hz)
        setting = Setting(
            campaign, plan, world, author, told.stage, wish.batch, wish.branch_seeds,
            output.command_line(), _pictures(author, campaign.folder, pool),
        )  # fmt: skip

        known = {n for n in range(wish.generations) if campaign.has(n, "verdict")}

        def after(number: int, judged: Judged) -> None:
            if number not in known and number + 1 < wish.generations:  # the answer tells the rest
                _after(number, judged)
            if strips:
                keep_strips(campaign.folder, pool, world)
            keep_report(campaign.folder)

        try:
            result = run_campaign(setting, after)
        except KeyboardInterrupt:
            output.note(f"what was run is kept; the same command with --out {folder} goes on")
            raise
        finally:  # also of a generation that a gate or the machinery stopped
            keep_report(campaign.folder)
    return result, campaign.folder, manifest


def answer_of(result: CampaignResult, folder: Path, manifest: Manifest) -> dict[str, output.Json]:
    """Return what `--json` prints."""
    return {
        "promoted": result.promoted,
        "bundle": result.bundle,
        "stopped": result.stopped,
        "generations": [
            {
                "decision": each.verdict.decision,
                "reason": each.verdict.reason,
                "counts": asdict(each.verdict.counts),
            }
            for each in result.generations
        ],
        "manifest": to_json(manifest),
        "out": str(folder),
        "report": report_of(folder),
    }


# ------------------------------------------------------------------------------ parts


class _Told:
    """The progress of a campaign: rollouts of all that are forecast."""

    def __init__(self, advance: output.Advance, total: int) -> None:
        self._advance, self._total = advance, total
        self._stage = ""
        self.spent: Callable[[], int] = lambda: 0

    def stage(self, text: str) -> None:
        self._stage = text
        output.note(text)

    def __call__(self, done: int, total: int, what: str) -> None:
        count = min(self.spent(), self._total)
        self._advance(count, f"{self._stage} {done}/{total} {what}")


@contextmanager
def _told(total: int) -> Iterator[_Told]:
    with output.progress("campaign", total) as advance:
        yield _Told(advance, total)


def _rollouts(
    campaign: Campaign, pool: PoolSettings | None, told: _Told, reuse: Path | None
) -> Rollouts:
    rollouts = Rollouts(campaign.folder, campaign.manifest.digest, pool, told, reuse=reuse)
    told.spent = lambda: rollouts.spent.rollouts
    return rollouts


def _pictures(
    author: Author, folder: Path, pool: PoolSettings | None
) -> Callable[[int], Sequence[Path]]:
    """Return what draws strips of failures: for the one author that looks at pictures."""
    if author.name != "llm":
        return lambda number: ()
    return lambda number: strips_of(folder, number, pool)


def _after(number: int, judged: Judged) -> None:
    verdict = judged.verdict
    output.note(f"generation {number}: {verdict.decision} - {verdict.reason}")


def _tasks(wish: Wish) -> tuple[int, ...]:
    simulator = find_simulator(wish.sim)
    if wish.suite not in simulator.suites():
        find_scene(simulator, RunSpec(wish.sim, wish.suite, 0, Sampled()))  # says what there is
        raise ConfigError(f"{wish.sim} has no suite {wish.suite!r}")
    return meant_tasks(wish.tasks or "all", simulator, wish.suite)


def _base(wish: Wish, tasks: tuple[int, ...]) -> RunSpec:
    if wish.policy == EXPERT:
        raise ConfigError(f"{EXPERT} is no policy to be improved; name another one with --policy")
    sensing: Sensing = wish.sensing  # type: ignore[assignment]  # checked by check_options
    spec = RunSpec(
        wish.sim, wish.suite, tasks[0], Sampled(), policy=wish.policy, bundle=wish.bundle,
        sensing=sensing, render=wish.render, options=wish.options,
    )  # fmt: skip
    spec = judged_here(spec)
    check_options(spec)
    for task in tasks:
        find_scene(find_simulator(wish.sim), replace(spec, task=task))
    return spec


def _identify(base: RunSpec, pool: PoolSettings | None) -> Identity:
    if pool is None:
        with closing(EvolvingEpisodes()) as here:
            return here.identify([base])
    output.note("a worker checks the simulator and the policy")
    with Pool(pool) as workers:
        return workers.identify([base])


def _manifest(
    wish: Wish,
    base: RunSpec,
    tasks: tuple[int, ...],
    plan: GatePlan,
    identity: Identity,
    folder: Path,
) -> Manifest:
    known = read_manifest(folder) if (folder / MANIFEST).exists() else None
    key = manifest_key([wish.seed]) if wish.seed else secrets.token_hex(32)
    if known is not None and not wish.seed:
        key = known.key
    return Manifest(
        sim=wish.sim,
        suite=wish.suite,
        tasks=tasks,
        policy=f"{wish.policy} {identity.policies[base.policy]}".strip(),
        bundle=wish.bundle,
        bundle_digest="" if wish.bundle == NO_BUNDLE else bundle_digest(base),
        author=wish.writer,
        generations=wish.generations,
        rollouts=wish.budget or plan.rollouts * wish.generations,
        plan=plan.digest,
        sensing=base.sensing,
        render_profile=identity.render_profiles[base.render],
        key=key,
        versions=identity.versions,
        options=_sealed_options(wish, base),
    )


def _sealed_options(wish: Wish, base: RunSpec) -> dict[str, str]:
    """Return the options of every episode, and what else decides what is tried."""
    more = {} if wish.branch_seeds == 1 else {"branch_seeds": str(wish.branch_seeds)}
    return {**base.options, **more}


def _refuse_other_things(folder: Path) -> None:
    """Refuse a folder that holds something and no campaign.

    One that was broken off before it was sealed has left the logs of its workers.
    """
    if (folder / MANIFEST).exists():
        return
    ours = {output.LOCK_NAME, WORKER_LOGS}
    other = sorted(path.name for path in folder.iterdir() if path.name not in ours)
    if other:
        raise ConfigError(
            f"{folder} holds {other[0]!r} and no campaign; choose a new folder with --out"
        )


def _check_reusable(reuse: Path, manifest: Manifest) -> None:
    other = read_manifest(reuse)
    for name in ("sim", "policy", "sensing", "render_profile", "versions", "options"):
        theirs, ours = getattr(other, name), getattr(manifest, name)
        if to_json(theirs) != to_json(ours):
            raise ConfigError(
                f"{reuse} was run with another {name} ({theirs}, now {ours}); its episodes are "
                "others; leave --reuse out"
            )


def chosen_policy(sim: str, policy: str | None) -> str:
    """Return the policy of a campaign."""
    return policy or default_policy(sim)


def find_author(name: str, model: str, base_url: str, drafts: Path | None) -> Author:
    """Return the author of a name.

    Raises:
        ConfigError: there is none, or it lacks what it needs.
    """
    if name in ("search", "sham"):
        from zetta.skills.evolve.search_author import SearchAuthor  # late: an extra

        return SearchAuthor() if name == "search" else ShamAuthor(SearchAuthor())
    if name == "llm":
        from zetta.skills.evolve.llm_author import LlmAuthor  # late: an extra

        writer = LlmAuthor(model, base_url or None)
        writer.check()  # before hundreds of rollouts
        return writer
    if name == "human":
        if drafts is None:
            raise ConfigError("the author human hands in what lies in a folder: name it (--drafts)")
        return HumanAuthor(drafts)
    raise ConfigError(f"unknown author {name!r}; {suggest(name, AUTHORS)}")
