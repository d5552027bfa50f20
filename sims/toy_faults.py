"""Faults of the toy on demand: what goes wrong, and at which tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from zetta.runtime.core import Scene
from zetta.runtime.errors import ConfigError, suggest
from zetta.sims.toy_tasks import scene_generator


@dataclass(frozen=True, slots=True)
class ToyFaults:
    """What shall go wrong. Ticks count from 0, the first `step` after `reset`; -1 means never."""

    slip_at: int = -1
    """The first thing held clear of its support at or after this tick slips out, once."""
    slip_after: int = -1
    """What has been held clear of its support for so many ticks in all slips out, once."""
    slip_spread: int = 0
    """`slip_after` is greater by so many at most: each scene has its own moment."""
    slip_scale: float = 1.0
    """Multiplies every natural chance of slipping; 0 forbids slips."""
    gripper_stuck_at: int = -1
    """From this tick on the fingers do not move."""
    gripper_stuck_for: int = 1_000_000
    """For how many ticks they do not."""
    knock_at: int = -1
    """At this tick `knock_object` is shoved by `knock_x`, `knock_y`, unless it is held."""
    knock_object: str = ""
    """Name of the thing; empty for the item of the first goal."""
    knock_x: float = 0.0
    """Metres in world x."""
    knock_y: float = 0.06
    """Metres in world y."""
    camera: str = "front"
    """The camera that the camera faults strike."""
    camera_frozen_at: int = -1
    """From this tick on the camera repeats its picture of this tick."""
    camera_black_at: int = -1
    """From this tick on the camera's picture is black and its depth zero."""
    camera_shift_x: float = 0.0
    """The calibration handed out is wrong by this much in world x; physics and truth are not."""
    camera_shift_y: float = 0.0
    """The same in world y."""
    proprio_shift_x: float = 0.0
    """Every reported end-effector position is wrong by this much in world x."""
    proprio_shift_y: float = 0.0
    """The same in world y."""
    action_delay: int = 0
    """Ticks between sending an action and the arm's obeying it."""

    def hold_ticks(self, scene: Scene) -> int:
        """Return how long a thing can be held in a scene before it slips; -1 for ever."""
        if self.slip_after < 0 or self.slip_spread == 0:
            return self.slip_after
        rng = scene_generator(scene.task, scene.layout, scene.seed, "slip")
        return self.slip_after + int(rng.integers(0, self.slip_spread + 1))

    @classmethod
    def from_text(cls, text: str) -> ToyFaults:
        """Return the faults written in one line, as a `RunSpec` carries them.

        >>> ToyFaults.from_text("slip_at=40;knock_y=0.1").slip_at
        40

        Raises:
            ConfigError: no `name=value`, unknown name, or a value that is not a number.
        """
        pairs = [part.partition("=") for part in text.split(";") if part.strip()]
        for name, equals, _ in pairs:
            if not equals:
                raise ConfigError(f"the fault {name!r} has no value; write {name}=VALUE")
        return cls.from_options({name.strip(): value.strip() for name, _, value in pairs})

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ToyFaults:
        """Return the faults written as text by name.

        >>> ToyFaults.from_options({"slip_at": "40"}).slip_at
        40

        Raises:
            ConfigError: unknown name, or a value that is not a number.
        """
        kinds: dict[str, type] = {f.name: type(f.default) for f in fields(cls)}
        values: dict[str, int | float | str] = {}
        for name, text in options.items():
            if name not in kinds:
                raise ConfigError(f"the toy has no fault {name!r}; {suggest(name, kinds)}")
            try:
                values[name] = kinds[name](text)
            except ValueError:
                kind = kinds[name].__name__
                raise ConfigError(f"fault {name!r} takes a {kind}, not {text!r}") from None
        return replace(cls(), **values)  # type: ignore[arg-type]
