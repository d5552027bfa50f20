"""What workers of a campaign run: plain episodes, logged ones with snapshots, and branches."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from zetta.runtime.action_digest import ActionDigest
from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.branching import BranchFactory
from zetta.runtime.cli.episodes import AssembledEpisodes, Seen
from zetta.runtime.core import EndReason, RunSpec
from zetta.runtime.episode_log import read_episode
from zetta.runtime.errors import InfraError
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity, Watch, record_of
from zetta.runtime.snapshot_ring import SnapshotRing, run_with_snapshots
from zetta.runtime.snapshots import EpisodeSnapshot
from zetta.skills.evolve.branches import Change, ChangeKind, branch
from zetta.skills.evolve.failure_evidence import write_strip_around

FACTORY: Final = "zetta.runtime.cli.evolve_episodes:evolving_episodes"
ERRAND: Final = "errand"
"""The option of a `RunSpec` that carries an `Errand` to a worker; it never reaches an episode."""
SNAPSHOTS: Final = "snapshots"
"""Folder in the log of a failure."""
RECOVERY: Final = "recovery"
"""Source under which the record of a branch counts the ticks of its recovery."""


@dataclass(frozen=True, slots=True)
class Errand:
    """What a campaign wants beside an episode's outcome."""

    log: str = ""
    """Write the episode's log into this folder, with snapshots when it fails."""
    snapshot: str = ""
    """Continue from this file instead of beginning."""
    at: int = 0
    """Tick of the change."""
    kind: ChangeKind = "unchanged"
    skill: str = ""
    bundle: str = ""
    """Folder that holds `skill`."""
    seed: int = 0
    """Of the policy, from the change on."""
    strip: str = ""
    """Run nothing: draw `log` again into this PNG, around the tick `at`; all of it if negative."""


def sent_on(spec: RunSpec, errand: Errand) -> RunSpec:
    """Return a spec that carries an errand to a worker."""
    return replace(spec, options={**spec.options, ERRAND: json.dumps(asdict(errand))})


def evolving_episodes() -> EvolvingEpisodes:
    """Return the factory of this process."""
    return EvolvingEpisodes()


class EvolvingEpisodes:
    """Runs specs with their errands."""

    def __init__(self) -> None:
        self._assembler = Assembler()
        self._plain = AssembledEpisodes(self._assembler)

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        """Say what specs would run; see `AssembledEpisodes.identify`."""
        return self._plain.identify(specs)

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        """Run one episode, or continue one.

        Raises:
            ZettaError: whatever a part could not do.
        """
        options = dict(spec.options)
        text = options.pop(ERRAND, "")
        spec = replace(spec, options=options)
        errand = Errand(**json.loads(text)) if text else Errand()
        if errand.strip:
            return self._drawn(spec, errand, watch)
        if errand.snapshot:
            return self._continued(spec, errand, watch)
        return self._logged(spec, errand, watch) if errand.log else self._plain.run(spec, watch)

    def close(self) -> None:
        """Close the environment and the policies."""
        self._plain.close()

    def _logged(self, spec: RunSpec, errand: Errand, watch: Watch) -> EpisodeRecord:
        log = Path(errand.log)
        shutil.rmtree(log, ignore_errors=True)  # what a killed run left
        seen, done, ring = Seen(watch), ActionDigest(), SnapshotRing()
        watch.phase(f"{spec.suite}/{spec.task} seed {spec.seed}")
        episode = self._assembler.assemble(spec, log, [seen, done]).episode
        result = run_with_snapshots(episode, ring)
        if not result.success:
            _write_snapshots(log / SNAPSHOTS, ring)
        return record_of(result, seen.dispersion(), seen.predicates(), done.text)

    def _drawn(self, spec: RunSpec, errand: Errand, watch: Watch) -> EpisodeRecord:
        watch.phase(f"{spec.suite}/{spec.task} drawing {errand.log}")
        logged = read_episode(Path(errand.log))
        env = self._assembler.assemble(spec).env
        env.reset(logged.header.scene)
        tick = None if errand.at < 0 else errand.at
        write_strip_around(Path(errand.strip), env, logged, tick)
        return record_of(logged.header.result)

    def _continued(self, spec: RunSpec, errand: Errand, watch: Watch) -> EpisodeRecord:
        watch.phase(
            f"{spec.suite}/{spec.task} branch at {errand.at}: {errand.skill or errand.kind}"
        )
        watch.tick(errand.at)
        start = time.perf_counter()
        snapshot = EpisodeSnapshot.from_bytes(Path(errand.snapshot).read_bytes())
        factory = BranchFactory(self._assembler, spec, errand.bundle)
        change = Change(errand.kind, errand.skill)
        run = branch(snapshot, change, [errand.seed], factory, errand.at)[0]
        if run.success is None:
            raise InfraError(run.error)
        reason: EndReason = "success" if run.success else "truncated"
        return EpisodeRecord(
            success=run.success,
            success_at_reset=False,
            reason=reason,
            ticks=run.ticks,
            inferences=0,
            interventions=int(run.recovery_ticks > 0),
            sources={RECOVERY: run.recovery_ticks},
            scene_digest=snapshot.scene_digest,
            wall_s=time.perf_counter() - start,
            actions=run.trace,
        )


def snapshot_before(log: Path, tick: int) -> Path | None:
    """Return the file of the latest snapshot at or before a tick of a logged failure."""
    kept = sorted((log / SNAPSHOTS).glob("*.msgpack"))
    fitting = [path for path in kept if int(path.stem) <= tick]
    return fitting[-1] if fitting else None


def _write_snapshots(folder: Path, ring: SnapshotRing) -> None:
    folder.mkdir(parents=True)
    for snapshot in ring.kept:
        (folder / f"{snapshot.tick:05d}.msgpack").write_bytes(snapshot.to_bytes())
