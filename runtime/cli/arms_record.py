"""`zetta arms record`: write down what an arm and its cameras do, without touching either."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.hw_drivers.arm_record import Recorder, SoFar
from zetta.hw_drivers.arm_record_file import RecordingHeader
from zetta.hw_drivers.arm_setup import read_setup
from zetta.runtime.cli import colours, output
from zetta.runtime.cli.arms_options import AsJson, Keys, Robot, SetupFile, Url, client_keys
from zetta.runtime.cli.ending import Ending, wish_to_end
from zetta.runtime.errors import ConfigError

PLAIN_EVERY_S: Final = 10.0
CLEARED: Final = "\r\033[K"
"""Takes the line on a terminal away."""


def command(
    url: Url,
    setup: SetupFile = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the recording; new.")] = None,
    seconds: Annotated[float, typer.Option(help="How long; 0 until Ctrl-C.")] = 0.0,
    picture_hz: Annotated[
        float, typer.Option(help="Pictures a second of each camera at most; 0 for all.")
    ] = 0.0,
    robot: Robot = "",
    keys: Keys = None,
    as_json: AsJson = False,
) -> None:
    """Record states and pictures. It takes hold of nothing; Ctrl-C ends it well."""
    if not (0.0 <= seconds < float("inf") and 0.0 <= picture_hz < float("inf")):
        raise ConfigError("--seconds and --picture-hz are 0 or greater")
    declared = None if setup is None else read_setup(setup)
    own = client_keys(keys or (Path(declared.keys) if declared and declared.keys else None))
    name = robot or (declared.robot if declared else "")
    with wish_to_end() as ending:
        folder = output.run_folder("record", out)
        header = _recorded(
            lambda: Recorder(url, folder, declared, own, picture_hz, name),
            folder,
            lambda recorder, wait_s: _over(ending, recorder, seconds, wait_s),
        )
    if as_json:
        output.emit(_answer(folder, header))
    else:
        output.answer(_line(header))
        output.answer(f"it is in {folder}")


def _recorded(
    begin: Callable[[], Recorder], folder: Path, over: Callable[[Recorder, float], bool]
) -> RecordingHeader:
    """Record; where nothing was recorded, leave nothing."""
    recorder: Recorder | None = None
    try:
        recorder = begin()
        output.note(f"recording into {folder}; Ctrl-C ends it")
        return recorder.run(partial(over, recorder), _Progress())
    except BaseException:
        if recorder is None or not recorder.recorded:
            output.discard_folder(folder)
        raise


def _over(ending: Ending, recorder: Recorder, seconds: float, wait_s: float) -> bool:
    """Wait a moment; say whether the recording is long enough or was told to end."""
    left = recorder.began + seconds - time.monotonic() if seconds else wait_s
    if left <= 0.0:
        return True
    return ending.stop.wait(min(wait_s, left))


class _Progress:
    """One line that moves; where stderr is no terminal a line now and then."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._trouble = ""

    def __call__(self, so_far: SoFar) -> None:
        """Tell how it gets on."""
        if so_far.trouble and so_far.trouble != self._trouble:
            output.note((CLEARED if colours.lively(sys.stderr) else "") + so_far.trouble)
        self._trouble = so_far.trouble
        now = time.monotonic()
        if colours.lively(sys.stderr):
            print(CLEARED + _told(so_far), end="", file=sys.stderr, flush=True)
        elif now - self._last >= PLAIN_EVERY_S:
            self._last = now
            output.note(_told(so_far))


def _told(so_far: SoFar) -> str:
    parts = [f"{so_far.seconds:.0f} s", _counted("states", so_far.states, so_far.missed_states)]
    parts += [
        _counted(f"pictures of {name}", count, so_far.missed_pictures.get(name, 0))
        for name, count in so_far.pictures.items()
    ]
    return ", ".join(parts)


def _counted(what: str, count: int, missed: int) -> str:
    return f"{count} {what}" + (f" ({missed} missed)" if missed else "")


def _line(header: RecordingHeader) -> str:
    ended = SoFar(
        header.seconds,
        header.states,
        header.missed_states,
        dict(header.pictures or {}),
        dict(header.missed_pictures or {}),
        header.trouble,
    )
    return f"recorded {_told(ended)}" + (f"; {header.trouble}" if header.trouble else "")


def _answer(folder: Path, header: RecordingHeader) -> dict[str, output.Json]:
    return {
        "recording": str(folder),
        "seconds": header.seconds,
        "states": header.states,
        "missed_states": header.missed_states,
        "pictures": dict(header.pictures or {}),
        "missed_pictures": dict(header.missed_pictures or {}),
        "clock_bound_ms": header.clock_bound_ms,
        "complete": header.complete,
        "trouble": header.trouble or None,
    }
