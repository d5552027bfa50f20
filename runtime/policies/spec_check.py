"""Whether the spec of a policy that comes from outside makes sense by itself."""

from __future__ import annotations

import math

from zetta.runtime.core import SENSING_LEVELS, ActionSpec, PolicySpec
from zetta.runtime.errors import SpecMismatch, suggest


def check_spec(spec: PolicySpec, who: str) -> None:
    """Refuse a spec that contradicts itself.

    Args:
        spec: what the policy declares.
        who: begins the sentence, such as the name of a file.

    Raises:
        SpecMismatch: everything that is wrong, a sentence for each.
    """
    wrong = [*_action_problems(spec.action), *_rhythm_problems(spec)]
    if spec.sensing not in SENSING_LEVELS:
        wrong.append(f"sensing is {spec.sensing!r}; {suggest(spec.sensing, SENSING_LEVELS)}")
    names = [camera.name for camera in spec.cameras]
    if len(set(names)) < len(names):
        wrong.append(f"a camera is named twice in {', '.join(names)}")
    if any(camera.height < 1 or camera.width < 1 for camera in spec.cameras):
        wrong.append("a camera has no pixels; height and width are 1 or more")
    if wrong:
        raise SpecMismatch(f"{who}: " + "; ".join(wrong))


def _rhythm_problems(spec: PolicySpec) -> list[str]:
    wrong = []
    if not 0.0 < spec.control_hz < math.inf:
        wrong.append(f"control_hz is {spec.control_hz}; expected ticks per second, such as 20")
    if not 1 <= spec.replan_steps <= spec.horizon:
        wrong.append(
            f"replan_steps is {spec.replan_steps} and horizon {spec.horizon}; "
            "replan_steps lies between 1 and the horizon"
        )
    return wrong


def _action_problems(action: ActionSpec) -> list[str]:
    wrong = [
        f"action.{field} has {len(values)} numbers for the {action.size} names"
        for field, values in (("low", action.low), ("high", action.high), ("scale", action.scale))
        if len(values) != action.size
    ]
    if not action.names or len(set(action.names)) < action.size:
        wrong.append("action.names is empty or names something twice")
    pairs = zip(action.names, action.low, action.high, strict=False)
    wrong += [f"action.low of {n} is not below its high" for n, lo, hi in pairs if not lo < hi]
    if action.gripper_open == action.gripper_close:
        wrong.append("action.gripper_open and action.gripper_close are equal")
    return wrong
