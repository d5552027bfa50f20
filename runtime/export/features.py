"""What each tick becomes: observation, action, and who drove and why.

Names that begin with `observation` or `action` are what LeRobot feeds to a policy and asks of it,
so nothing else of ours begins like that. Simulator truth has no place here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import SENSING_LEVELS, Proprio, Tick
from zetta.runtime.episode_log import EpisodeHeader, LoggedEpisode
from zetta.runtime.errors import SpecMismatch
from zetta.runtime.export.clips import SKILL, Clip, Selection
from zetta.runtime.policies.proprio_parts import ProprioParts

STATE: Final = "observation.state"
ACTION: Final = "action"
VIEW: Final = "observation.images."
DECISIONS: Final = ("pass", "recover", "abort")
"""What critics said at a tick, by index; the gravest of several counts."""
Columns: TypeAlias = dict[str, npt.NDArray[Any]]
"""One row for each tick: shape (T, D) for vectors, (T,) for the rest."""

_AXES: Final[Mapping[str, tuple[str, ...]]] = {
    "ee_pos": ("ee_x", "ee_y", "ee_z"),
    "ee_quat_xyzw": ("ee_qx", "ee_qy", "ee_qz", "ee_qw"),
    "ee_axis_angle": ("ee_rx", "ee_ry", "ee_rz"),
    "ee_rotation_6d": tuple(f"ee_r{row}{column}" for column in range(2) for row in range(3)),
    "gripper_opening": ("gripper_opening",),
    "gripper_velocity": ("gripper_velocity",),
    "gripper_fingers": ("finger_0", "finger_1"),
    "base": ("base_x", "base_y", "base_yaw"),
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One column of the ticks."""

    name: str
    dtype: str
    """As numpy names it, or `string`."""
    names: tuple[str, ...] | None = None
    """Of the dimensions of a vector."""

    @property
    def size(self) -> int:
        """How many numbers a row has."""
        return 1 if self.names is None else len(self.names)


DRIVING: Final = (
    Feature("next.reward", "float32"),
    Feature("next.done", "bool"),
    Feature("next.success", "bool"),
    Feature("source", "string"),
    Feature("source_index", "int64"),
    Feature("skill_index", "int64"),
    Feature("intervention", "bool"),
    Feature("critic", "string"),
    Feature("verdict_index", "int64"),
    Feature("sensing_index", "int64"),
    Feature("held", "bool"),
    Feature("guarded", "bool"),
    Feature("tick", "int64"),
    Feature("time", "float64"),
)


def whole_state(proprio: Proprio) -> tuple[str, ...]:
    """Return the names of all parts that a robot feels, for `ProprioParts`."""
    parts: list[str] = []
    for i, arm in enumerate(proprio.arms):
        mine = "" if i == 0 else f"{i}."
        parts += [f"{mine}{name}" for name in ("ee_pos", "ee_quat_xyzw", "gripper_opening")]
        parts.append(f"{mine}gripper_velocity")
        if len(arm.joint_pos):
            parts.append(f"{mine}joint_pos:{len(arm.joint_pos)}")
    return (*parts, "base") if proprio.base is not None else tuple(parts)


def state_names(parts: Sequence[str], arms: Sequence[str]) -> tuple[str, ...]:
    """Return a name for each number of a state; with several arms that of the arm comes first.

    >>> state_names(["ee_pos", "1.joint_pos:2"], ["left", "right"])
    ('left_ee_x', 'left_ee_y', 'left_ee_z', 'right_joint_0', 'right_joint_1')
    """
    names: list[str] = []
    for part in parts:
        head, dot, tail = part.partition(".")
        index, rest = (int(head), tail) if dot else (0, part)
        base, _, count = rest.partition(":")
        axes = _AXES.get(base) or tuple(f"joint_{j}" for j in range(int(count or 0)))
        whose = f"{arms[index]}_" if len(arms) > 1 and base != "base" and index < len(arms) else ""
        names += [whose + axis for axis in axes]
    return tuple(names)


class TickColumns:
    """Turns stretches of logs into columns, all in the same way."""

    def __init__(self, selection: Selection, parts: Sequence[str]) -> None:
        """Read the parts of the state.

        Raises:
            SpecMismatch: one of them is unknown.
        """
        self.parts = tuple(parts)
        self._state = ProprioParts(parts)
        self._sources = {source: i for i, source in enumerate(selection.sources)}
        self._skills = {skill: i for i, skill in enumerate(selection.skills)}
        names = state_names(parts, selection.spec.arms)
        self.features = (
            Feature(STATE, "float32", names),
            Feature(ACTION, "float32", selection.spec.action.names),
            *DRIVING,
        )

    def of(self, episode: LoggedEpisode, clip: Clip) -> Columns:
        """Return the columns of a clip, numbers as the log holds them.

        Raises:
            SpecMismatch: the robot has no such parts, or the log is not that of the clip.
        """
        ticks = episode.ticks[clip.first : clip.first + clip.ticks]
        if len(ticks) != clip.ticks:
            raise SpecMismatch(f"{clip.folder} has changed since it was looked at; export anew")
        columns: Columns = {
            STATE: np.stack([self._state(tick.proprio) for tick in ticks]),
            ACTION: np.stack([tick.action for tick in ticks]),
        }
        columns |= _endings(episode.header, len(episode.ticks), clip)
        columns |= self._drivers(ticks)
        level = SENSING_LEVELS.index(episode.header.run.sensing)
        columns["sensing_index"] = np.full(len(ticks), level, np.int64)
        columns["held"] = np.array([bool(tick.held) for tick in ticks])
        columns["guarded"] = np.array([bool(tick.guard) for tick in ticks])
        columns["tick"] = np.array([tick.index for tick in ticks], np.int64)
        columns["time"] = np.array([tick.proprio.t for tick in ticks])
        return columns

    def _drivers(self, ticks: Sequence[Tick]) -> Columns:
        sources = [tick.source for tick in ticks]
        said = [_gravest(tick) for tick in ticks]
        return {
            "source": np.array(sources, np.str_),
            "source_index": np.array([self._sources[s] for s in sources], np.int64),
            "skill_index": np.array(
                [self._skills.get(s.removeprefix(SKILL), -1) if s.startswith(SKILL) else -1
                 for s in sources], np.int64,
            ),
            "intervention": np.array([s.startswith(SKILL) for s in sources]),
            "critic": np.array([critic for _, critic in said], np.str_),
            "verdict_index": np.array([decision for decision, _ in said], np.int64),
        }  # fmt: skip


def _gravest(tick: Tick) -> tuple[int, str]:
    """Return the index of the gravest decision and the critic that spoke it first."""
    worst, critic = 0, ""
    for verdict in tick.verdicts:
        decision = DECISIONS.index(verdict.decision)
        if decision > worst:
            worst, critic = decision, verdict.critic
    return worst, critic


def _endings(header: EpisodeHeader, ticks: int, clip: Clip) -> Columns:
    """Return success and ending after each tick; a clip that is cut out does not end there."""
    after = np.arange(clip.first + 1, clip.first + clip.ticks + 1)
    result = header.result
    first = result.first_success if result.first_success is not None else ticks
    first = max(1, 0 if result.success_at_reset else first)
    succeeded = (after >= first) & result.success
    return {
        "next.reward": ((after == first) & result.success).astype(np.float32),
        "next.done": after == ticks,
        "next.success": succeeded,
    }
