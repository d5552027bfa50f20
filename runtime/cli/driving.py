"""A drive put together for one episode: the agent, its cockpit and the motion they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from zetta.primitives.grasps import hand_of
from zetta.primitives.overlays import parse_overlays
from zetta.primitives.roles import roles_or_none
from zetta.runtime.arbiter import MotionOnly
from zetta.runtime.cli.agents import is_agent, limits_of, make_agent
from zetta.runtime.cli.cockpit import EpisodeCockpit
from zetta.runtime.cli.deploy import Deployment, skills_on_call
from zetta.runtime.cli.drive_demonstrations import DemonstrationSaver
from zetta.runtime.cli.eyes import eyes, looking
from zetta.runtime.cli.sight import Sight
from zetta.runtime.cli.waypoints import check_ticks
from zetta.runtime.core import (
    Camera,
    Env,
    EpisodeSink,
    Look,
    Motion,
    Outcome,
    Policy,
    RunSpec,
    Scene,
    Window,
)
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.policy_motion import policy_rows
from zetta.runtime.workspace import BoundedEnv, Box
from zetta.skills.compiled import CompiledSkill

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
    check_ticks(env.spec, spec.suite, "semantic commands")
    roles = roles_or_none(scene.task.instruction)
    sight = Sight(spec, env, roles)
    made = make_agent(spec, scene) if agent is None else None
    agent = agent or made
    assert agent is not None
    keepers = _keepers(spec, env, log, agent.name)
    localizer, _ = eyes(spec, env, sight)
    signals, skills = skills_on_call(spec, env, scene, sight, looking(localizer, env, sight))
    equipment = Equipment(
        action=env.spec.action,
        arms=env.spec.arms,
        control_hz=env.spec.control_hz,
        robots=sight.bind,
        hand=hand_of(env.spec),
        errands=() if roles is None else roles.steps,
        workspace=_workspace(env),
        policy=None if vla is None else _verb(vla, env, spec.policy_seed),
        skills=None if signals is None else on_call(skills, signals.history, sight),
        skill_names=tuple(skill.name for skill in skills),
        camera=lambda name: _camera(env, name),
        say=command_text,
    )
    own = EpisodeCockpit(
        env,
        sight,
        equipment,
        parse_overlays(spec.options.get("overlays", "all")),
        0 if "step_budget" in spec.options else scene.task.max_steps,
    )
    cockpit: Cockpit = agent.board(own) if isinstance(agent, McpAgent) else own
    drive = Drive(
        agent,
        cockpit,
        scene.task.instruction,
        limits_of(spec),
        paced=paced,
        think_ahead=spec.options.get("think_ahead") == "yes",
        watched="save_demonstrations" in spec.options,
        keep=[keeper.keep for keeper in keepers],
    )
    for keeper in keepers:
        keeper.drive = drive
    sinks += keepers
    if isinstance(agent, McpAgent):
        agent.attach(drive)
        sinks.append(EpisodeEnd(agent, drive))
    arbiter = MotionOnly(drive.motion, SOURCE_PREFIX + agent.name.replace("/", "-"))
    return Deployment(arbiter, signals, localizer, alone=True, agent=made), drive


def _keepers(
    spec: RunSpec, env: Env, log: Path | None, agent: str
) -> list[DriveLog | DemonstrationSaver]:
    """Return what writes turns down, while they are driven and in the end."""
    keepers: list[DriveLog | DemonstrationSaver] = []
    if log is not None:
        keepers.append(DriveLog(log, agent))
    if "save_demonstrations" in spec.options:
        folder = Path(spec.options["save_demonstrations"])
        versions = tuple(sorted(env.spec.versions.items()))
        keepers.append(DemonstrationSaver(folder, agent, versions))
    return keepers


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


def on_call(
    skills: Sequence[CompiledSkill], window: Window, sight: Sight
) -> Callable[[str], Motion]:
    """Return what makes the motion of a skill that an agent calls, within the skill's ticks."""
    known = {skill.name: skill for skill in skills}

    def recovery(name: str) -> Motion:
        skill = known[name]
        if not skill.precondition(window):
            return Outcome(False, "its precondition does not hold")
        sight.bind_instruction()
        outcome = yield from _at_most(skill.recover(window), skill.max_ticks)
        if outcome.completed and not skill.reentry(window):
            return Outcome(False, f"{outcome.reason}; its re-entry condition does not hold")
        return outcome

    return recovery


def _at_most(motion: Motion, ticks: int) -> Motion:
    """Pass a motion on for so many ticks."""
    try:
        wish = next(motion)
        while True:
            if not isinstance(wish, Look):
                if ticks == 0:
                    return Outcome(False, "its ticks are spent")
                ticks -= 1
            wish = motion.send((yield wish))
    except StopIteration as ended:
        outcome: Outcome = ended.value
        return outcome
    finally:
        motion.close()


def _camera(env: Env, name: str) -> Camera:
    """Return the present calibration of a camera; of the first one for an empty name."""
    names = [camera.name for camera in env.spec.cameras]
    if name and name not in names:
        raise ConfigError(f"there is no camera {name!r}; {suggest(name, names)}")
    wanted = name or names[0]
    return env.observe((wanted,)).cameras[wanted]
