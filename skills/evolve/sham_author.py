"""The author `sham`, a control of the whole pipeline: the critics of another author, and no help.

Its recovery stands still for a moment and lets the policy begin anew. A pipeline that promotes it
rewards a fresh sample, or luck.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.skills.evolve.authors import Author, Brief, Draft, NoDraft
from zetta.skills.evolve.skill_texts import parameters_text
from zetta.skills.package_files import PARAMETERS, RECOVERY, REPLAY

PAUSE: Final = Parameter("sham_pause", 0.2, 0.1, 1.0, "s", "How long to stand still.")
_STANDS: Final = '''"""Stand still for a moment; the policy begins anew."""


def precondition(w, p):
    return now(w.policy_drives) > 0.5


def recover(robot, w, p):
    yield from robot.hold(p.sham_pause)


def reentry(w, p):
    return now(w.ee_speed) < 0.1
'''


class ShamAuthor:
    """Takes the help out of what another author wrote."""

    name = "sham"

    def __init__(self, inner: Author) -> None:
        """`inner` writes the critic."""
        self._inner = inner

    def propose(self, brief: Brief) -> Draft | NoDraft:
        """Return the other author's draft with a recovery that does nothing.

        Raises:
            InfraError: see the other author.
        """
        draft = self._inner.propose(brief)
        if isinstance(draft, NoDraft):
            return draft
        # Its replay windows hold what the other recovery reads.
        kept = {p: text for p, text in draft.files.items() if not p.startswith(f"{REPLAY}/")}
        numbers = kept[PARAMETERS] + "\n" + parameters_text([PAUSE])
        return replace(
            draft,
            files={**kept, RECOVERY: _STANDS, PARAMETERS: numbers},
            hypothesis=f"a sham of: {draft.hypothesis}",
        )
