"""What the help of the commands of `zetta skills` says beyond their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from zetta.runtime.cli.pages import Page

SKILL_PAGES: Final[Mapping[str, Page]] = {
    "skills list": Page(
        "Use it to see what can be deployed with --bundle.",
        ("zetta skills list", "zetta skills list --skills my-skills --json"),
    ),
    "skills show": Page(
        "Use it before a skill is trusted: its programs are short and are printed whole.",
        ("zetta skills show regrasp",),
    ),
    "skills check": Page(
        "Use it after every change to a package.",
        ("zetta skills check", "zetta skills check skills/my-skill"),
        {1: "a package has a problem"},
    ),
    "skills test": Page(
        "Use it after every change to a critic: each package carries windows on which it must "
        "speak or be silent.",
        ("zetta skills test", "zetta skills test regrasp --json"),
        {1: "a window is not as it must be"},
    ),
    "skills new": Page(
        "The start of a skill of your own.",
        ("zetta skills new my-skill", "zetta skills new my-skill --out packages"),
    ),
    "skills cut": Page(
        "Use it to keep a moment of an episode as a test of a critic.",
        ("zetta skills cut skills/my-skill runs/a/episodes/000 --ticks 60-120 --expect fires",),
    ),
    "skills keygen": Page(
        "Needed once, before skills are signed.",
        ("zetta skills keygen",),
    ),
    "skills sign": Page(
        "An arm refuses skills that nobody signed.",
        ("zetta skills sign skills/my-skill",),
    ),
    "skills diagnose": Page(
        "Use it to know where a policy fails before a skill is written. It is for development: "
        "what it reads, no critic sees.",
        ("zetta skills diagnose runs/a --out diagnosis",),
    ),
    "skills transfer": Page(
        "Use it before a skill is deployed in a place that it was not made for.",
        ("zetta skills transfer regrasp --sim toy --to toy_slip:0-3 --scenes 20",),
    ),
    "skills prune": Page(
        "Use it when a library has grown: what does not help, costs.",
        ("zetta skills prune starter --sim toy --suite toy_slip --scenes 40",),
    ),
    "skills distill": Page(
        "Use it to take skills to another machine, or to turn a good drive into a skill.",
        ("zetta skills distill library --out deployed",),
    ),
    "skills promote": Page(
        "Use it after `zetta evolve`. The library keeps every version, so that nothing is lost.",
        ("zetta skills promote runs/slip", "zetta skills promote skills/my-skill --sign"),
    ),
    "skills retire": Page(
        "Use it for a skill that is no longer wanted.",
        ("zetta skills retire regrasp --why 'the new policy does not drop'",),
    ),
    "skills rollback": Page(
        "Use it when a promotion was a mistake.",
        ("zetta skills rollback", "zetta skills rollback --to 3fa9 --why 'harm on task 2'"),
    ),
    "skills history": Page(
        "Use it to find the version to go back to.",
        ("zetta skills history", "zetta skills history --json"),
    ),
    "skills diff": Page(
        "Use it before a promotion, or between two versions of the library.",
        ("zetta skills diff regrasp skills/my-skill",),
    ),
    "skills quarantine": Page(
        "Use it at once when a skill does harm; nothing is deleted.",
        (
            "zetta skills quarantine regrasp --why 'knocked a bowl over'",
            "zetta skills quarantine --from results/mine",
        ),
    ),
    "skills release": Page(
        "Use it when the reason of a quarantine is gone.",
        ("zetta skills release regrasp --why 'mended in 1.2'",),
    ),
}
