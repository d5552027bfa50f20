"""Snapshots of an episode as it runs, within a bound of memory."""

from __future__ import annotations

from collections import deque

from zetta.runtime.core import EpisodeResult
from zetta.runtime.errors import ConfigError
from zetta.runtime.loop import POLICY, Episode
from zetta.runtime.snapshots import EpisodeSnapshot


class SnapshotRing:
    """The latest snapshots of one episode, one every so many ticks.

    At most `most` are kept, and at most `most_bytes` of their large parts; the oldest go first.
    With the defaults a LIBERO episode of 520 ticks is covered from its first tick to its last.
    """

    def __init__(self, every: int = 10, most: int = 64, most_bytes: int = 32 * 2**20) -> None:
        """Keep nothing yet.

        Args:
            every: ticks between two snapshots.
            most: snapshots that are kept.
            most_bytes: bytes that they may take together; one is always kept.

        Raises:
            ConfigError: a number below 1.
        """
        if min(every, most, most_bytes) < 1:
            raise ConfigError(
                f"got every {every}, most {most}, most_bytes {most_bytes}; each is at least 1"
            )
        self._every, self._most, self._most_bytes = every, most, most_bytes
        self._kept: deque[EpisodeSnapshot] = deque()
        self._bytes = 0
        self._due = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._bytes

    @property
    def kept(self) -> tuple[EpisodeSnapshot, ...]:
        """Those that are kept, the oldest first."""
        return tuple(self._kept)

    def offer(self, episode: Episode) -> None:
        """Take a snapshot if one is due. Called between ticks; while a skill drives it waits.

        Raises:
            ConfigError: the episode cannot be copied.
        """
        if episode.index < self._due or episode.source != POLICY:
            return
        snapshot = episode.snapshot()
        self._due = snapshot.tick + self._every
        self._kept.append(snapshot)
        self._bytes += snapshot.size
        while len(self._kept) > 1 and (
            len(self._kept) > self._most or self._bytes > self._most_bytes
        ):
            self._bytes -= self._kept.popleft().size

    def before(self, tick: int) -> EpisodeSnapshot:
        """Return the latest snapshot from which `tick` is still to come.

        Raises:
            ConfigError: none that early is kept.
        """
        fitting = [kept for kept in self._kept if kept.tick <= tick]
        if not fitting:
            first = (
                f"the earliest one kept is of tick {self._kept[0].tick}"
                if self._kept
                else ("none was taken")
            )
            raise ConfigError(
                f"there is no snapshot at or before tick {tick}: {first}; keep more of them"
            )
        return fitting[-1]


def run_with_snapshots(episode: Episode, ring: SnapshotRing) -> EpisodeResult:
    """Run an episode to its end, as `Episode.run` does, and fill `ring` on the way.

    Raises:
        ConfigError: the episode cannot be copied.
        ZettaError: whatever a part could not do.
    """
    with episode:
        episode.begin()
        while episode.result is None:
            ring.offer(episode)
            episode.tick()
    return episode.result
