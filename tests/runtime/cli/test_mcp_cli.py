"""`zetta mcp` as a process, with the protocol's own client over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from zetta.primitives.agent.drive_log import read_summary, read_turns
from zetta.primitives.mcp_doors import MESSAGE_MOST

PATIENCE_S = 90.0
TOY = ["--sim", "toy", "--task", "2", "--sensing", "oracle"]


def _command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "zetta.runtime.cli.main", "mcp", *TOY, "--out", str(out), *more]


def _text(result: types.CallToolResult) -> str:
    first = result.content[0]
    assert first.type == "text"
    return first.text


def test_a_task_is_done_over_pipes_and_the_log_is_that_of_a_drive(tmp_path: Path) -> None:
    out = tmp_path / "run"
    program, *arguments = _command(out)
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))

    async def talk() -> None:
        async with Client(server, read_timeout_seconds=PATIENCE_S) as client:
            assert len((await client.list_tools()).tools) == 8
            seen = await client.call_tool("observe", {})
            assert [each.type for each in seen.content] == ["text", "image", "image"]
            for lines in (["pick red cube"], ["place on yellow plate"]):
                came = await client.call_tool("execute", {"commands": lines, "pictures": False})
                assert f"{lines[0]}: ok" in _text(came)
            assert "BY THE EVIDENCE: done" in _text(await client.call_tool("done", {}))
            late = await client.call_tool("execute", {"commands": ["move z 1"]})
            assert late.is_error
            assert _text(late).startswith("the episode is over: done")

    asyncio.run(talk())
    log = out / "episodes" / "000"
    turns = read_turns(log)
    assert [turn.answer.commands[0] for turn in turns] == [
        *("pick red cube", "place on yellow plate", "done")
    ]
    assert read_summary(log).verified is True
    report = json.loads((out / "run.json").read_text())["episodes"][0]
    assert report["success"] is True
    assert set(report["sources"]) == {"agent:mcp"}
    assert report["agent"] == "mcp"


def test_pipes_carry_the_protocol_alone_and_their_end_ends_the_episode(tmp_path: Path) -> None:
    out = tmp_path / "run"
    server = subprocess.Popen(
        _command(out, "--realtime"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "0"},
    }
    try:
        server.stdin.write(b"not json\n" + b"x" * (MESSAGE_MOST + 100) + b"\n")
        server.stdin.write(_message(1, "initialize", hello))
        server.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(3)]
        errors = [answer["error"]["message"] for answer in answers if "error" in answer]
        assert [each.partition(":")[0] for each in errors] == [
            "this is no message of the protocol",
            f"a message has at most {MESSAGE_MOST} bytes",
        ]
        assert answers[2]["result"]["serverInfo"]["name"] == "zetta"
        wait = {"name": "execute", "arguments": {"commands": ["wait 5"]}}
        server.stdin.write(_message(2, "tools/call", wait))
        server.stdin.flush()
        rest, told = server.communicate(timeout=PATIENCE_S)  # closes the pipe
    finally:
        server.kill()
    assert server.returncode == 0
    for line in rest.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert b"solved 0/1" in told
    assert read_summary(out / "episodes" / "000").ended == "the client is gone"


def _message(number: int, method: str, params: dict[str, object]) -> bytes:
    whole = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(whole).encode() + b"\n"


# ------------------------------------------------------------------ HTTP


@dataclass
class Serving:
    """A server over HTTP, and what it needs to be called."""

    process: asyncio.subprocess.Process
    url: str
    token_file: Path

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}

    @asynccontextmanager
    async def client(self, name: str, mode: str) -> AsyncIterator[Client]:
        info = types.Implementation(name=name, version="1")
        async with (
            httpx2.AsyncClient(headers=self.bearer, timeout=PATIENCE_S) as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=mode,
                client_info=info,
                read_timeout_seconds=PATIENCE_S,
            ) as client,
        ):
            yield client


async def _serving(out: Path, *more: str) -> Serving:
    process = await asyncio.create_subprocess_exec(
        *_command(out, "--http", "127.0.0.1:0", *more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    while line := (await process.stderr.readline()).decode():
        found = re.search(r"serving MCP at (\S+); its token is in (\S+)", line)
        if found:
            return Serving(process, found.group(1), Path(found.group(2)))
    raise AssertionError("the server ended before it served")


async def _statuses(serving: Serving) -> dict[str, int]:
    """Return what HTTP says to requests that are wrong in one way each."""
    good = {
        **serving.bearer,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    newest = {"MCP-Protocol-Version": "2026-07-28"}
    wrong = {
        "no token": {"Authorization": ""},
        "wrong token": {"Authorization": "Bearer guessed"},
        "foreign origin": {"Origin": "http://evil.example"},
        "own origin": {"Origin": serving.url.removesuffix("/mcp")},
        "foreign host": {"Host": "evil.example"},
        "foreign host, newest": {"Host": "evil.example", **newest},
        "foreign origin, newest": {"Origin": "http://evil.example", **newest},
    }
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        found = {
            name: (await http.post(serving.url, headers={**good, **h}, content="{}")).status_code
            for name, h in wrong.items()
        }
        large = await http.post(serving.url, headers=good, content="x" * (MESSAGE_MOST + 1))
        elsewhere = await http.get(serving.url.removesuffix("/mcp") + "/docs", headers=good)
    return found | {"too large": large.status_code, "no such path": elsewhere.status_code}


async def _until_moving(client: Client) -> None:
    while "NOW BEING CARRIED OUT" not in _text(await client.call_tool("state", {})):
        pass


async def _two_clients(serving: Serving) -> None:
    async with serving.client("ann", "auto") as ann, serving.client("bob", "legacy") as bob:
        assert (ann.protocol_version, bob.protocol_version) == ("2026-07-28", "2025-11-25")
        moved = await ann.call_tool("execute", {"commands": ["move z -3"]})
        assert "move z -3 cm: ok" in _text(moved)
        running = asyncio.create_task(ann.call_tool("execute", {"commands": ["wait 5"]}))
        await _until_moving(bob)
        second = await bob.call_tool("execute", {"commands": ["move z 1"]})
        assert second.is_error
        assert "another client (ann) drives" in _text(second)
        assert _text(await bob.call_tool("stop", {})) == "Stopped: wait 5 s."
        assert "FAILED (interrupted)" in _text(await running)
    async with serving.client("ann", "auto") as ann:
        leaving = asyncio.create_task(ann.call_tool("execute", {"commands": ["wait 5"] * 4}))
        await _until_moving(ann)
        leaving.cancel()
        await asyncio.wait({leaving})
        while "FAILED (interrupted)" not in _text(await ann.call_tool("state", {})):
            pass  # whoever leaves a call stops its motion


def test_over_http_strangers_are_refused_and_one_client_drives(tmp_path: Path) -> None:
    out = tmp_path / "run"

    async def talk() -> tuple[bytes, bytes, str, Path]:
        serving = await _serving(out, "--realtime", "--json")
        try:
            assert await _statuses(serving) == {
                "no token": 401,
                "wrong token": 401,
                "foreign origin": 403,
                "own origin": 403,
                "foreign host": 421,
                "foreign host, newest": 421,
                "foreign origin, newest": 403,
                "too large": 413,
                "no such path": 404,
            }
            await _two_clients(serving)
            token = serving.bearer["Authorization"].removeprefix("Bearer ")
            serving.process.send_signal(signal.SIGINT)
            said, told = await serving.process.communicate()
            assert serving.process.returncode == 0
            return said, told, token, serving.token_file
        finally:
            if serving.process.returncode is None:
                serving.process.kill()

    said, told, token, token_file = asyncio.run(talk())
    report = json.loads(said)["episodes"][0]
    assert report["ended"] == "the server was told to end"
    assert report["error"] is None
    assert not token_file.exists()
    assert token.encode() not in told
    for path in out.rglob("*"):
        assert path.is_dir() or token.encode() not in path.read_bytes()
