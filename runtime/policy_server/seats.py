"""How several sessions share one policy.

A policy remembers its episode (`reset` begins one), so two robots cannot simply take turns with it.
A policy that offers `BatchPolicy` hands that memory out and serves all sessions from one set of
weights. Of any other policy each session gets an instance of its own, made when it first resets and
given on when it ends. Everything here is called by one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from zetta.runtime.core import ActionChunk, Observation, Policy, PolicySpec
from zetta.runtime.errors import SpecMismatch


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy that keeps what it remembers of an episode apart from its weights."""

    def begin(self, instruction: str, seed: int) -> Any:
        """Return the memory of a new episode, for `infer_batch` to change in place."""
        ...

    def infer_batch(
        self, episodes: Sequence[Any], observations: Sequence[Observation], rows: int
    ) -> Sequence[ActionChunk]:
        """Return a chunk for each episode, as `infer` would, to rounding.

        `rows` is the shape to compute with, at least as many as there are episodes; what is
        padded in is thrown away and touches no episode.
        """
        ...


@runtime_checkable
class WarmPolicy(Policy, Protocol):
    """A policy whose first inference is slow, for example because it compiles."""

    def warm_up(self, rows: int) -> None:
        """Compute once with this shape; no episode may notice."""
        ...


class Seats:
    """The policy, or policies, and what they remember for each session."""

    def __init__(self, make: Callable[[], Policy], policy: Policy | None) -> None:
        """Load the policy, or share `policy`, of which there is one only.

        Raises:
            ZettaError: it cannot be loaded.
        """
        self._make, self._given = make, policy
        self._first = policy if policy is not None else make()
        self._shared = self._first if isinstance(self._first, BatchPolicy) else None
        self._idle: list[Policy] = [] if self._shared is not None else [self._first]
        self._own: dict[int, Policy] = {}
        self._episodes: dict[int, Any] = {}

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits."""
        return self._first.spec

    @property
    def batches(self) -> bool:
        """Whether several sessions are served by one call."""
        return self._shared is not None

    @property
    def limit(self) -> int | None:
        """Sessions that there can be; None is any number."""
        return 1 if self._given is not None and self._shared is None else None

    def warm_up(self, buckets: Sequence[int]) -> None:
        """Let the policy compile what it will need."""
        if isinstance(self._first, WarmPolicy):
            for rows in buckets:
                self._first.warm_up(rows)

    def reset(self, session: int, instruction: str, seed: int) -> None:
        """Begin an episode of `session`.

        Raises:
            ZettaError: whatever the policy says.
        """
        self._episodes.pop(session, None)  # a reset that fails leaves no older episode behind
        if self._shared is not None:
            self._episodes[session] = self._shared.begin(instruction, seed)
            return
        if session not in self._own:
            self._own[session] = self._idle.pop() if self._idle else self._make()
        self._own[session].reset(instruction, seed)
        self._episodes[session] = None

    def ready(self, session: int) -> bool:
        """Tell whether an episode of `session` was begun."""
        return session in self._episodes

    def infer(
        self, sessions: Sequence[int], observations: Sequence[Observation], rows: int
    ) -> Sequence[ActionChunk]:
        """Return a chunk for each session, all of which are `ready`.

        Raises:
            ZettaError: whatever the policy says.
        """
        if self._shared is None:
            pairs = zip(sessions, observations, strict=True)
            return [self._own[session].infer(seen) for session, seen in pairs]
        episodes = [self._episodes[session] for session in sessions]
        chunks = self._shared.infer_batch(episodes, observations, rows)
        if len(chunks) != len(sessions):
            raise SpecMismatch(
                f"{self.spec.name} gave {len(chunks)} chunks for {len(sessions)} observations"
            )
        return chunks

    def leave(self, session: int) -> None:
        """Forget a session; its instance serves the next one."""
        self._episodes.pop(session, None)
        own = self._own.pop(session, None)
        if own is not None:
            self._idle.append(own)

    def close(self) -> None:
        """Close every instance."""
        for policy in {id(p): p for p in (self._first, *self._idle, *self._own.values())}.values():
            policy.close()
        self._own.clear()
        self._episodes.clear()
        self._idle.clear()
