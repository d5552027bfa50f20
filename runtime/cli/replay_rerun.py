"""A logged episode as a recording of Rerun: everything on the axes `tick` and `time`.

| entity | what |
|---|---|
| `cameras/NAME` | pictures, drawn again from the logged states |
| `signals/NAME` | scalars; ticks at which a signal says nothing are left out |
| `action/DIMENSION` | what was commanded, in the environment's convention |
| `robot/ARM/ee` | transform of the end effector in the world, with its path as a line |
| `robot/ARM/opening`, `robot/ARM/joints/I` | scalars |
| `source` | who drives, as a state |
| `intervention` | which skill had the robot, as a state, and in words |
| `verdicts`, `episode` | what critics said, and what came of the episode, as text |
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image as Pillow

from zetta.runtime.core import Array, Env, Tick, Verdict
from zetta.runtime.episode_log import LoggedEpisode
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.picture_sizes import PictureSize
from zetta.runtime.pictures import drawn, moments
from zetta.runtime.skill_arbiter import SKILL_PREFIX

if TYPE_CHECKING:
    import rerun as rr

APPLICATION: Final = "zetta"
JPEG_QUALITY: Final = 90
LEVELS: Final = {"abort": "ERROR", "recover": "WARN", "pass": "INFO"}
NOBODY: Final = "policy"
"""The state of `intervention` while no skill has the robot."""
_COLOURS: Final = ((86, 180, 233), (255, 196, 87), (0, 158, 115))
"""Of the paths of arms."""
_Rows: TypeAlias = "Sequence[int] | npt.NDArray[np.integer[Any]]"


def check_rerun(view: bool) -> None:
    """Refuse what cannot be written or shown here, before anything is drawn.

    Raises:
        ConfigError: the package is missing, or there is no display.
    """
    if find_spec("rerun") is None:
        raise ConfigError(
            "--rerun needs the package rerun-sdk, which is not installed; pip install "
            "'zetta[rerun]'"
        )
    shown = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if view and not shown:
        raise ConfigError(
            "--view needs a display and there is none here; leave it out, and open the file on "
            "a machine that has one: rerun FILE.rrd"
        )


def open_viewer(path: Path) -> None:
    """Show a recording in Rerun's viewer, which stays when this command ends.

    Raises:
        InfraError: it cannot be started.
    """
    try:
        subprocess.Popen(
            [sys.executable, "-m", "rerun", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise InfraError(f"Rerun's viewer cannot be started: {error}") from error


def write_rerun(
    path: Path,
    record: LoggedEpisode,
    env: Env | None = None,
    cameras: Sequence[str] = (),
    size: PictureSize | None = None,
    every: int = 1,
    advance: Callable[[int], None] = lambda count: None,
) -> None:
    """Write an episode as a recording, whole or not at all.

    Args:
        path: the file.
        record: the log.
        env: holds the episode's scene; None leaves the pictures out.
        cameras: to draw.
        size: of each picture; None is what policies see.
        every: ticks between two pictures.
        advance: told how many moments are drawn.

    Raises:
        InfraError: the file cannot be written.
    """
    import rerun as rr

    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    recording = rr.RecordingStream(APPLICATION, send_properties=False)
    try:
        recording.save(temporary, default_blueprint=_layout(cameras, record))
        writer = _Writer(recording, record)
        writer.write_numbers()
        writer.write_words()
        if env is not None:
            writer.write_pictures(env, cameras, size, every, advance)
        recording.flush()
        recording.disconnect()
        temporary.replace(path)
    except (OSError, RuntimeError) as error:
        raise InfraError(f"cannot write the recording {path}: {error}") from error
    finally:
        recording.disconnect()
        temporary.unlink(missing_ok=True)


class _Writer:
    """Sends one episode into a recording."""

    def __init__(self, recording: rr.RecordingStream, record: LoggedEpisode) -> None:
        self._to, self._record = recording, record
        hz, ticks = record.header.spec.control_hz, record.ticks
        seconds = [tick.proprio.t for tick in ticks]
        # The end of the episode is a moment of its own: nobody acts in it.
        self._seconds = np.array([*seconds, (seconds[-1] if seconds else -1.0 / hz) + 1.0 / hz])

    def write_numbers(self) -> None:
        """Send signals, actions and what the robot sensed of itself."""
        ticks = self._record.ticks
        every = np.arange(len(ticks))
        for name in sorted({name for tick in ticks for name in tick.signals}):
            values = np.array([tick.signals.get(name, np.nan) for tick in ticks])
            said = np.isfinite(values)
            self._scalars(f"signals/{name}", every[said], values[said])
        for i, name in enumerate(self._record.header.spec.action.names):
            self._scalars(f"action/{name}", every, np.array([tick.action[i] for tick in ticks]))
        for i, arm in enumerate(self._record.header.spec.arms):
            self._arm(i, f"robot/{arm}")

    def write_words(self) -> None:
        """Send who drove, what critics said, and what came of it."""
        import rerun as rr

        header, ticks = self._record.header, self._record.ticks
        self._states("source", [tick.source for tick in ticks])
        drove = [_skill_of(tick) or NOBODY for tick in ticks]
        self._states("intervention", drove)
        said = [(tick.index, verdict) for tick in ticks for verdict in tick.verdicts]
        if header.result.stop is not None:
            said += [(header.result.stop.index, v) for v in header.result.stop.verdicts]
        texts = [_text(verdict) for _, verdict in said]
        levels = [LEVELS[verdict.decision] for _, verdict in said]
        self._lines("verdicts", [index for index, _ in said], texts, levels)
        asked = header.result.recoveries
        told = [f"{r.skill}, asked by {r.critic}: {r.reason}; {r.ending}" for r in asked]
        self._lines("intervention", [r.tick for r in asked], told, ["WARN"] * len(asked))
        what = f"{header.result.reason} after {header.result.ticks} ticks"
        self._lines("episode", [0, len(ticks)], [header.instruction, what], ["INFO", "INFO"])
        facts = (
            f"{header.instruction}\n\n{header.sim}, {header.scene.task.suite} task "
            f"{header.scene.task.index}, init {header.scene.layout}, seed {header.scene.seed}\n\n"
            f"policy {header.run.policy_name}, bundle {header.run.bundle}, sensing "
            f"{header.run.sensing}\n\n{what}"
        )
        self._to.log("about", rr.TextDocument(facts, media_type="text/markdown"), static=True)

    def write_pictures(
        self,
        env: Env,
        cameras: Sequence[str],
        size: PictureSize | None,
        every: int,
        advance: Callable[[int], None],
    ) -> None:
        """Send what the cameras see; the last picture is the end of the episode."""
        import rerun as rr

        chosen = moments(self._record, every)
        shown = drawn(env, self._record, cameras, chosen, size)
        for count, (moment, images) in enumerate(shown, start=1):
            self._to.set_time("tick", sequence=moment.row)
            self._to.set_time("time", duration=float(self._seconds[moment.row]))
            for name, image in zip(cameras, images, strict=True):
                packed = BytesIO()
                Pillow.fromarray(image).save(packed, format="JPEG", quality=JPEG_QUALITY)
                picture = rr.EncodedImage(contents=packed.getvalue(), media_type="image/jpeg")
                self._to.log(f"cameras/{name}", picture)
            advance(count)
        self._to.reset_time()

    # ------------------------------------------------------------------ inside

    def _arm(self, index: int, entity: str) -> None:
        import rerun as rr

        states = [tick.proprio.arms[index] for tick in self._record.ticks]
        rows = np.arange(len(states))
        self._scalars(f"{entity}/opening", rows, np.array([s.gripper_opening for s in states]))
        joints = np.array([s.joint_pos for s in states]).reshape(len(states), -1)
        for joint in range(joints.shape[1]):
            self._scalars(f"{entity}/joints/{joint}", rows, joints[:, joint])
        if not states:
            return
        places = np.stack([s.ee_pos for s in states])
        quats = np.stack([s.ee_quat for s in states])  # xyzw, as Rerun has them
        columns = rr.Transform3D.columns(translation=places, quaternion=quats)
        self._to.send_columns(f"{entity}/ee", self._times(rows), columns)
        self._to.log(f"{entity}/ee", rr.TransformAxes3D(0.05), static=True)
        colour = _COLOURS[index % len(_COLOURS)]
        line = rr.LineStrips3D([places], colors=[colour], radii=0.001)
        self._to.log(f"{entity}/path", line, static=True)
        self._to.log("robot", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)

    def _scalars(self, entity: str, rows: _Rows, values: Array) -> None:
        import rerun as rr

        if len(values):
            columns = rr.Scalars.columns(scalars=values)
            self._to.send_columns(entity, self._times(rows), columns)

    def _states(self, entity: str, states: Sequence[str]) -> None:
        """Send a state where it changes."""
        import rerun as rr

        changes = [i for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
        if changes:
            columns = rr.StateChange.columns(state=[states[i] for i in changes])
            self._to.send_columns(entity, self._times(changes), columns)

    def _lines(
        self, entity: str, rows: Sequence[int], texts: Sequence[str], levels: Sequence[str]
    ) -> None:
        import rerun as rr

        if texts:
            columns = rr.TextLog.columns(text=texts, level=levels)
            self._to.send_columns(entity, self._times(rows), columns)

    def _times(self, rows: _Rows) -> Iterator[rr.TimeColumn]:
        import rerun as rr

        at = np.asarray(rows, dtype=np.int64)
        yield rr.TimeColumn("tick", sequence=at)
        yield rr.TimeColumn("time", duration=self._seconds[at])


def _layout(cameras: Sequence[str], record: LoggedEpisode) -> rr.blueprint.Blueprint:
    """Return how the viewer shows it at first: pictures beside the curves, over who drives."""
    import rerun.blueprint as rrb

    sights = [rrb.Spatial2DView(origin=f"cameras/{name}", name=name) for name in cameras]
    curves = [
        rrb.StateTimelineView(contents=["source", "intervention"], name="who drives"),
        rrb.TimeSeriesView(origin="action", name="action"),
        rrb.TimeSeriesView(origin="signals", name="signals"),
        rrb.TextLogView(contents=["verdicts", "intervention", "episode"], name="said"),
    ]
    world = rrb.Spatial3DView(origin="robot", name="end effector")
    about = rrb.TextDocumentView(origin="about", name=record.header.instruction)
    return rrb.Blueprint(
        rrb.Horizontal(rrb.Vertical(*sights, rrb.Tabs(world, about)), rrb.Vertical(*curves))
    )


def _skill_of(tick: Tick) -> str:
    """Return the skill that drove a tick, or nothing."""
    return tick.source.removeprefix(SKILL_PREFIX) if tick.source.startswith(SKILL_PREFIX) else ""


def _text(verdict: Verdict) -> str:
    skill = f" -> {verdict.skill}" if verdict.skill else ""
    return f"{verdict.critic}: {verdict.decision}{skill}: {verdict.reason}"
