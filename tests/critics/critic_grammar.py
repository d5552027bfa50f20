"""Draws critics that obey the language, from a seed: many kinds of expressions and statements."""

from __future__ import annotations

import random

import numpy as np
from critic_texts import HEAD, HZ

from zetta.runtime.signals import SignalHistory

SERIES = ("w.ee_speed", "w.slip", "w.lift", "w.object_distance", "w.dispersion")
NAMES = [text.removeprefix("w.") for text in SERIES]
LITERALS = ("0", "1", "-1", "0.5", "2.5", "1e12", "-1e12", "1e-300", "p.near", "p.patience")
SECONDS = ("0", "0.05", "0.4", "2", "p.patience")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
WINDOWS = ("ago", "mean", "minimum", "maximum", "delta", "rate", "spread", "path_length")
ODD = (0.0, np.nan, np.inf, -np.inf, 1.7e308, -1.7e308, 5e-324)


class Grammar:
    """Draws texts; `depth` bounds how far an expression still grows."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._pick = self._random.choice

    def program(self) -> str:
        """Return a whole critic."""
        lines = ["a = 0.5", "b = p.near", "c = True", "if now(w.slip) > 1e9:"]
        lines += ['    return abort("x")', *self.block(2), self.verdict()]
        return HEAD + "".join(f"    {line}\n" for line in lines)

    def window(self) -> SignalHistory:
        """Return a window: some ticks of some signals, with holes and extremes in it."""
        names = NAMES[: self._random.randint(2, len(NAMES))] if self._one_in(4) else NAMES
        window = SignalHistory(names, HZ)
        numbers = np.random.default_rng(self._random.getrandbits(32))
        ticks = self._random.randint(0, 40) if self._one_in(4) else 50
        rows = numbers.normal(size=(ticks, len(names)))
        if len(rows) and self._one_in(2):
            for _ in range(self._random.randint(1, 4)):
                place = self._random.randrange(len(rows)), self._random.randrange(len(names))
                rows[place] = self._pick(ODD)
        for row in rows:
            window.push(row)
        return window

    def _one_in(self, n: int) -> bool:
        return self._random.randrange(n) == 0

    def verdict(self) -> str:
        """Return a return."""
        return self._pick(["return ok()", 'return recover("a")', 'return abort("b")'])

    def block(self, depth: int) -> list[str]:
        """Return one to three statements."""
        return [line for _ in range(self._random.randint(1, 3)) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        """Return the lines of one statement."""
        kind = self._random.randrange(8 if depth else 5)
        if kind == 0:
            return [f"{self._pick('ab')} = {self.number(2)}"]
        if kind == 1:
            return [f"{self._pick('ab')} {self._pick('+-*/')}= {self.number(1)}"]
        if kind == 2:
            return [f"c = {self.condition(2)}"]
        if kind == 3:
            return [f"s = {self.series(2)}", f"a = {self._pick(WINDOWS)}(s, {self.seconds()})"]
        if kind == 4:
            return [f"f = {self.flags(1)}", f"c = held(f, {self.seconds()}) or now(f)"]
        inner = [f"    {line}" for line in self.block(depth - 1)]
        if kind == 5:
            return [f"if {self.condition(2)}:", f"    {self.verdict()}"]
        if kind == 6:
            other = [f"    {line}" for line in self.block(depth - 1)]
            return [f"if {self.condition(2)}:", *inner, "else:", *other]
        last = [f"elif {self.condition(1)}:", *inner, f"    {self.verdict()}"]
        return [f"if {self.condition(2)}:", *inner, *last]

    def seconds(self) -> str:
        """Return the length of a window."""
        return self._pick(SECONDS)

    def series(self, depth: int) -> str:
        """Return a series of numbers."""
        kind = self._random.randrange(6) if depth else 0
        if kind <= 1:
            return self._pick(SERIES)
        one = self.series(depth - 1)
        other = self.series(depth - 1) if self._one_in(2) else self._pick(LITERALS)
        return {
            2: f"({one} {self._pick('+-*/')} {other})",
            3: f"abs({one})",
            4: f"{self._pick(['min', 'max', 'hypot'])}({one}, {other})",
            5: f"(-{one})",
        }[kind]

    def flags(self, depth: int) -> str:
        """Return a series of conditions."""
        if not depth or self._one_in(2):
            if self._one_in(5):
                return f"({self._pick(LITERALS)} < {self.series(1)} <= {self._pick(LITERALS)})"
            return f"({self.series(2)} {self._pick(COMPARISONS)} {self._pick(LITERALS)})"
        one, other = self.flags(depth - 1), self.flags(depth - 1)
        return self._pick([f"({one} and {other})", f"({one} or {other})", f"(not {one})"])

    def number(self, depth: int) -> str:
        """Return a number."""
        kind = self._random.randrange(9 if depth else 6)
        if kind <= 1:
            return f"{self._pick(WINDOWS)}({self.series(1)}, {self.seconds()})"
        if kind == 2:
            return f"now({self.series(1)})"
        if kind == 3:
            return f"{self._pick(['count', 'share'])}({self.flags(1)}, {self.seconds()})"
        if kind <= 5:
            return self._pick([*LITERALS, "a", "b"])
        one, other = self.number(depth - 1), self.number(depth - 1)
        return {
            6: f"({one} {self._pick('+-*/')} {other})",
            7: f"{self._pick(['min', 'max', 'hypot'])}({one}, {other})",
            8: f"(-{one} if {self.condition(0)} else abs({other}))",
        }[kind]

    def condition(self, depth: int) -> str:
        """Return a condition."""
        kind = self._random.randrange(9 if depth else 6)
        if kind == 0:
            return f"({self.number(1)} {self._pick(COMPARISONS)} {self.number(1)})"
        if kind == 1:
            return f"({self.number(0)} < {self.number(0)} <= {self.number(0)})"
        if kind == 2:
            return f"{self._pick(['held', 'once', 'rose'])}({self.flags(1)}, {self.seconds()})"
        if kind == 3:
            return f"since({self.flags(1)}, {self.flags(1)}, {self.seconds()})"
        if kind == 4:
            return f"crossed({self.series(1)}, {self.number(0)}, {self.seconds()})"
        if kind == 5:
            return self._pick(["True", "False", "c", f"now({self.flags(1)})"])
        one, other = self.condition(depth - 1), self.condition(depth - 1)
        return {6: f"({one} and {other})", 7: f"({one} or {other})", 8: f"(not {one})"}[kind]
