"""Episodes for branch replay, put together again for each continuation."""

from __future__ import annotations

from collections.abc import Sequence

from zetta.runtime.cli.assemble import Assembler
from zetta.runtime.cli.deploy import Candidate
from zetta.runtime.core import EpisodeSink, RunSpec
from zetta.runtime.skill_arbiter import SkillArbiter
from zetta.skills.evolve.branches import Prepared


class BranchFactory:
    """Makes the episode of one `RunSpec`, with skills of `bundle` that can be ordered.

    `spec` is the one that the snapshot was taken under, with the option signals set to 'yes'.
    """

    def __init__(self, assembler: Assembler, spec: RunSpec, bundle: str) -> None:
        self._assembler, self._spec, self._bundle = assembler, spec, bundle

    def __call__(self, skill: str, sinks: Sequence[EpisodeSink]) -> Prepared:
        """Return an episode that has not begun; `skill` is to be ordered, if it is named.

        Raises:
            ConfigError, SpecMismatch, InfraError: see `Assembler.assemble`.
        """
        candidate = Candidate(self._bundle, skill) if skill else None
        made = self._assembler.assemble(self._spec, sinks=sinks, candidate=candidate)
        arbiter = made.arbiter if isinstance(made.arbiter, SkillArbiter) else None
        return Prepared(made.episode, arbiter)
