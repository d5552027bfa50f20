"""The inside of one worker process: runs episodes until the pool says stop or goes away."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

from zetta.runtime.rollouts.factory import EpisodeFactory
from zetta.runtime.rollouts.messages import (
    decode,
    encode,
    error_to_json,
    identity_to_json,
    record_to_json,
    spec_from_json,
)

TICK_REPORT_S = 0.5
"""Seconds between two reports of a running episode."""


def main(factory_name: str, read_fd: int, write_fd: int) -> None:
    """Serve the pool behind the two pipe ends, then end the process."""
    line_out = os.fdopen(write_fd, "wb", buffering=0)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(read_fd, requests), daemon=True)
    listener.start()
    serve = Serving(factory_name, line_out.write)
    serve.say({"say": "hello", "pid": os.getpid()})
    while (request := requests.get())["do"] != "stop":
        serve.answer(request)
    serve.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a renderer's destructors must not turn a finished job into an error


def _listen(read_fd: int, requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Pass requests on; when the pool has gone, end this process and its children at once."""
    with os.fdopen(read_fd, "rb") as line_in:
        for line in line_in:
            requests.put(decode(line))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


class Serving:
    """Answers requests; also the `Watch` that its factory reports to."""

    def __init__(self, factory_name: str, send: Callable[[bytes], object]) -> None:
        """Serve the factory of that dotted name; `send` takes each line for the pool."""
        self._factory_name = factory_name
        self._factory: EpisodeFactory | None = None
        self._send = send
        self._last_tick_report = 0.0

    def say(self, message: Mapping[str, object]) -> None:
        """Send one message to the pool."""
        self._send(encode(message))

    def phase(self, text: str) -> None:
        """Report what begins now."""
        print(f"-- {text}", file=sys.stderr, flush=True)
        self.say({"say": "phase", "text": text})

    def tick(self, index: int) -> None:
        """Report the tick, not more often than is useful."""
        now = time.monotonic()
        if now - self._last_tick_report >= TICK_REPORT_S:
            self._last_tick_report = now
            self.say({"say": "tick", "index": index})

    def answer(self, request: Mapping[str, Any]) -> None:
        """Carry out one request and send its answer, whatever happens."""
        self._last_tick_report = 0.0
        try:
            self.say(self._carry_out(request))
        except Exception as error:  # the worker loop: the pool decides what an error means
            traceback.print_exc()
            self.say({"say": "error", "id": request["id"], **error_to_json(error)})

    def close(self) -> None:
        """Free the factory; a failure here can harm no result."""
        try:
            if self._factory is not None:
                self._factory.close()
        except Exception:  # the worker loop's end: every result has been sent
            traceback.print_exc()

    def _carry_out(self, request: Mapping[str, Any]) -> dict[str, object]:
        if self._factory is None:
            self.phase("loading")
            self._factory = load_factory(self._factory_name)
        if request["do"] == "identify":
            specs = [spec_from_json(spec) for spec in request["specs"]]
            identity = self._factory.identify(specs)
            return {"say": "identity", "id": request["id"], **identity_to_json(identity)}
        record = self._factory.run(spec_from_json(request["spec"]), self)
        return {"say": "result", "id": request["id"], "record": record_to_json(record)}


def load_factory(dotted: str) -> EpisodeFactory:
    """Return the factory made by the function `package.module:function`."""
    module, _, attribute = dotted.partition(":")
    make = cast(Callable[[], EpisodeFactory], getattr(import_module(module), attribute))
    return make()
