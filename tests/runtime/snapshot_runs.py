"""Running episodes and comparing their continuations with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick
from zetta.runtime.loop import Episode
from zetta.runtime.snapshots import EpisodeSnapshot


@dataclass(slots=True)
class Diary:
    """A sink that keeps every tick as text and bytes, to the last bit."""

    ticks: list[tuple[object, ...]] = field(default_factory=list)
    result: EpisodeResult | None = None

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        pass

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        signals = {name: float(value).hex() for name, value in tick.signals.items()}
        said = (tick.index, tick.source, tick.action.tobytes(), repr(tick.verdicts), signals)
        where = b"" if pose is None else pose.tobytes()
        self.ticks.append((*said, where, step.success, repr(step.proprio)))

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        self.result = result


def outcome(result: EpisodeResult | None) -> tuple[object, ...]:
    """Return all of a result that does not depend on the wall clock."""
    assert result is not None
    return (
        result.success, result.reason, result.ticks, dict(result.sources), result.interventions,
        result.inferences, result.scene_digest, result.success_at_reset, result.recoveries,
    )  # fmt: skip


def go_on(episode: Episode, snapshot: EpisodeSnapshot, most: int = 10_000) -> None:
    """Restore a snapshot that has crossed a wire, check it, and run at most so many ticks."""
    with episode:
        episode.restore(EpisodeSnapshot.from_bytes(snapshot.to_bytes()))
        assert episode.snapshot().digest == snapshot.digest
        while episode.result is None and episode.index < snapshot.tick + most:
            episode.tick()
