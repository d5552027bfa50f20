"""The verbs, the politeness and the joints of a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zetta.primitives.roles_names import COLOURS
from zetta.primitives.roles_records import Verb

_SAID: Mapping[Verb, str] = {
    "pick": "pick up, pick, grab hold of, grab, grasp, take hold of, take out, take, lift up, "
    "lift, get, fetch, retrieve, collect, raise, hold, remove",
    "place": "put down, put, place, set down, set, deposit, drop off, drop, lay down, lay, "
    "rest, position, transfer, move, bring, carry, stack, insert, stow away, stow, store, return, "
    "relocate, deliver, leave, release",
    "push": "push, slide, shove, drag, nudge",
    "open": "slide open, pull open, pull out, open up, open",
    "close": "slide shut, slide closed, push shut, push closed, push in, close, shut",
    "turn_on": "turn on, switch on, power on, activate, ignite, light, start",
    "turn_off": "turn off, switch off, power off, deactivate, extinguish, stop",
    "press": "press down, press, push down",
    "pull": "pull",
}
VERBS: Mapping[str, Verb] = {
    said: verb for verb, text in _SAID.items() for said in text.split(", ")
}
"""What each spoken verb means."""
_ALTERNATION = "|".join(sorted(VERBS, key=len, reverse=True))
VERB_PATTERN = re.compile(rf"({_ALTERNATION})(?=\s|$)")

PRONOUNS = frozenset({"it", "them", "this", "that", "these", "those", "this one", "that one"})
"""What stands for a thing that was named before."""
_OPENING = re.compile(
    r"^(?:(?:please|kindly|now|then|first|next|finally|lastly|afterwards|also|just|robot|hey|ok|"
    r"okay|could you|can you|would you|will you|you should|you must|i want you to|"
    r"i would like you to|i'd like you to|your task is to|the task is to|try to|go and|carefully|"
    r"gently|slowly|to)[\s,]+)+"
)
_CLOSING = re.compile(
    r"[\s,]+(?:please|for me|thanks|thank you|carefully|gently|slowly|afterwards)$"
)
_DIRECTION = "left|right|front|back|rear|top|bottom|middle|center"


def normalised(text: str) -> str:
    """Return a sentence in lower case without politeness and with its possessives turned round.

    >>> normalised("Could you open the cabinet’s middle drawer, please?")
    'open the middle drawer of the cabinet'
    """
    text = text.lower().replace("’", "'").replace("`", "'").replace("_", " ")
    text = re.sub(r"[!?\"()]", " ", text)
    text = re.sub(r"\s+", " ", text).strip(" .,;")
    text = _OPENING.sub("", text)
    text = re.sub(r"\b(that|which|it)'s\b", r"\1 is", text)
    text = re.sub(r" (?:that|which) (?:is|are|lies|lie|stands|stand|sits|sit)(?= )", "", text)
    text = re.sub(
        r" (?:currently |now )?(?:located|lying|sitting|standing|situated)(?= )", "", text
    )
    text = re.sub(r"\b(it|them) (?:down|up|over|back)\b", r"\1", text)
    while (shorter := _CLOSING.sub("", text)) != text:
        text = shorter
    text = re.sub(
        r"\b(?:the )?((?:\w+ )?\w+)'s ((?:(?:top|middle|bottom|upper|lower|left|right) )?\w+)",
        _turned_round,
        text,
    )
    colours = "|".join(COLOURS)
    text = re.sub(rf"\b({colours}) and ({colours})(?= \w)", r"\1 & \2", text)
    text = re.sub(r"\bbetween ((?:(?! and ).)+) and ", r"between \1 & ", text)
    text = re.sub(r"\b(turn|switch|power) (?!on\b|off\b)((?:\w+ ){1,4})(on|off)\b(?! (?:the|a) )",
                  r"\1 \3 \2", text)  # fmt: skip
    text = re.sub(r"\b(?:pull|slide) ((?:\w+ ){1,6})(?:open|out)\b", r"open \1", text)
    text = re.sub(
        r"\b(?:push|slide) ((?:\w+ ){1,6})(?:shut|closed|in)(?=$| and)", r"close \1", text
    )
    return re.sub(r"\s+", " ", text).strip()


def _turned_round(match: re.Match[str]) -> str:
    owner, owned = match.group(1), match.group(2)
    words = owner.split()
    # "to the stove's front": the word before the owner is no part of its name.
    if len(words) == 2 and words[0] in ("open", "close", "shut", "the", "to", "on", "in", "of"):
        article = "" if words[0] == "the" else f"{words[0]} "
        return f"{article}the {owned} of the {words[1]}"
    return f"the {owned} of the {owner}"


def split_clauses(text: str) -> list[str]:
    """Return the clauses of a sentence, each beginning with its verb.

    >>> split_clauses("open the drawer and put the yellow & white mug in it")
    ['open the drawer', 'put the yellow & white mug in it']
    """
    joint = (
        r"\s*(?:[;.,]|\band\b|\bthen\b)(?:\s*(?:,|\band\b|\bthen\b|\bfinally\b))*\s+"
        rf"(?=(?:{_ALTERNATION})(?:\s|$))"
    )
    parts = re.split(joint, text)
    return [_OPENING.sub("", part.strip(" ,;.")) for part in parts if part.strip(" ,;.")]


def split_list(text: str) -> list[str]:
    """Return what a clause enumerates.

    >>> split_list("both the soup and the sauce in the basket")
    ['the soup', 'the sauce in the basket']
    """
    parts = [p.strip() for p in re.split(r",\s*and\s+|\s+and\s+|,\s*", text) if p.strip()]
    if len(parts) > 1:
        parts[0] = re.sub(r"^(?:both|all of|all)\s+", "", parts[0])
    return parts or [""]
