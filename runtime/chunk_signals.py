"""The signals of an episode whose critics read none: what the policy says with its chunk."""

from __future__ import annotations

import math
from collections.abc import Mapping

from zetta.runtime.core import Action, ActionChunk, Proprio, Scene
from zetta.runtime.snapshots import Stateless


class ChunkSignals:
    """A signal source that knows only what the policy says about its own chunk."""

    def begin(self, scene: Scene) -> None:
        """Need nothing."""

    def update(
        self,
        index: int,
        proprio: Proprio,
        action: Action | None,
        chunk: ActionChunk | None,
        driving: str,
    ) -> Mapping[str, float]:
        """Return the pending chunk's `dispersion` in metres, where the policy has that notion."""
        if chunk is None or math.isnan(chunk.dispersion):
            return {}
        return {"dispersion": chunk.dispersion}

    def state(self) -> Stateless:
        """Return that nothing is remembered."""
        return Stateless()

    def restore(self, state: Stateless) -> None:
        """Need nothing."""
