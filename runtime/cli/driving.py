"""A drive put together for one episode: the agent, its cockpit and the motion they make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from zetta.primitives.agent.cockpit import Cockpit
from zetta.primitives.agent.drive import Drive
from zetta.primitives.agent.drive_log import DriveLog
from zetta.primitives.agent.mcp_agent import EpisodeEnd, McpAgent
from zetta.primitives.agent.records import Agent
from zetta.primitives.command_equipment import Equipment
from zetta.primitives.command_grammar import command_text
from zetta.primitives.grasps import HANDS, PANDA
from zetta.primitives.overlays import parse_overlays
from zetta.primitives.roles import roles_or_none
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.cli.agents import agent_name, is_agent, limits_of, make_agent
from zetta.runtime.cli.cockpit import EpisodeCockpit
from zetta.runtime.cli.deploy import Deployment
from zetta.runtime.cli.sight import Sight
from zetta.runtime.core import Camera, Env, EpisodeSink, Motion, Policy, RunSpec, Scene
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.policy_motion import policy_rows
from zetta.runtime.workspace import BoundedEnv, Box

SOURCE_PREFIX: Final = "agent:"
"""How the source of a tick begins that an agent drove."""


def driven(
    spec: RunSpec,
    env: Env,
    scene: Scene,
    vla: Policy | None,
    paced: bool,
    sinks: list[EpisodeSink],
    log: Path | None,
    agent: Agent | None = None,
) -> tuple[Deployment, Drive]:
    """Put together an episode that an agent drives.

    Args:
        spec: names the agent and what it may spend.
        env: the world.
        scene: where it starts.
        vla: the policy behind the command `policy`.
        paced: the ticks go on while the agent thinks.
        sinks: gets what writes the turns, behind what writes the episode.
        log: folder of the episode's log; None where none is kept.
        agent: the agent that `spec` names, where somebody has made it already.

    Raises:
        ConfigError: the agent or something about it is wrong.
        InfraError: the finder's weights cannot be read.
    """
    assert is_agent(spec)
    roles = roles_or_none(scene.task.instruction)
    sight = Sight(spec, env, roles)
    equipment = Equipment(
        action=env.spec.action,
        arms=env.spec.arms,
        control_hz=env.spec.control_hz,
        robots=sight.bind,
        hand=HANDS.get(env.spec.name, PANDA),
        errands=() if roles is None else roles.steps,
        workspace=_workspace(env),
        policy=None if vla is None else _verb(vla, env, spec.policy_seed),
        camera=lambda name: _camera(env, name),
        say=command_text,
    )
    agent = agent or make_agent(spec)
    own = EpisodeCockpit(
        env,
        sight,
        equipment,
        parse_overlays(spec.options.get("overlays", "all")),
        0 if "step_budget" in spec.options else scene.task.max_steps,
    )
    cockpit: Cockpit = agent.board(own) if isinstance(agent, McpAgent) else own
    turns = None if log is None else DriveLog(log, agent_name(spec))
    drive = Drive(
        agent,
        cockpit,
        scene.task.instruction,
        limits_of(spec),
        paced=paced,
        think_ahead=spec.options.get("think_ahead") == "yes",
        keep=(lambda record, view: None) if turns is None else turns.keep,
    )
    if turns is not None:
        turns.drive = drive
        sinks.append(turns)
    if isinstance(agent, McpAgent):
        agent.attach(drive)
        sinks.append(EpisodeEnd(agent, drive))
    arbiter = MotionOnly(drive.motion, SOURCE_PREFIX + agent_name(spec).replace("/", "-"))
    return Deployment(arbiter, localizer=sight, alone=True), drive


def _workspace(env: Env) -> Box | None:
    """Return the room of all hands together; the dry run knows that of each."""
    if not isinstance(env, BoundedEnv):
        return None
    boxes = [env.workspace(k) for k in range(len(env.spec.arms))]
    known = [box for box in boxes if box is not None]
    if len(known) < len(boxes):
        return None
    low, high = np.min([b.low for b in known], axis=0), np.max([b.high for b in known], axis=0)
    return Box(tuple(low.tolist()), tuple(high.tolist()))


def _verb(vla: Policy, env: Env, seed: int) -> Callable[[int, str], Motion]:
    return lambda ticks, instruction: policy_rows(vla, env, seed, ticks, instruction)


def _camera(env: Env, name: str) -> Camera:
    """Return the present calibration of a camera; of the first one for an empty name."""
    names = [camera.name for camera in env.spec.cameras]
    if name and name not in names:
        raise ConfigError(f"there is no camera {name!r}; {suggest(name, names)}")
    wanted = name or names[0]
    return env.observe((wanted,)).cameras[wanted]
