"""Agents that ask the fake server, turns, and a clock that nobody waits for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fake_llm import Answer as Scripted
from tests.fake_llm import FakeServer, text
from zetta.primitives.agent.model_agent import ModelAgent, ModelSettings
from zetta.primitives.agent.patience import Patience
from zetta.primitives.agent.records import Picture, Turn
from zetta.primitives.command_results import CommandResult
from zetta.runtime.model_addresses import ModelAddress

GRAMMAR = "move x|y|z CM; gripper 0..1; pick THING; wait; done  # braces {like these} stay"
GOOD = {
    "scene": "a red block at the left",
    "progress": "nothing yet",
    "memory": "the block is red",
    "plan": "go there",
    "commands": ["move x +5", "gripper 0"],
}


class FakeClock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.t = 100.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.t

    def sleep_until(self, t: float) -> bool:
        self.waits.append(round(t - self.t, 6))
        self.t = max(self.t, t)
        return True


def reply(**changes: object) -> Scripted:
    """Return a good answer of the server, with other fields."""
    return text(json.dumps({**GOOD, **changes}))


def picture(name: str = "front", value: int = 90, size: tuple[int, int] = (48, 64)) -> Picture:
    image = np.full((*size, 3), value, dtype=np.uint8)
    image[: size[0] // 2, : size[1] // 3] = 200
    return Picture(name, image, f"the {name} view with a grid")


def turn(index: int = 0, **changes: Any) -> Turn:
    given: dict[str, Any] = {
        "instruction": "put the red block into the basket",
        "state": "hand at (1.0, 2.0, 30.0) cm, gripper 1.00 open",
        "results": (CommandResult("move x +5", True, "reached", "it moved 5.0 cm"),),
        "pictures": (picture("front"), picture("wrist", 30)),
        "turns_left": 44 - index,
        "commands_left": 4,
    }
    return Turn(index, **{**given, **changes})


def agent(
    fake: FakeServer | str,
    clock: FakeClock | None = None,
    model: str = "m",
    tell: Callable[[str], None] = lambda text: None,
    key: str = "",
    **changes: Any,
) -> ModelAgent:
    """Return an agent that has begun an episode."""
    url = fake if isinstance(fake, str) else fake.url
    patience = changes.pop("patience", Patience())
    made = ModelAgent(
        ModelAddress(model, url, key),
        ModelSettings(GRAMMAR, patience=patience, **changes),
        clock or FakeClock(),
        tell,
    )
    made.begin("put the red block into the basket", ("arm",))
    return made
