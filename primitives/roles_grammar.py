"""From a sentence to errands: clauses, their verbs, and what their prepositions hang on."""

from __future__ import annotations

import re
from dataclasses import replace

from zetta.primitives.roles_names import grip_of, noun, place_in, switch_of
from zetta.primitives.roles_phrases import (
    Place,
    Tail,
    destination,
    destination_of_plain,
    mention,
    tails,
)
from zetta.primitives.roles_records import Errand, Phrase, Relation, Verb
from zetta.primitives.roles_words import (
    PRONOUNS,
    VERB_PATTERN,
    VERBS,
    normalised,
    split_clauses,
    split_list,
)


def errands(text: str) -> tuple[Errand, ...]:
    """Return the single errands of an instruction, in order; none when it has no known verb."""
    reader = _Reader()
    for clause in split_clauses(normalised(text)):
        if not reader.read(clause):
            return ()
    return tuple(reader.steps)


class _Reader:
    """Reads clause after clause and remembers what "it" and "inside" may mean."""

    def __init__(self) -> None:
        self.steps: list[Errand] = []
        self._container: str | None = None
        """The last thing something can be put into or onto, by its own name."""

    def read(self, clause: str) -> bool:
        """Add the errands of one clause; return False when it makes no sense."""
        match = VERB_PATTERN.match(clause)
        if match is None:
            return False
        verb, rest = VERBS[match.group(1)], clause[match.end() :].strip()
        if verb in ("open", "close", "turn_on", "turn_off", "press", "pull"):
            return self._work(verb, rest)
        items = split_list(rest)
        done = [self._carry(verb, item) for item in self._shared(items)]
        return bool(done) and all(done)

    # ------------------------------------------------------------------ parts

    def _work(self, verb: Verb, rest: str) -> bool:
        name = self._worked(rest)
        if not name:
            return False
        if verb in ("open", "close", "pull"):
            part = grip_of(name)
        elif verb == "press":
            part = name
        else:
            part = switch_of(name)
        self.steps.append(Errand(verb, part=Phrase(part)))
        self._container = name if verb != "press" else self._container
        return True

    def _worked(self, rest: str) -> str:
        """Return the name of what is opened, closed or switched; empty when nothing is named."""
        if rest in PRONOUNS or rest in ("door", "the door", "drawer", "the drawer", ""):
            named = noun(rest)[0] if rest not in PRONOUNS else ""
            return self._container or named
        head, following = tails(rest)
        name, direction = noun(head)
        if name in ("button", "knob", "handle", "door") and following and following[0].object:
            name = f"{name} of {noun(following[0].object)[0]}"
        return f"{direction} {name}" if direction else name

    # ------------------------------------------------------------------ things

    def _shared(self, items: list[str]) -> list[str]:
        """Give the destination of "A and B in C" to A as well."""
        if len(items) < 2:
            return items
        head, following = tails(items[-1])
        shared = items[-1][len(head) :].strip()
        plain = [not tails(item)[1] for item in items[:-1]]
        if not following or not any(plain):
            return items
        return [
            f"{i} {shared}" if bald else i for i, bald in zip(items[:-1], plain, strict=True)
        ] + [items[-1]]

    def _carry(self, verb: Verb, rest: str) -> bool:
        pair = _pair(rest)
        if pair is not None:
            done = [self._carry(verb, item) for item in pair]
            return all(done)
        head, following = tails(rest)
        merges = head in PRONOUNS
        if not merges and verb == "place" and self._awaits():
            merges = not head
        item = None if merges else mention(head)
        if item is not None and not item.name:
            return False
        mine, where = _divided(following, verb, merges)
        if item is not None and mine:
            item = _related(item, mine)
        place = self._placed(where)
        if merges:
            return self._finish(verb, place)
        if verb == "pick" and place is not None:
            verb = "place"
        if verb in ("place", "push") and place is None:
            return False
        self._add(Errand(verb, item), place)
        return True

    def _awaits(self) -> bool:
        return bool(self.steps) and self.steps[-1].object is not None

    def _finish(self, verb: Verb, place: Place | None) -> bool:
        """Put what was spoken of last where `place` says."""
        if not self._awaits() or place is None:
            return False
        last = self.steps[-1]
        if last.verb == "pick":
            self.steps.pop()
            self._add(replace(last, verb="push" if verb == "push" else "place"), place)
        else:
            # What carries the thing is carried together with it.
            carried = last.receptacle if last.placement in ("on", "in") else last.object
            self._add(Errand("place", carried), place)
        return True

    def _add(self, errand: Errand, place: Place | None) -> None:
        if place is None:
            self.steps.append(errand)
            return
        if place.phrase == errand.object and errand.object is not None:
            return
        self.steps.append(replace(errand, receptacle=place.phrase, placement=place.placement))
        self._container = place.whole

    def _placed(self, where: list[Tail]) -> Place | None:
        if not where:
            return None
        first, *more = where
        if first.object and not noun(first.object)[0]:
            return None  # "on the": nothing is named
        place = (
            destination_of_plain(first, self._container)
            if not first.object or first.object in PRONOUNS
            else destination(first)
        )
        if place is not None and more:
            return replace(place, phrase=_related(place.phrase, more))
        return place


def _pair(rest: str) -> list[str] | None:
    """Return the two errands of "both moka pots on the stove": each for one not yet there."""
    match = re.match(r"(?:both|the two|two|all)(?: of)?(?: the)? (.+)", rest)
    if match is None:
        return None
    head, following = tails(match.group(1))
    if not following or not following[-1].object or " & " in head or " and " in head:
        return None
    kind = "in" if following[-1].kind == "in" else "on"
    target = following[-1].object
    return [f"{head} not {kind} {target} {match.group(1)[len(head) :].strip()}"] * 2


def _divided(following: list[Tail], verb: Verb, merged: bool) -> tuple[list[Tail], list[Tail]]:
    """Split prepositional phrases into those of the object and those of the destination."""
    if merged:
        return [], following
    for k, tail in enumerate(following):
        # "pick up the bowl to the left of the plate" says which bowl.
        beside = tail.unary or tail.kind in ("left of", "right of", "front of", "behind")
        if tail.directed and not (beside and verb == "pick"):
            return following[:k], following[k:]
    if verb == "pick":
        return following, []
    # "put the bowl next to the ramekin on the plate": a choice among twins comes first.
    for k, tail in enumerate(following):
        rest = [t for t in following[k + 1 :] if not t.unary]
        chooses = tail.unary or tail.negated or tail.source
        if chooses or (rest and tail.kind in ("next to", "between", "behind")):
            continue
        return following[:k], following[k:]
    last = following[-1:]
    if last and last[0].unary and not last[0].source:
        return following[:-1], last
    return following, []


def _related(phrase: Phrase, chosen: list[Tail]) -> Phrase:
    """Return `phrase` with the first relation that says which one is meant."""
    tail = chosen[0]
    if phrase.relation is not None:
        return phrase
    if tail.unary:
        return Phrase(phrase.name, Relation(tail.kind))
    anchors = tuple(noun(part)[0] for part in tail.object.split(" & "))
    if not all(anchors):
        return phrase  # the sentence breaks off: "the bowl on"
    kind = tail.kind
    inside = place_in(anchors[0]).startswith("inside of") and not anchors[0].endswith("cabinet")
    if tail.source and inside:
        kind = "in"
    if kind in ("on", "in") and anchors[0] in ("table", "counter", "floor", "desk"):
        return phrase
    if kind == "in":
        anchors = tuple(place_in(name) for name in anchors)
    return Phrase(phrase.name, Relation(kind, anchors, tail.negated))
