"""A drive as a server of the Model Context Protocol: any agentic client can move the robot.

The tools are in `mcp_tools`, the ways in are `mcp_stdio` and `mcp_http`; all meet here.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from PIL import Image as PillowImage

from zetta.primitives.agent.records import Picture
from zetta.primitives.mcp_tools import Client, Reply, Tool, Tools
from zetta.runtime.prompt_pictures import MEDIA_TYPE, PictureLimits, compressed

NAME: Final = "zetta"
SESSION_HEADER: Final = "mcp-session-id"
INSTRUCTIONS: Final = """\
You drive a robot through short text commands; each is one complete, bounded motion.
Begin with `state` (the task and the robot), `grammar` (the command language) and `observe`
(pictures). Then repeat: decide on a few commands, `execute` them, read the results and look at the
new pictures. Results are honest: FAILED means that the command did not do what it says, and why.
Look before you say `done`; it is checked against what the cameras see. `stop` interrupts a motion
at any time. The robot holds still between calls. When the episode is over every call says so; then
stop calling."""


def make_server(tools: Tools, version: str = "") -> Server[dict[str, Any]]:
    """Return the server that offers `tools`.

    Args:
        tools: what is offered.
        version: of this package, told to clients.
    """

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.offered])

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        reply = await tools.call(params.name, params.arguments or {}, client_of(context))
        return _result(reply)

    return Server(
        NAME,
        version=version,
        title="Zetta",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def client_of(context: ServerRequestContext[Any, Any]) -> Client:
    """Return who calls: by session where the protocol has one, else by name.

    Newer revisions of the protocol have no sessions; there, clients of one name are one client.
    """
    params = context.session.client_params
    name = "" if params is None else params.client_info.name[:100]
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return Client("stdio", name)
    session = headers.get(SESSION_HEADER)
    return Client(f"session {session}" if session else f"name {name}", name)


def _described(tool: Tool) -> types.Tool:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(each) for name, each in tool.arguments.items()},
        "additionalProperties": False,
    }
    if tool.needed:
        schema["required"] = list(tool.needed)
    hints = types.ToolAnnotations(
        read_only_hint=not tool.moves, destructive_hint=tool.moves, open_world_hint=False
    )
    return types.Tool(name=tool.name, description=tool.says, input_schema=schema, annotations=hints)


def _result(reply: Reply) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=reply.text)]
    content += [_image(picture) for picture in reply.pictures]
    return types.CallToolResult(content=content, is_error=reply.refused)


def _image(picture: Picture) -> types.ContentBlock:
    image = compressed(PillowImage.fromarray(picture.image), PictureLimits())
    if image is None:
        return types.TextContent(text=f"the picture of {picture.name} cannot be made small enough")
    return types.ImageContent(data=base64.b64encode(image).decode("ascii"), mime_type=MEDIA_TYPE)
