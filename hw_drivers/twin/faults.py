"""What can be made to go wrong on purpose: one table of faults by name, which others extend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from zetta.hw_drivers.twin.side import TwinSide
from zetta.runtime.errors import ConfigError, suggest

Handler: TypeAlias = Callable[[bool, str], None]
"""Gets whether the fault is on from now on, and the value that was given with it."""
REFLEX: Final = "reflex: the arm felt a collision and stopped itself"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that can go wrong."""

    name: str
    says: str
    """What happens, in one sentence."""
    handler: Handler
    """
    Raises:
        ConfigError: the value makes no sense.
    """
    value: str = ""
    """What the value means; empty where there is none."""
    momentary: bool = False
    """It happens once and does not last."""


class Eyes(Protocol):
    """The cameras, as faults know them."""

    def lose(self, camera: str, lost: bool) -> None:
        """Make a camera silent."""
        ...

    def freeze(self, camera: str, frozen: bool) -> None:
        """Make a camera repeat its last picture as if it were new."""
        ...


class Faults:
    """The faults of one twin."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._table: dict[str, Fault] = {}
        self._on: dict[str, str] = {}
        for fault in faults:
            self.add(fault)

    @property
    def table(self) -> Mapping[str, Fault]:
        """All that can go wrong, by name."""
        return dict(self._table)

    @property
    def on(self) -> Mapping[str, str]:
        """What goes wrong now: the values by name; of a camera's fault `NAME CAMERA`."""
        return dict(self._on)

    def add(self, fault: Fault) -> None:
        """Take one more fault in.

        Raises:
            ConfigError: there is one of its name.
        """
        if fault.name in self._table:
            raise ConfigError(f"there is a fault {fault.name!r} already; choose another name")
        self._table[fault.name] = fault

    def set(self, name: str, on: bool, value: str = "") -> None:
        """Begin or end a fault.

        Raises:
            ConfigError: unknown name, or a value that makes no sense.
        """
        fault = self._table.get(name)
        if fault is None:
            raise ConfigError(f"there is no fault {name!r}; {suggest(name, self._table)}")
        if value and not fault.value:
            raise ConfigError(f"the fault {name!r} takes no value, got {value!r:.40}")
        fault.handler(on, value)
        key = f"{name} {value}" if name.startswith("camera_") else name
        if on and not fault.momentary:
            self._on[key] = value
        else:
            self._on.pop(key, None)


def world_faults(side: TwinSide, eyes: Eyes) -> tuple[Fault, ...]:
    """Return the faults of the arm and of its cameras."""

    def stuck(on: bool, value: str) -> None:
        del value
        side.world.stuck_gripper = on

    def reflex(on: bool, value: str) -> None:
        if on:
            side.reflex(value or REFLEX)

    return (
        Fault("stuck_gripper", "The fingers stay where they are, whatever is asked.", stuck),
        Fault(
            "reflex",
            "The arm stops itself, until a person clears it; off does nothing.",
            reflex,
            "the reason that it gives",
            momentary=True,
        ),
        Fault(
            "camera_lost",
            "A camera sends nothing any more.",
            lambda on, camera: eyes.lose(camera, on),
            "name of the camera",
        ),
        Fault(
            "camera_frozen",
            "A camera sends its last picture again and again, as if it were new.",
            lambda on, camera: eyes.freeze(camera, on),
            "name of the camera",
        ),
    )
