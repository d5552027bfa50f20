"""`zetta mcp`: an agentic client drives the robot, through the Model Context Protocol."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zetta.primitives.agent.mcp_agent import MCP, McpAgent
from zetta.runtime.cli import output
from zetta.runtime.cli import run_options as options
from zetta.runtime.cli.agents import limits_of
from zetta.runtime.cli.arm_choice import arm_name
from zetta.runtime.cli.assemble import find_simulator
from zetta.runtime.cli.ending import Ending, wish_to_end
from zetta.runtime.cli.mcp_access import (
    check_place,
    listen,
    names_of,
    parse_place,
    token_at,
)
from zetta.runtime.cli.options import check_options, steps_option
from zetta.runtime.cli.run_answer import Answer, carry_out, tell
from zetta.runtime.cli.run_episodes import Manner
from zetta.runtime.cli.run_plan import DEFAULTS, Wishes, plan
from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError, InfraError, ZettaError
from zetta.runtime.registry import AGENT_PREFIX

if TYPE_CHECKING:
    from zetta.primitives.mcp_doors import Door
    from zetta.primitives.mcp_tools import Tools

UNLIMITED_TICKS: Final = 100_000
"""Ticks of an episode without the published budget: more than all turns can use."""
TURNS: Final = 240
"""A client that looks at each result needs many short turns."""
LOOK_S: Final = 0.05
"""How often it is looked whether everything is over."""
LAST_ANSWERS_S: Final = 2.0
"""For telling clients why it is over, after an error."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for whom, seconds; 0 for no limit."""

    call_s: float
    idle_s: float
    """Silence of all clients after which the episode ends."""
    linger_s: float
    """Silence after the end of the episode until an HTTP server ends."""


@dataclass(frozen=True, slots=True)
class HttpWishes:
    """What was said about HTTP."""

    at: str
    """Empty for stdin and stdout."""
    token_file: Path | None
    allow_remote: bool
    names: tuple[str, ...]


def command(
    instruction: options.Instruction = None,
    sim: options.Sim = "libero",
    arm: options.Arm = None,
    suite: options.Suite = None,
    task: Annotated[int, typer.Option(help="Task number.")] = 0,
    init: options.Init = None,
    seed: options.Seed = 0,
    http: Annotated[
        str, typer.Option(help="Listen at ADDRESS:PORT instead of stdin and stdout.")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token of HTTP clients; else one is made.")
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let other machines in: see the documentation.")
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="HOST:PORT by which HTTP clients also call it.")
    ] = None,
    policy: options.SkillPolicy = "",
    sensing: options.Seeing = "vision",
    turns: Annotated[int, typer.Option(help="Calls of `execute` and `done` in all.")] = TURNS,
    commands_per_turn: Annotated[int, typer.Option(help="Commands of one call.")] = 4,
    seconds: Annotated[float, typer.Option(help="Seconds it may take; 0 for no limit.")] = 0.0,
    call_seconds: Annotated[
        float, typer.Option(help="Seconds of one call, motions included; they are stopped then.")
    ] = 120.0,
    idle: Annotated[
        float, typer.Option(help="Seconds without a call after which it ends; 0 for never.")
    ] = 0.0,
    linger: Annotated[
        float, typer.Option(help="Seconds that an HTTP server stays after the episode.")
    ] = 30.0,
    steps: options.Steps = "unlimited",
    overlays: options.Overlays = "all",
    realtime: options.Realtime = False,
    bundle: Annotated[
        str, typer.Option(help="Skills behind the command `skill`; none by default.")
    ] = "none",
    localizer: options.Localizer = None,
    video: options.Video = False,
    render: options.Render = "fast",
    option: options.More = None,
    out: options.Out = None,
    require_success: options.RequireSuccess = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object in the end; with --http.")
    ] = False,
) -> None:
    """Let an agentic client drive one episode: it observes, executes commands, says done."""
    if as_json and not http:
        raise ConfigError(
            "stdout belongs to the protocol; leave --json out and read run.json in the folder of "
            "the run, or use --http"
        )
    import_module("zetta.primitives.mcp_server")  # says at once which extra is missing
    if arm is not None:
        sim, realtime = arm_name(arm), True
    told = {
        "turns": f"{turns}",
        "commands_per_turn": f"{commands_per_turn}",
        "drive_s": f"{seconds:g}",
        "step_budget": steps_option(steps, UNLIMITED_TICKS),
        "overlays": overlays,
        "vla": policy,
    }
    given = tuple(f"{key}={value}" for key, value in told.items() if value)
    suite = suite or (DEFAULTS[sim].suite if sim in DEFAULTS else None)
    wishes = Wishes(
        sim, suite, None if instruction and not task else f"{task}", init, seed, 1,
        AGENT_PREFIX + MCP, sensing=sensing, render=render,
        bundle=bundle, localizer=localizer, options=(*given, *(option or ())),
        instruction=instruction,
    )  # fmt: skip
    patience = _patience(call_seconds, idle, linger)
    access = HttpWishes(http, token_file, allow_remote, tuple(name or ()))
    simulator = find_simulator(sim)
    spec = plan(wishes, simulator)[0]
    check_options(spec)
    agent, manner = McpAgent(), Manner(video=video, realtime=realtime)

    def work() -> Answer:
        return carry_out([spec], manner, simulator, out, MCP, agent)

    with output.reserved_stdout(not http):
        answer = _serve(spec, agent, work, access, patience)
        if as_json:
            output.emit(answer.to_json())
        else:
            tell(answer, wishes)
    report = answer.reports[0]
    if report.error is not None or (require_success and not report.success):
        raise typer.Exit(1)


def _patience(call_s: float, idle_s: float, linger_s: float) -> Patience:
    if not (call_s > 0.0 and idle_s >= 0.0 and linger_s >= 0.0):
        raise ConfigError("--call-seconds is greater than 0, --idle and --linger are 0 or greater")
    return Patience(call_s, idle_s, linger_s)


def _serve(
    spec: RunSpec,
    agent: McpAgent,
    work: Callable[[], Answer],
    access: HttpWishes,
    patience: Patience,
) -> Answer:
    """Serve until everything is over, and return what it came to."""
    from zetta.primitives.mcp_tools import Tools

    tools = Tools(agent, limits_of(spec), patience.call_s)
    episode = EpisodeThread(work, agent)
    with _door(tools, access) as door, wish_to_end() as ending:
        episode.start()
        door.open()
        reason = _watched(episode, door, ending, tools, patience, bool(access.at))
        output.note(reason)
        agent.leave(reason)
        episode.join()
        _let_answers_go(tools, door)
        door.close()
    return episode.answer()


@contextlib.contextmanager
def _door(tools: Tools, access: HttpWishes) -> Iterator[Door]:
    """Give the way in; a socket and a token of its own end with it."""
    from zetta.primitives.mcp_server import make_server

    server = make_server(tools, _version())
    if not access.at:
        if sys.stdin is not None and sys.stdin.isatty():
            output.note("speaking the Model Context Protocol on stdin and stdout; --http for HTTP")
        from zetta.primitives.mcp_stdio import StdioDoor

        yield StdioDoor(server, _own_stdin(), output.reserved_stream().fileno())
        return
    from zetta.primitives.mcp_http import PATH, HttpDoor

    place = parse_place(access.at)
    check_place(place, access.allow_remote, access.token_file, access.names)
    with token_at(access.token_file) as (token, path), listen(place) as listening:
        port = int(listening.getsockname()[1])
        names = names_of(place, port, access.names)
        output.note(f"serving MCP at http://{names[0]}{PATH}; its token is in {path}")
        yield HttpDoor(server, listening, token, names)


def _version() -> str:
    try:
        return version("zetta")
    except PackageNotFoundError:
        return "source tree"


def _own_stdin() -> int:
    """Return stdin for the protocol alone; whatever else reads it finds it empty."""
    own = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return own


class EpisodeThread:
    """Runs the episode in a thread of its own, for a renderer belongs to one."""

    def __init__(self, work: Callable[[], Answer], agent: McpAgent) -> None:
        """Take what is to be done; `agent` is told when it is over."""
        self._work, self._agent = work, agent
        self._answer: Answer | None = None
        self.error: ZettaError | None = None
        # Daemonic: a second Ctrl-C ends everything at once.
        self._thread = threading.Thread(target=self._run, name="episode", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait until the log is written."""
        while self._thread.is_alive():
            self._thread.join(LOOK_S)  # in small steps: signals are heard between them

    def answer(self) -> Answer:
        """Return what it came to.

        Raises:
            ZettaError: it could not be put together.
            InfraError: it broke down, and its thread has said how.
        """
        if self.error is not None:
            raise self.error
        if self._answer is None:
            raise InfraError("the episode broke down; what is above says where")
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._work()
        except ZettaError as error:
            self.error = error
        finally:
            self._agent.finish("it broke down" if self.error is None else str(self.error))


def _watched(
    episode: EpisodeThread,
    door: Door,
    ending: Ending,
    tools: Tools,
    patience: Patience,
    http: bool,
) -> str:
    """Wait until it is time to end; return why."""
    while not ending.stop.wait(LOOK_S):
        if door.gone.is_set():
            return "the HTTP server broke down" if http else "the client is gone"
        silent = time.monotonic() - tools.last_call if not tools.in_flight else 0.0
        if not episode.running:
            if episode.error is not None and silent > LAST_ANSWERS_S:
                return "the episode could not be run"
            if http and silent > patience.linger_s:
                return "the episode is over and nobody calls any more"
        elif patience.idle_s and silent > patience.idle_s:
            return f"nobody called for {patience.idle_s:g} s"
    return "the server was told to end"


def _let_answers_go(tools: Tools, door: Door) -> None:
    """Wait a moment for calls that have just been answered."""
    deadline = time.monotonic() + LAST_ANSWERS_S
    while tools.in_flight and time.monotonic() < deadline and not door.gone.wait(LOOK_S):
        pass
