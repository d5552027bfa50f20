"""A server with OpenAI's interface on 127.0.0.1 that says what a script tells it to."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler"], None]
TOKENS = {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
DRIP_S = 0.05


@dataclass
class FakeServer:
    """Answers the k-th request with the k-th answer, the last one again and again."""

    answers: Sequence[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @property
    def texts(self) -> str:
        """Return all requests as one text."""
        return json.dumps(self.requests, ensure_ascii=False)

    def user_text(self, request: int = 0) -> str:
        """Return the texts that a request holds, pictures apart."""
        found = []
        for message in self.requests[request]["messages"]:
            content = message.get("content")
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found += [part["text"] for part in parts or [] if part["type"] == "text"]
        return "\n".join(found)

    def pictures(self, request: int = 0) -> list[str]:
        """Return the addresses of the pictures of a request."""
        contents = [m["content"] for m in self.requests[request]["messages"]]
        parts = [part for c in contents if isinstance(c, list) for part in c]
        return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    fake: FakeServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.fake.requests.append(json.loads(body))
        self.fake.headers.append(dict(self.headers))
        place = min(len(self.fake.requests), len(self.fake.answers)) - 1
        with contextlib.suppress(OSError):  # who asked may have gone away
            self.fake.answers[place](self)

    def log_message(self, *args: object) -> None:
        pass

    def send(
        self,
        body: bytes,
        status: int = 200,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving(*answers: Answer) -> Iterator[FakeServer]:
    """Serve a script for as long as the block runs."""
    fake = FakeServer(answers)
    handler = type("Scripted", (Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


# --------------------------------------------------------------------------- answers


def _completion(message: Mapping[str, Any], finish: str = "stop", usage: Any = TOKENS) -> bytes:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    return json.dumps(
        {
            "id": "c", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage,
        }
    ).encode()  # fmt: skip


def tool(arguments: Mapping[str, Any] | str, usage: Any = TOKENS) -> Answer:
    """Return an answer that calls the first tool of the request; text arguments go as they are."""

    def answer(handler: Handler) -> None:
        name = handler.fake.requests[-1]["tools"][0]["function"]["name"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"id": "t", "type": "function", "function": {"name": name, "arguments": text}}
        handler.send(_completion({"content": None, "tool_calls": [call]}, "tool_calls", usage))

    return answer


def text(content: str, finish: str = "stop", usage: Any = TOKENS) -> Answer:
    """Return an answer in plain words."""
    return lambda handler: handler.send(_completion({"content": content}, finish, usage))


def status(code: int, message: str = "no", headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer that is an HTTP error."""
    body = json.dumps({"error": {"message": message, "type": "x", "code": None}}).encode()
    return lambda handler: handler.send(body, code, headers=headers)


def raw(body: bytes, kind: str = "application/json") -> Answer:
    """Return an answer that is what it is."""
    return lambda handler: handler.send(body, kind=kind)


def drip(handler: Handler) -> None:
    """Answer one character after the other and never end."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.end_headers()
    while not handler.fake.stop.is_set():
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(DRIP_S)


def silent(handler: Handler) -> None:
    """Never answer."""
    handler.fake.stop.wait()


def flood(handler: Handler) -> None:
    """Answer with very much, and never end."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.end_headers()
    while not handler.fake.stop.is_set():
        handler.wfile.write(b" " * 100_000)


def no_tools(answer: Answer) -> Answer:
    """Return an answer of a server that refuses requests with tools."""
    refuse = status(400, "tools are not supported")
    return lambda handler: (refuse if "tools" in handler.fake.requests[-1] else answer)(handler)


def anthropic(content: str) -> Answer:
    """Return an answer in plain words of a server with Anthropic's interface."""
    body = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None,
        "content": [{"type": "text", "text": content}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 700, "output_tokens": 50, "cache_read_input_tokens": 300},
    }  # fmt: skip
    return lambda handler: handler.send(json.dumps(body).encode())


def no_option(name: str, answer: Answer) -> Answer:
    """Return an answer of a server that refuses requests with an option."""
    refuse = status(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    return lambda handler: (refuse if name in handler.fake.requests[-1] else answer)(handler)
