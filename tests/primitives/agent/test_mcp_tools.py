"""The tools of the server: what they answer, what they refuse, and who may drive."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client as McpClient
from PIL import Image
from toy_calls import toy_drive

from zetta.primitives.agent.mcp_agent import McpAgent
from zetta.primitives.agent.records import Limits
from zetta.primitives.command_grammar import GRAMMAR
from zetta.primitives.command_words import LINE_MOST
from zetta.primitives.mcp_arguments import Given
from zetta.primitives.mcp_server import make_server
from zetta.primitives.mcp_tools import SEAT_S, Client, Tools
from zetta.runtime.errors import ConfigError
from zetta.runtime.pacing import MonotonicClock

_T = TypeVar("_T")
ANN, BOB = Client("a", "ann"), Client("b", "bob")


def _with(tools: Tools, say: Callable[[Tools], Awaitable[_T]]) -> _T:
    async def main() -> _T:
        return await say(tools)

    return asyncio.run(main())


def test_a_client_of_the_protocol_lists_looks_and_moves(tmp_path: Path) -> None:
    async def talk(tools: Tools) -> None:
        async with McpClient(make_server(tools, "1.2")) as client:
            assert client.server_info.name == "zetta"
            listed = (await client.list_tools()).tools
            names = [tool.name for tool in listed]
            assert names == [
                *("observe", "state", "grammar", "dry_run"),
                *("execute", "stop", "notes", "done"),
            ]
            for tool in listed:
                assert "http" not in f"{tool.description} {json.dumps(tool.input_schema)}"
                assert "{" not in (tool.description or "{")
            seen = await client.call_tool("observe", {"cameras": ["front"]})
            text, picture = seen.content
            assert text.type == "text"
            assert "grip site" in text.text
            assert picture.type == "image"
            image = Image.open(io.BytesIO(base64.b64decode(picture.data)))
            assert image.format == "JPEG"
            assert min(image.size) >= 256
            came = await client.call_tool("execute", {"commands": ["move z -5"]})
            assert not came.is_error
            assert [each.type for each in came.content] == ["text", "image", "image"]
            refused = await client.call_tool("execute", {"commands": "move z -5"})
            assert refused.is_error

    with toy_drive(tmp_path / "log") as drive:
        _with(Tools(drive.agent), talk)


def test_each_tool_says_in_words_what_came_of_it(tmp_path: Path) -> None:
    async def talk(tools: Tools) -> None:
        state = await tools.call("state", {}, ANN)
        assert "TASK: put the red cube on the yellow plate" in state.text
        assert not state.pictures
        assert (await tools.call("grammar", {}, ANN)).text == GRAMMAR
        checked = await tools.call("dry_run", {"commands": ["move z -1"]}, ANN)
        assert not checked.refused
        refused = await tools.call("dry_run", {"commands": ["move z -20"] * 4}, ANN)
        assert refused.refused
        assert "REFUSED: command 2" in refused.text
        wrong = await tools.call("execute", {"commands": ["fly away"], "pictures": False}, ANN)
        assert "nothing was carried out" in wrong.text
        assert "control steps used: 0" in wrong.text
        unseen = await tools.call("execute", {"commands": ["move z 1"], "cameras": ["attic"]}, ANN)
        assert unseen.refused
        nothing = await tools.call("stop", {}, ANN)
        assert nothing.text.startswith("Nothing was being carried out")
        assert (await tools.call("notes", {"text": "high"}, ANN)).text == "NOTES: high"
        assert "MEMORY: high" in (await tools.call("state", {}, ANN)).text

    with toy_drive(tmp_path / "log") as drive:
        _with(Tools(drive.agent), talk)


def test_done_tells_what_is_missing_and_after_the_end_everything_is_refused(tmp_path: Path) -> None:
    async def talk(tools: Tools) -> None:
        denied = await tools.call("done", {}, ANN)
        assert denied.text.startswith("BY THE EVIDENCE: NOT done")
        lines = ["pick red cube", "place on yellow plate"]
        moved = await tools.call("execute", {"commands": lines, "cameras": ["wrist"]}, ANN)
        assert [picture.name for picture in moved.pictures] == ["wrist"]
        last = await tools.call("done", {}, ANN)
        assert not last.refused
        assert last.text.startswith("BY THE EVIDENCE: done")
        assert "The episode is over: done" in last.text
        for name in ("observe", "state", "grammar", "dry_run", "execute", "stop", "notes", "done"):
            late = await tools.call(name, {"commands": ["move z 1"]}, ANN)
            assert late.refused
            assert late.text.startswith("the episode is over: done")

    with toy_drive(tmp_path / "log") as drive:
        _with(Tools(drive.agent), talk)


def test_one_client_drives_and_another_may_look_and_stop(tmp_path: Path) -> None:
    clock = [0.0]

    async def talk(tools: Tools) -> None:
        running = asyncio.create_task(tools.call("execute", {"commands": ["wait 5"]}, ANN))
        while "NOW BEING CARRIED OUT: wait 5 s" not in (await tools.call("state", {}, BOB)).text:
            pass
        clock[0] += 10 * SEAT_S  # however long it takes, it is hers while it moves
        second = await tools.call("execute", {"commands": ["move z 1"]}, BOB)
        assert second.refused
        assert "another client (ann) drives" in second.text
        assert (await tools.call("done", {}, BOB)).refused
        assert (await tools.call("notes", {"text": "mine"}, BOB)).refused
        assert (await tools.call("stop", {}, BOB)).text == "Stopped: wait 5 s."
        assert "FAILED (interrupted)" in (await running).text
        assert (await tools.call("execute", {"commands": ["move z 1"]}, BOB)).refused
        clock[0] += SEAT_S
        taken = await tools.call("execute", {"commands": ["move z 1"]}, BOB)
        assert not taken.refused
        assert (await tools.call("execute", {"commands": ["move z 1"]}, ANN)).refused

    with toy_drive(tmp_path / "log", MonotonicClock()) as drive:
        _with(Tools(drive.agent, now=lambda: clock[0]), talk)


def test_a_call_that_takes_too_long_is_stopped_and_says_so(tmp_path: Path) -> None:
    async def talk(tools: Tools) -> None:
        while (await tools.call("state", {}, ANN)).refused:
            pass  # the world is still being built
        late = await tools.call("execute", {"commands": ["wait 5", "wait 5"]}, ANN)
        assert "the 0.5 s of this call were over and the motion was stopped" in late.text
        assert "interrupted" in late.text

    with toy_drive(tmp_path / "log", MonotonicClock()) as drive:
        _with(Tools(drive.agent, call_s=0.5), talk)


def test_a_cancelled_call_stops_its_motion(tmp_path: Path) -> None:
    async def talk(tools: Tools) -> None:
        running = asyncio.create_task(tools.call("execute", {"commands": ["wait 5"]}, ANN))
        while "NOW BEING CARRIED OUT" not in (await tools.call("state", {}, ANN)).text:
            pass
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        while tools.agent.busy:
            await asyncio.sleep(0)
        assert "FAILED (interrupted)" in (await tools.call("state", {}, ANN)).text
        assert tools.in_flight == 0

    with toy_drive(tmp_path / "log", MonotonicClock()) as drive:
        _with(Tools(drive.agent), talk)


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("execute", {}, "needs the argument 'commands'"),
        ("execute", {"commands": []}, "at least one"),
        ("execute", {"commands": ["wait"] * 5}, "has 5 entries; at most 4"),
        ("execute", {"commands": ["x" * (LINE_MOST + 1)]}, f"at most {LINE_MOST}"),
        ("execute", {"commands": [1]}, "a list of texts"),
        ("execute", {"commands": ["wait"], "speed": 2}, "no argument 'speed'"),
        ("execute", {"commands": ["wait"], "pictures": "yes"}, "true or false"),
        ("notes", {"text": "x" * 2501}, "2501 characters; at most 2500"),
        ("observe", {"cameras": "front"}, "a list of texts"),
        ("fly", {}, "there is no tool 'fly'; known: observe"),
        ("state", {"deep": True}, "it takes none"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    tool: str, arguments: dict[str, object], why: str
) -> None:
    tools = Tools(McpAgent(), Limits(commands_per_turn=4))
    reply = _with(tools, lambda t: t.call(tool, arguments, ANN))
    assert reply.refused
    assert why in reply.text
    assert len(reply.text) < 300


_PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=80)


@given(
    st.dictionaries(
        st.sampled_from(["lines", "flag", "text", "other"]),
        _PLAIN | st.lists(_PLAIN, max_size=4) | st.just({"deep": [["x" * 1000]]}),
    )
)
def test_whatever_is_given_is_read_or_refused_shortly(arguments: dict[str, object]) -> None:
    reason = ""
    try:
        read = Given("tool", arguments, ("lines", "flag", "text"))
        lines, text = read.texts("lines", 3, 20), read.text("text", 20)
        assert lines is None or (0 < len(lines) <= 3 and all(len(line) <= 20 for line in lines))
        assert text is None or len(text) <= 20
        assert read.flag("flag", True) in (True, False)
    except ConfigError as error:
        reason = str(error)
    assert len(reason) < 300
