"""A sink that keeps what was done as one hash: equal hashes are one and the same run."""

from __future__ import annotations

import hashlib

from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick


class ActionDigest:
    """SHA-256 of all actions of an episode, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    @property
    def text(self) -> str:
        """The hash so far, hexadecimal."""
        return self._hash.hexdigest()

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Nothing to keep."""

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Take the tick's action in."""
        self._hash.update(tick.action.tobytes())

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Nothing to keep."""
