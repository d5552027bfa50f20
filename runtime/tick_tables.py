"""Ticks and truth as Parquet tables.

A table of ticks has the columns `index`, `t`, `source`, `action`; `<arm>.ee_pos`, `<arm>.ee_quat`,
`<arm>.joints`, `<arm>.opening`, `<arm>.gripper_velocity` for each arm; `base` for a mobile one;
`signal.<name>` (NaN where a tick has none); `verdicts`; `held` where the robot was held, and
`guard` where the safety kernel of an arm did not send what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zetta.runtime.core import ArmState, Array, Proprio, Tick, Truth, Verdict

SIGNAL = "signal."
VERDICTS = pa.list_(
    pa.struct(
        [
            ("decision", pa.string()),
            ("reason", pa.string()),
            ("critic", pa.string()),
            ("skill", pa.string()),
            ("evidence", pa.map_(pa.string(), pa.float64())),
        ]
    )
)


def write_ticks(path: Path, ticks: Sequence[Tick], arms: Sequence[str]) -> None:
    """Write `ticks` of a robot with the named `arms`.

    Raises:
        OSError: the file cannot be written.
    """
    columns: dict[str, pa.Array] = {
        "index": pa.array([tick.index for tick in ticks], pa.int32()),
        "t": pa.array([tick.proprio.t for tick in ticks], pa.float64()),
        "source": pa.array([tick.source for tick in ticks], pa.string()),
        "action": _vectors([tick.action for tick in ticks]),
    }
    for i, arm in enumerate(arms):
        columns.update(_arm_columns(arm, [tick.proprio.arms[i] for tick in ticks]))
    if any(tick.proprio.base is not None for tick in ticks):
        columns["base"] = _vectors([_base(tick.proprio) for tick in ticks])
    for name in sorted({name for tick in ticks for name in tick.signals}):
        values = [tick.signals.get(name, float("nan")) for tick in ticks]
        columns[SIGNAL + name] = pa.array(values, pa.float64())
    columns["verdicts"] = pa.array([_verdicts(tick) for tick in ticks], VERDICTS)
    if any(tick.held for tick in ticks):
        columns["held"] = pa.array([tick.held for tick in ticks], pa.string())
    if any(tick.guard for tick in ticks):
        columns["guard"] = pa.array([tick.guard for tick in ticks], pa.string())
    pq.write_table(pa.table(columns), path)


def _arm_columns(arm: str, states: Sequence[ArmState]) -> dict[str, pa.Array]:
    return {
        f"{arm}.ee_pos": _vectors([s.ee_pos for s in states]),
        f"{arm}.ee_quat": _vectors([s.ee_quat for s in states]),
        f"{arm}.joints": _vectors([s.joint_pos for s in states]),
        f"{arm}.opening": pa.array([s.gripper_opening for s in states], pa.float64()),
        f"{arm}.gripper_velocity": pa.array([s.gripper_velocity for s in states], pa.float64()),
    }


def _base(proprio: Proprio) -> Array:
    return np.full(3, np.nan) if proprio.base is None else proprio.base


def _vectors(rows: Sequence[Array]) -> pa.Array:
    """Return one fixed-size list for each row; an episode without ticks has lists of size 0."""
    if not rows:
        return pa.array([], pa.list_(pa.float64(), 0))
    table = np.stack(rows).astype(np.float64)
    return pa.FixedSizeListArray.from_arrays(pa.array(table.ravel()), table.shape[1])


def _verdicts(tick: Tick) -> list[dict[str, Any]]:
    return [
        {
            "decision": verdict.decision,
            "reason": verdict.reason,
            "critic": verdict.critic,
            "skill": verdict.skill,
            "evidence": list(verdict.evidence.items()),
        }
        for verdict in tick.verdicts
    ]


def read_ticks(path: Path, arms: Sequence[str]) -> tuple[Tick, ...]:
    """Read what `write_ticks` wrote. A signal that a tick lacked reads as NaN, if others had it.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not such a table.
    """
    table = pq.read_table(path)
    arrays = {name: _numpy(table.column(name)) for name in table.column_names if name != "verdicts"}
    signals = {n.removeprefix(SIGNAL): a for n, a in arrays.items() if n.startswith(SIGNAL)}
    verdicts = table.column("verdicts").to_pylist()
    return tuple(
        Tick(
            index=int(arrays["index"][i]),
            proprio=_proprio(arrays, arms, i),
            action=arrays["action"][i],
            source=str(arrays["source"][i]),
            signals={name: float(column[i]) for name, column in signals.items()},
            verdicts=tuple(_verdict(plain) for plain in verdicts[i]),
            held=str(arrays["held"][i]) if "held" in arrays else "",
            guard=str(arrays["guard"][i]) if "guard" in arrays else "",
        )
        for i in range(table.num_rows)
    )


def _numpy(column: pa.ChunkedArray) -> Any:
    joined = column.combine_chunks()
    if pa.types.is_fixed_size_list(joined.type):
        values = joined.flatten().to_numpy(zero_copy_only=False)
        array = values.reshape(len(joined), -1) if len(joined) else values.reshape(0, 0)
    else:
        array = joined.to_numpy(zero_copy_only=False)
    array = np.array(array)
    array.flags.writeable = False
    return array


def _proprio(arrays: Mapping[str, Any], arms: Sequence[str], i: int) -> Proprio:
    states = tuple(
        ArmState(
            ee_pos=arrays[f"{arm}.ee_pos"][i],
            ee_quat=arrays[f"{arm}.ee_quat"][i],
            joint_pos=arrays[f"{arm}.joints"][i],
            gripper_opening=float(arrays[f"{arm}.opening"][i]),
            gripper_velocity=float(arrays[f"{arm}.gripper_velocity"][i]),
        )
        for arm in arms
    )
    base = arrays["base"][i] if "base" in arrays else None
    return Proprio(float(arrays["t"][i]), states, base)


def _verdict(plain: Mapping[str, Any]) -> Verdict:
    return Verdict(**{**plain, "evidence": dict(plain["evidence"])})


def write_truth_table(path: Path, truths: Sequence[Truth | None]) -> None:
    """Write truth, one row for each moment.

    Raises:
        OSError: the file cannot be written.
    """
    pose = pa.map_(pa.string(), pa.list_(pa.float64()))
    columns = {
        "known": pa.array([truth is not None for truth in truths], pa.bool_()),
        "objects": pa.array(
            [[(k, v.tolist()) for k, v in t.objects.items()] if t else [] for t in truths], pose
        ),
        "predicates": pa.array(
            [list(t.predicates.items()) if t else [] for t in truths],
            pa.map_(pa.string(), pa.bool_()),
        ),
        "joints": pa.array(
            [list(t.joints.items()) if t else [] for t in truths],
            pa.map_(pa.string(), pa.float64()),
        ),
    }
    pq.write_table(pa.table(columns), path)


def read_truth_table(path: Path) -> tuple[Truth | None, ...]:
    """Read what `write_truth_table` wrote.

    Raises:
        OSError: the file cannot be read.
    """
    rows = pq.read_table(path).to_pylist()
    return tuple(
        Truth(
            objects={name: np.array(pose) for name, pose in row["objects"]},
            predicates=dict(row["predicates"]),
            joints=dict(row["joints"]),
        )
        if row["known"]
        else None
        for row in rows
    )
