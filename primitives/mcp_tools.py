"""The tools by which a client of the Model Context Protocol drives; their docstrings are prompts.

What a client reads of a tool is the docstring of its method, so these say what a caller has to
know, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

from zetta.primitives.agent.drive import MEMORY_MOST
from zetta.primitives.agent.mcp_agent import CameOf, McpAgent
from zetta.primitives.agent.observation import turn_text
from zetta.primitives.agent.records import Limits, Picture, Turn
from zetta.primitives.agent.verifier import Verification
from zetta.primitives.command_grammar import GRAMMAR
from zetta.primitives.command_words import LINE_MOST
from zetta.primitives.mcp_arguments import Given
from zetta.primitives.overlays import NO_OVERLAYS
from zetta.runtime.errors import ConfigError, Timeout, ZettaError, suggest

_T = TypeVar("_T")
Schema: TypeAlias = Mapping[str, object]
"""A JSON schema of one argument."""

CALL_S: Final = 120.0
"""Seconds that a call may take, motions included."""
STOPPING_S: Final = 10.0
"""Seconds that a motion has to come to rest after it was told to stop."""
SEAT_S: Final = 120.0
"""A client that was silent for so long may be taken over from."""
CAMERAS_MOST: Final = 16
NAME_MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Client:
    """Who calls."""

    key: str
    """Tells clients apart."""
    name: str = ""
    """What it calls itself."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call is answered with."""

    text: str
    pictures: tuple[Picture, ...] = ()
    refused: bool = False


_Call: TypeAlias = Callable[[Given, Client], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is offered."""

    name: str
    says: str
    arguments: Mapping[str, Schema]
    needed: tuple[str, ...]
    call: _Call
    moves: bool
    """Whether it may move the robot or change what is kept."""


_COMMANDS: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "maxLength": LINE_MOST},
    "minItems": 1,
    "description": "Lines of the command language, in the order in which they are carried out.",
}
_CAMERAS: Final[Schema] = {
    "type": "array",
    "items": {"type": "string", "maxLength": NAME_MOST},
    "description": "Names of the cameras whose pictures are returned; all if left out.",
}
_PICTURES: Final[Schema] = {
    "type": "boolean",
    "description": "Whether new pictures are returned; true if left out.",
}
_OVERLAYS: Final[Schema] = {
    "type": "boolean",
    "description": "Whether grid, gripper and marks are drawn in; true if left out.",
}
_TEXT: Final[Schema] = {
    "type": "string",
    "maxLength": MEMORY_MOST,
    "description": "Replaces what was written; left out, nothing changes.",
}


@dataclass(slots=True)
class _Seat:
    """Who drives."""

    client: Client | None = None
    seen: float = 0.0
    """When it called last."""


@dataclass(slots=True)
class Tools:
    """Carries out calls; all methods belong to one event loop."""

    agent: McpAgent
    limits: Limits = field(default_factory=Limits)
    call_s: float = CALL_S
    now: Callable[[], float] = time.monotonic
    last_call: float = 0.0
    """When anybody called last."""
    calls: int = 0
    in_flight: int = 0
    """Calls that are not answered yet."""
    _seat: _Seat = field(default_factory=_Seat)

    def __post_init__(self) -> None:
        """Begin to count the silence."""
        self.last_call = self.now()

    @property
    def offered(self) -> tuple[Tool, ...]:
        """Return the tools."""
        most = self.limits.commands_per_turn
        commands: dict[str, Schema] = {"commands": {**_COMMANDS, "maxItems": most}}
        looks: dict[str, Schema] = {"cameras": _CAMERAS}
        rows: tuple[tuple[_Call, Mapping[str, Schema], tuple[str, ...], bool], ...] = (
            (self.observe, looks | {"overlays": _OVERLAYS}, (), False),
            (self.state, {}, (), False),
            (self.grammar, {}, (), False),
            (self.dry_run, commands, ("commands",), False),
            (self.execute, commands | {"pictures": _PICTURES} | looks, ("commands",), True),
            (self.stop, {}, (), True),
            (self.notes, {"text": _TEXT}, (), True),
            (self.done, {}, (), True),
        )
        return tuple(
            Tool(_name(call), _says(call, most), arguments, needed, call, moves)
            for call, arguments, needed, moves in rows
        )

    async def call(self, name: str, arguments: Mapping[str, object], client: Client) -> Reply:
        """Carry out one call; what cannot be done is a refusal, in a sentence."""
        self.last_call = self.now()
        self.calls += 1
        self.in_flight += 1
        if self._seat.client == client:
            self._seat.seen = self.now()
        try:
            if self.agent.over:
                raise ConfigError(self.agent.over)
            tool = _tool(name, self.offered)
            given = Given(name, arguments, tuple(tool.arguments))
            for needed in tool.needed:
                if arguments.get(needed) is None:
                    raise ConfigError(f"the tool {name!r} needs the argument {needed!r}")
            return await tool.call(given, client)
        except ZettaError as error:
            return Reply(str(error), refused=True)
        finally:
            self.in_flight -= 1
            self.last_call = self.now()
            if self._seat.client == client:
                self._seat.seen = self.now()

    # ------------------------------------------------------------------ the tools

    async def observe(self, given: Given, client: Client) -> Reply:
        """Look through the cameras now, and return pictures with the state of the robot as text.

        Each picture has a caption that says what is drawn in: a grid on the table with its
        coordinates in cm, the grip site, the axes of the world, numbered marks on things that were
        found. Coordinates are those that commands take. Looking moves nothing and costs no turn.
        While a motion runs you see the moment between two of its steps.
        """
        cameras = given.texts("cameras", CAMERAS_MOST, NAME_MOST)
        overlays = None if given.flag("overlays", True) else NO_OVERLAYS
        view, moving = await self._asked(self.agent.look(cameras, overlays))
        captions = [f"- {picture.caption}" for picture in view.pictures]
        parts = [f"STATE\n{view.state}", "\n".join(["PICTURES", *captions])]
        return Reply("\n\n".join([*_moving(moving), *parts]), view.pictures)

    async def state(self, given: Given, client: Client) -> Reply:
        """Return the task, the state of the robot, the last results, your notes and what is left.

        It is the cheap look: no pictures. It also tells what you did in earlier turns, and how many
        turns are left.
        """
        view, moving = await self._asked(self.agent.look((), None))
        turn = self.agent.turn
        assert turn is not None  # questions are answered after the first turn began
        if moving:
            turn = replace(turn, state=view.state, results=(), remarks=())
        turn = replace(turn, memory=self.agent.memory, pictures=())
        return Reply("\n\n".join([*_moving(moving), turn_text(turn)]))

    async def grammar(self, given: Given, client: Client) -> Reply:
        """Return the command language: every command, its parameters and limits.

        Read it once before the first command.
        """
        return Reply(GRAMMAR)

    async def dry_run(self, given: Given, client: Client) -> Reply:
        """Check commands together without moving: is each one understood, allowed, within reach?

        It says how each command is understood, and for the first that would be refused why, and
        the nearest that would do. It cannot foresee contact, slipping or a thing that is not where
        it seems to be. `execute` makes the same check, so this is for trying out; it costs no turn.
        """
        lines = self._commands(given)
        rehearsal = await self._asked(self.agent.rehearse(lines))
        told = [f"- {line}" for line in rehearsal.understood]
        understood = "\n".join(["UNDERSTOOD", *told]) if told else "UNDERSTOOD: nothing"
        if rehearsal.refusal:
            verdict = f"REFUSED: {rehearsal.refusal}"
            return Reply(f"{understood}\n\n{verdict}\n\nNothing moved.", refused=True)
        return Reply(f"{understood}\n\nNothing is wrong with them. Nothing moved.")

    async def execute(self, given: Given, client: Client) -> Reply:
        """Carry out commands, at most {most} in one call, and return what came of each.

        One call is one turn. All commands are checked first: if one is refused, nothing moves. Then
        they are carried out in order until one fails. Each result says whether the command did what
        it says, why it stopped, and with numbers what moved; a result that says FAILED is meant.
        The robot holds still between calls. The call returns when the motions are over; if it takes
        too long, or you cancel it, the motion is stopped. One client drives at a time.
        """
        lines = self._commands(given)
        cameras = given.texts("cameras", CAMERAS_MOST, NAME_MOST)
        wanted = given.flag("pictures", True)
        for name in cameras or ():  # before anything moves
            if self.agent.cameras and name not in self.agent.cameras:
                raise ConfigError(f"no camera {name!r}; {suggest(name, self.agent.cameras)}")
        came = await self._carried_out(lines, client)
        return _told(came, cameras if wanted else ())

    async def stop(self, given: Given, client: Client) -> Reply:
        """Stop the motion that runs, now, and whatever commands were to follow it.

        Anybody may stop, whoever drives. The call that gave the commands is told that they were
        interrupted. Afterwards the robot holds still and can be driven again.
        """
        stopped = self.agent.stop()
        if not stopped:
            return Reply("Nothing was being carried out; the robot holds still.")
        return Reply(f"Stopped: {stopped}.")

    async def notes(self, given: Given, client: Client) -> Reply:
        """Read your notes, or replace them; they are kept in the log and shown with the state.

        For what you want to remember over many turns: what you tried, what you measured. They do
        not outlive the episode.
        """
        text = given.text("text", MEMORY_MOST)
        if text is not None:
            self._take_seat(client)
            self.agent.remember(text)
        kept = self.agent.memory
        return Reply(f"NOTES: {kept}" if kept else "NOTES: nothing is written down")

    async def done(self, given: Given, client: Client) -> Reply:
        """Say that the task is done; it is then checked with cameras, depth and gripper.

        If the evidence confirms it, or nobody can tell, the episode is over. If it denies it, you
        are told what is missing and may go on; after the third such claim in a row the episode is
        over as not done. Do not say it to find out: look first.
        """
        return _told(await self._carried_out(("done",), client), ())

    # ------------------------------------------------------------------ parts of them

    def _commands(self, given: Given) -> tuple[str, ...]:
        lines = given.texts("commands", self.limits.commands_per_turn, LINE_MOST)
        assert lines is not None  # it was asked for
        return lines

    async def _carried_out(self, lines: Sequence[str], client: Client) -> CameOf:
        """Let commands be carried out; none of them outlives the call."""
        self._take_seat(client)
        call = asyncio.wrap_future(self.agent.submit(lines))
        try:
            await asyncio.wait({call}, timeout=self.call_s)
        except asyncio.CancelledError:
            self._stop_quietly()
            raise
        if call.done():
            return call.result()
        self._stop_quietly()
        await asyncio.wait({call}, timeout=STOPPING_S)
        if not call.done():
            raise Timeout(
                f"the commands were told to stop after {self.call_s:g} s and have not come to rest "
                f"within {STOPPING_S:g} s more; ask for the state"
            )
        came = call.result()
        remark = f"the {self.call_s:g} s of this call were over and the motion was stopped"
        return replace(came, remarks=(*came.remarks, remark))

    def _stop_quietly(self) -> None:
        with contextlib.suppress(ConfigError):  # it may be over already
            self.agent.stop()

    async def _asked(self, question: Future[_T]) -> _T:
        answer = asyncio.wrap_future(question)
        await asyncio.wait({answer}, timeout=self.call_s)
        if not answer.done():
            answer.cancel()
            raise Timeout(
                f"there was no answer within {self.call_s:g} s; the world is still being built, or "
                "one step of a motion takes long: call again"
            )
        return answer.result()

    def _take_seat(self, client: Client) -> None:
        """Let a client drive, unless another one does.

        Raises:
            ConfigError: another one does.
        """
        seat, now = self._seat, self.now()
        if seat.client is not None and seat.client != client:
            silent = now - seat.seen
            if self.agent.busy or silent < SEAT_S:
                name = f" ({seat.client.name})" if seat.client.name else ""
                raise ConfigError(
                    f"another client{name} drives, and one drives at a time; you may look, check "
                    f"commands and stop, and take over when it has been silent for {SEAT_S:g} s"
                )
        seat.client, seat.seen = client, now


def _name(call: _Call) -> str:
    name: str = getattr(call, "__name__", "")
    return name


def _says(call: _Call, most: int) -> str:
    lines = (call.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines).replace("{most}", f"{most}")


def _tool(name: str, offered: Sequence[Tool]) -> Tool:
    for tool in offered:
        if tool.name == name:
            return tool
    known = ", ".join(tool.name for tool in offered)
    raise ConfigError(f"there is no tool {name[:NAME_MOST]!r}; known: {known}")


def _moving(moving: str) -> tuple[str, ...]:
    return (f"NOW BEING CARRIED OUT: {moving}",) if moving else ()


def _told(came: CameOf, cameras: Sequence[str] | None) -> Reply:
    """Return what came of commands, with the pictures of some cameras, or of all."""
    head = () if came.verification is None else (_judged(came.verification),)
    if came.turn is None:
        turn = Turn(0, "", "", came.results, came.remarks)
        sections = turn_text(turn).split("\n\n")
        told = [s for s in sections if s.startswith(("RESULTS", "REMARKS"))]
        return Reply("\n\n".join([*head, *told, came.over[:1].upper() + came.over[1:]]))
    chosen = tuple(
        replace(picture, caption="")  # `observe` explains what is drawn in
        for picture in came.turn.pictures
        if cameras is None or picture.name in cameras
    )
    turn = replace(
        came.turn,
        results=came.results,
        remarks=came.remarks,
        pictures=chosen,
        memory="",
        history=(),
    )
    return Reply("\n\n".join([*head, turn_text(turn)]), chosen)


def _judged(verification: Verification) -> str:
    """Return what the evidence says, errand by errand."""
    words = {True: "done", False: "NOT done", None: "cannot be told"}
    head = f"BY THE EVIDENCE: {words[verification.verified]}"
    return "\n".join(
        [head, *(f"- {words[each.fulfilled]}: {each.reason}" for each in verification.findings)]
    )
