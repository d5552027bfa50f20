"""Every verified success of an agent may become a demonstration for the next one."""

from __future__ import annotations

from pathlib import Path

from zetta.primitives.agent.cockpit import TurnRecord, View
from zetta.primitives.agent.demonstration_writing import DrivenTurn, Origin, write_demonstration
from zetta.primitives.agent.demonstrations import SceneKey
from zetta.primitives.agent.drive import Drive
from zetta.runtime.cli import output
from zetta.runtime.core import Array, EnvSpec, EpisodeResult, Scene, Step, Tick
from zetta.runtime.errors import ZettaError


class DemonstrationSaver:
    """Keeps the turns of a drive and writes them down when the evidence says that it worked.

    Attributes:
        drive: the one that is driven; set before the episode begins.
    """

    def __init__(self, folder: Path, agent: str, versions: tuple[tuple[str, str], ...]) -> None:
        """`folder` gets a folder for each success; `agent` and `versions` are written into it."""
        self.drive: Drive | None = None
        self._folder, self._agent, self._versions = folder, agent, versions
        self._turns: list[DrivenTurn] = []
        self._scene: Scene | None = None
        self._instruction = ""

    def keep(self, record: TurnRecord, view: View) -> None:
        """Keep a turn with its pictures."""
        driven = DrivenTurn.of(
            record.state, view.pictures, record.answer, record.results, record.refusals
        )
        self._turns.append(driven)

    def begin(self, scene: Scene, spec: EnvSpec, instruction: str, step: Step) -> None:
        """Forget the last episode."""
        self._turns.clear()
        self._scene, self._instruction = scene, instruction

    def tick(self, tick: Tick, step: Step, pose: Array | None) -> None:
        """Need nothing: turns are kept, not ticks."""

    def end(self, result: EpisodeResult, pose: Array | None) -> None:
        """Write the demonstration; what keeps it from being written costs the episode nothing."""
        judged = None if self.drive is None else self.drive.verification
        if judged is None or not judged.verified or self._scene is None:
            return
        evidence = "; ".join(finding.reason for finding in judged.findings)
        origin = Origin(
            self._instruction,
            SceneKey.of(self._scene),
            True,
            f"cameras, depth and gripper: {evidence}",
            self._agent,
            self._versions,
        )
        place = self._place(self._scene)
        if place.exists():
            output.note(f"no demonstration of this episode: {place} holds one of this scene")
            return
        try:
            written = write_demonstration(place, self._turns, origin)
        except ZettaError as error:
            output.note(f"no demonstration of this episode: {error}")
            return
        output.note(f"demonstration: {written.folder}")

    def _place(self, scene: Scene) -> Path:
        """Return the folder of the scene: one demonstration of it is enough."""
        name = f"{scene.task.suite}-{scene.task.index}-{scene.layout}-{scene.seed}"
        return self._folder / name
