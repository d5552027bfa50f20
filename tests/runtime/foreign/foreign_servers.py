"""Small servers that behave as other people's do, or worse."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import zmq
from websockets.sync.server import ServerConnection, serve

from zetta.runtime.core import ArmState, Observation, Proprio, read_only
from zetta.runtime.foreign import gr00t_codec, openpi_codec

Rows = np.ndarray[Any, Any]


@contextmanager
def openpi_server(visit: Callable[[ServerConnection], None]) -> Iterator[int]:
    """Run `visit` for each connection; yields the port."""
    with serve(visit, "127.0.0.1", 0, compression=None, max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join(5)


def upstream(line: ServerConnection, rows: Rows | None = None, metadata: object = None) -> None:
    """Answer as the published openpi server does."""
    line.send(openpi_codec.encode({} if metadata is None else metadata))
    for message in line:
        assert isinstance(message, bytes)
        openpi_codec.decode(message)
        actions = np.zeros((10, 7), np.float32) if rows is None else rows
        line.send(openpi_codec.encode({"actions": actions, "policy_timing": {"infer_ms": 1.0}}))


@contextmanager
def gr00t_server(answer: Callable[[dict[str, Any]], bytes | None]) -> Iterator[int]:
    """Answer each request of a REP socket; None keeps silent and makes the socket anew."""
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.setsockopt(zmq.LINGER, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    stop_out = context.socket(zmq.PAIR)
    stop_out.bind("inproc://stop")
    stop_in = context.socket(zmq.PAIR)
    stop_in.connect("inproc://stop")

    def run() -> None:
        poller = zmq.Poller()
        poller.register(socket, zmq.POLLIN)
        poller.register(stop_in, zmq.POLLIN)
        while stop_in not in (ready := dict(poller.poll())):
            if socket in ready:
                who, _, message = socket.recv_multipart()
                said = answer(gr00t_codec.decode(message))
                if said is not None:
                    socket.send_multipart([who, b"", said])

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield port
    finally:
        stop_out.send(b"")
        thread.join(5)
        for used in (socket, stop_out, stop_in):
            used.close(linger=0)
        context.term()


def sensed() -> Observation:
    """Return what a LIBERO arm could sense."""
    image = read_only(np.random.default_rng(0).integers(0, 256, (256, 256, 3)), np.uint8)
    arm = ArmState(
        read_only([0.1, -0.2, 0.3]), read_only([1.0, 0, 0, 0]), read_only(np.zeros(7)), 0.06
    )
    return Observation(Proprio(0.25, (arm,)), "", {"agentview": image, "wrist": image})
