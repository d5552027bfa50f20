"""Critics with a few open numbers: what a hand does when it fails, said once and for every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zetta.critics.parameters import Parameter
from zetta.skills.evolve.skill_texts import critic_text


@dataclass(frozen=True, slots=True)
class CriticTemplate:
    """A critic whose numbers a search may set."""

    name: str
    doc: str
    """What it watches, one sentence."""
    body: str
    """Of `check`, indented."""
    parameters: tuple[Parameter, ...]
    roles: tuple[str, ...] = ()
    """What the instruction must bind."""
    window_s: float = 2.0

    def text(self, skill: str) -> str:
        """Return `critic.py` for a skill of that name."""
        return critic_text(self.doc, skill, self.body, self.window_s)


def _seconds(name: str, default: float, low: float, high: float, doc: str) -> Parameter:
    return Parameter(name, default, low, high, "s", doc, "up")


def _metres(
    name: str, default: float, low: float, high: float, doc: str, stricter: str = ""
) -> Parameter:
    return Parameter(name, default, low, high, "m", doc, stricter)


def _rule(condition: str, reason: str, guard: str = "") -> str:
    """Return the body of a critic that fires when one condition holds."""
    head = f"    if {guard}:\n        return ok()\n" if guard else ""
    return f'{head}    if {condition}:\n        return recover("{reason}")\n    return ok()\n'


_OBJECT: Final = ("object",)
_BOTH: Final = ("object", "receptacle")

TEMPLATES: Final = (
    CriticTemplate(
        "closed-on-nothing", "The hand closed beside the object and has not got it.",
        _rule(
            "once((w.open_for > 0.0) and (w.object_offset < p.near)) and "
            "held(w.closed_on_nothing > 0.5, p.empty_for)",
            "the hand closed on nothing beside the object", "once(w.holding > 0.5, 0.2)",
        ),
        (
            _metres("near", 0.10, 0.02, 0.25, "Horizontal distance within which it tried.", "down"),
            _seconds("empty_for", 0.2, 0.0, 1.0, "How long it must have been closed on nothing."),
        ),
        _OBJECT,
    ),
    CriticTemplate(
        "left-behind", "The closed hand goes away and the object stays.",
        _rule(
            "now(w.object_offset) > p.apart and delta(w.object_offset, 0.5) > p.leaving",
            "the closed hand goes away from the object", "now(w.closed_for) < p.shut_for",
        ),
        (
            _metres("apart", 0.06, 0.02, 0.25, "Horizontal distance from the object.", "up"),
            _metres("leaving", 0.02, 0.0, 0.15, "How much further within half a second.", "up"),
            _seconds("shut_for", 0.4, 0.1, 2.0, "How long it must have been closed."),
        ),
        _OBJECT,
    ),
    CriticTemplate(
        "arrived-empty", "The hand has come to the receptacle and the object has not.",
        _rule(
            "now(w.receptacle_offset) < p.over and now(w.object_offset) > p.apart",
            "the hand is over the receptacle and the object is not in it",
            "now(w.object_to_receptacle) < p.away",
        ),
        (
            _metres("over", 0.10, 0.03, 0.25, "Distance at which the hand has arrived.", "down"),
            _metres("apart", 0.08, 0.03, 0.25, "Distance at which it has no object.", "up"),
            _metres("away", 0.10, 0.03, 0.25, "Distance at which the object is elsewhere.", "up"),
        ),
        _BOTH,
    ),
    CriticTemplate(
        "lost-hold", "What was held is held no longer, and it is not where it belongs.",
        _rule(
            "once(w.holding > 0.5, 2.0) and held(w.holding < 0.5, p.lost_for)",
            "what was held got lost on the way", "now(w.object_to_receptacle) < p.away",
        ),
        (
            _seconds("lost_for", 0.2, 0.0, 1.0, "How long nothing must have been held."),
            _metres("away", 0.10, 0.03, 0.30, "Distance at which the object is elsewhere.", "up"),
        ),
        _BOTH,
    ),
    CriticTemplate(
        "slips", "What is held slips through the fingers.",
        _rule("now(w.slip) > p.slipped", "what is held slips through the fingers"),
        (_metres("slipped", 0.005, 0.001, 0.03, "How far the fingers have closed on it.", "up"),),
    ),
    CriticTemplate(
        "thin-hold", "The fingers hold something thin: an edge, and not the object.",
        _rule(
            "held(w.holding > 0.5, p.settle) and now(w.gripper_opening) < p.thin",
            "the fingers hold an edge at most",
        ),
        (
            _seconds("settle", 0.2, 0.0, 1.0, "How long it must have been held."),
            _metres("thin", 0.01, 0.002, 0.05, "Opening below which it is thin.", "down"),
        ),
    ),
    CriticTemplate(
        "closes-elsewhere", "The hand closes where the object is not.",
        _rule(
            "held(w.command_gripper > 0.5, p.closing) and now(w.object_offset) > p.far",
            "the hand closes where the object is not", "now(w.closed_for) > 1.5",
        ),
        (
            _seconds("closing", 0.1, 0.0, 0.8, "How long it must have been told to close."),
            _metres("far", 0.05, 0.005, 0.25, "Horizontal distance from the object.", "up"),
        ),
        _OBJECT,
    ),
    CriticTemplate(
        "down-beside", "The open hand has come down beside the object.",
        _rule(
            "held((w.object_above < p.low) and (w.object_offset > p.beside), p.settle)",
            "the hand is down beside the object", "now(w.closed_for) > 0.0",
        ),
        (
            _metres("low", 0.02, -0.03, 0.10, "Height above its top at which it is down.", "down"),
            _metres("beside", 0.03, 0.005, 0.20, "Horizontal distance from the object.", "up"),
            _seconds("settle", 0.2, 0.0, 1.0, "How long it must have been there."),
        ),
        _OBJECT,
    ),
    CriticTemplate(
        "no-progress", "The hand is down at the object, which neither moves nor is held.",
        _rule(
            "held((w.object_distance < p.near) and (w.holding < 0.5), p.patience) and "
            "spread(w.object_moved, p.patience) < p.stays",
            "the hand is at the object and gets nowhere",
        ),
        (
            _metres("near", 0.10, 0.03, 0.25, "Distance at which it is at the object.", "down"),
            _seconds("patience", 1.5, 0.5, 4.0, "How long nothing must have come of it."),
            _metres("stays", 0.02, 0.005, 0.08, "An object that moves less stays.", "down"),
        ),
        _OBJECT, 4.0,
    ),
    CriticTemplate(
        "keeps-away", "The empty hand stays away from an object that is not where it belongs.",
        _rule(
            "held((w.object_offset > p.far) and (w.holding < 0.5), p.patience) and "
            "delta(w.object_offset, p.patience) > 0.0 - p.nearing",
            "the empty hand comes no nearer to the object", "now(w.object_to_receptacle) < p.away",
        ),
        (
            _metres("far", 0.10, 0.03, 0.30, "Distance at which it is away.", "up"),
            _seconds("patience", 1.0, 0.3, 4.0, "How long it must have stayed away."),
            _metres("nearing", 0.02, 0.0, 0.10, "Coming nearer by this much is a way.", "down"),
            _metres("away", 0.10, 0.03, 0.25, "Distance at which the object is elsewhere.", "up"),
        ),
        _BOTH, 4.0,
    ),
    CriticTemplate(
        "stalled", "The hand is told to move and does not.",
        _rule("now(w.stalled_for) > p.stall", "the hand is told to move and does not"),
        (_seconds("stall", 0.8, 0.2, 4.0, "How long it must have been stuck."),),
    ),
    CriticTemplate(
        "rests", "The hand stands still, as after the work.",
        _rule("held(w.ee_speed < p.still, p.rest)", "the hand stands still"),
        (
            Parameter("still", 0.02, 0.003, 0.06, "m/s", "A slower hand stands still.", "down"),
            _seconds("rest", 1.5, 0.4, 4.0, "How long it must have stood."),
        ),
        (), 4.0,
    ),
    CriticTemplate(
        "wanders", "The hand goes a long way and gets nowhere.",
        _rule(
            "now(w.path_1s) > p.way and mean(w.wander, 0.5) > p.turns",
            "the hand goes to and fro and gets nowhere",
        ),
        (
            _metres("way", 0.06, 0.01, 0.30, "Way in one second.", "up"),
            Parameter("turns", 4.0, 1.2, 20.0, "", "How many times longer it is than needed.",
                      "up"),
        ),
    ),
    CriticTemplate(
        "flips", "The policy changes its mind about the gripper.",
        _rule("now(w.gripper_flips) >= p.flips", "the policy opens and closes in turn"),
        (Parameter("flips", 3.0, 1.5, 9.5, "", "Changes of mind in two seconds.", "up"),),
    ),
    CriticTemplate(
        "plans-disagree", "Successive plans of the policy contradict each other.",
        _rule("mean(w.chunk_disagreement, p.span) > p.torn", "successive plans lie apart"),
        (
            _seconds("span", 0.5, 0.1, 1.5, "Over what time the distance is averaged."),
            _metres("torn", 0.05, 0.005, 0.20, "Mean distance between successive plans.", "up"),
        ),
    ),
    CriticTemplate(
        "undecided", "Draws of the policy lie far apart.",
        _rule("mean(w.dispersion, p.span) > p.unsure", "the policy does not know what to do"),
        (
            _seconds("span", 0.5, 0.1, 1.5, "Over what time the spread is averaged."),
            _metres("unsure", 0.05, 0.003, 0.25, "Mean spread of its draws.", "up"),
        ),
    ),
    CriticTemplate(
        "carries-away", "What is held is carried away from the receptacle.",
        _rule(
            "now(w.receptacle_offset) > p.far and delta(w.receptacle_offset, 1.0) > p.astray",
            "the hand carries away from the receptacle", "not held(w.holding > 0.5, 1.0)",
        ),
        (
            _metres("far", 0.12, 0.03, 0.30, "Distance at which it is elsewhere.", "up"),
            _metres("astray", 0.04, 0.0, 0.20, "How much further within a second.", "up"),
        ),
        ("receptacle",),
    ),
    CriticTemplate(
        "holds-on", "Something is held for long and comes no nearer to the receptacle.",
        _rule(
            "held(w.holding > 0.5, p.patience) and "
            "delta(w.receptacle_offset, p.patience) > 0.0 - p.nearing",
            "what is held comes no nearer to the receptacle",
        ),
        (
            _seconds("patience", 2.0, 0.5, 4.5, "How long it must have been held so."),
            _metres("nearing", 0.02, 0.0, 0.10, "Coming nearer by this much is a way.", "down"),
        ),
        ("receptacle",), 4.5,
    ),
)  # fmt: skip
"""Every template, by what goes wrong."""
