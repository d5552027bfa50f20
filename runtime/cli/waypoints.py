"""What needs ticks of a fixed rate, and is refused where an action is a whole planned motion."""

from __future__ import annotations

from zetta.runtime.core import EnvSpec
from zetta.runtime.errors import ConfigError


def check_ticks(spec: EnvSpec, suite: str, what: str) -> None:
    """Refuse `what` in an environment whose actions are planned motions.

    Args:
        spec: its conventions.
        suite: its suite.
        what: who would judge or act by ticks, in the plural.

    Raises:
        ConfigError: its actions are waypoints.
    """
    if spec.action.kind == "waypoint":
        raise ConfigError(
            f"an action of {suite} is a planned motion of any length, and {what} need ticks of a "
            "fixed rate; use a suite of a fixed rate, whose name has no ending such as _qpos, or "
            "leave them out"
        )
