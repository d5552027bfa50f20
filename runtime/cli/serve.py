"""`zetta serve`: put a policy behind a socket, and make the keys for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.cli.serve_doors import (
    GR00T_BIND,
    OPENPI_BIND,
    Access,
    gr00t_serving,
    openpi_serving,
    own_door,
)
from zetta.runtime.curve_keys import read_server_keys, write_keys
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.policy_server.doors import Door
from zetta.runtime.policy_server.engine import Engine
from zetta.runtime.policy_server.limits import ServingLimits
from zetta.runtime.policy_server.zmq_door import DEFAULT_BIND
from zetta.runtime.transport import check_bind

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Put a policy behind a socket; `zetta run --policy zmq://HOST:PORT` uses it.",
)

STATUS_EVERY_S: Final = 10.0
METRICS: Final = "zetta.runtime.policy_server.metrics"
OnReady: TypeAlias = Callable[[str, str], None]
"""Told the endpoint and the instance once clients can connect."""


@dataclass(frozen=True, slots=True)
class DoorKind:
    """One way in."""

    make: Callable[[Access, OnReady], Door]
    bind: str
    """Where it listens unless told otherwise."""
    check: Callable[[str, bool], None] | None = None
    """Refuses an address, given whether there are keys, before a policy is loaded for nothing."""


DOORS: Final[Mapping[str, DoorKind]] = {
    "zmq": DoorKind(own_door, DEFAULT_BIND, check_bind),
    "openpi": DoorKind(openpi_serving, OPENPI_BIND),
    "gr00t": DoorKind(gr00t_serving, GR00T_BIND),
}
"""Each name is a value of `--door`."""


@app.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    policy: Annotated[str, typer.Option(help="Policy to serve, as zetta run takes it.")] = "",
    door: Annotated[str, typer.Option(help=f"Protocol: {', '.join(DOORS)}.")] = "zmq",
    bind: Annotated[
        str, typer.Option(help="Where to listen; another place than loopback needs --keys.")
    ] = "",
    keys: Annotated[
        Path | None, typer.Option(help="Folder of `zetta serve keygen`, or its server.key.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="File with the key of an openpi or gr00t door.")
    ] = None,
    convention: Annotated[
        str, typer.Option(help="Robot that clients of an openpi or gr00t door have.")
    ] = "libero",
    generation: Annotated[
        str, typer.Option(help="GR00T clients: n1.6 (and later) or n1.5.")
    ] = "n1.6",
    max_sessions: Annotated[int, typer.Option(help="Robots at a time.")] = 16,
    batch: Annotated[int, typer.Option(help="Rows of the largest batch: 1, 2, 4 or 8.")] = 8,
    idle: Annotated[float, typer.Option(help="Seconds until a silent session is ended.")] = 300.0,
    metrics: Annotated[
        int | None, typer.Option(help="Port of Prometheus metrics on loopback; none by default.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object once clients can connect.")
    ] = False,
) -> None:
    """Serve a policy until it is told to end (Ctrl-C or SIGTERM)."""
    if context.invoked_subcommand is not None:
        return
    if door not in DOORS:
        raise ConfigError(f"unknown door {door!r}; {suggest(door, DOORS)}")
    if not policy:
        raise ConfigError(
            "name the policy to serve with --policy, for example zetta serve --policy zetta/tiny"
        )
    registry.check_policy(policy)
    limits = ServingLimits(max_sessions=max_sessions, max_rows=batch, idle_s=idle)
    access = Access(
        None if keys is None else read_server_keys(keys), key_file, convention, generation
    )
    kind = DOORS[door]
    place = bind or kind.bind
    if kind.check is not None:
        kind.check(place, access.keys is not None)
    if metrics is not None:
        import_module(METRICS)  # says at once which extra is missing

    def on_ready(endpoint: str, instance: str) -> None:
        _announce(policy, door, endpoint, instance, as_json)

    way_in = kind.make(access, on_ready)
    with wish_to_end() as ending:
        output.note(f"loading {policy}")
        engine = Engine(lambda: registry.policy(policy), limits)
        try:
            _run(engine, way_in, place, metrics, ending.stop)
        finally:
            engine.stop()
    if ending.interrupted:
        raise KeyboardInterrupt


@app.command("keygen")
def keygen(
    out: Annotated[Path, typer.Option(help="Folder of the key files.")] = Path("zetta-keys"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Make the keys of one server and its clients; nothing secret is printed."""
    server, client = write_keys(out)
    if as_json:
        output.emit({"server": str(server), "client": str(client)})
        return
    output.answer(f"server: zetta serve --policy NAME --bind tcp://0.0.0.0:5601 --keys {server}")
    output.answer(f"client: zetta run --policy zmq://HOST:5601@keys={client}")
    output.answer(f"take {client.name} to the robot by a safe way; {server.name} stays here")


def _run(engine: Engine, door: Door, bind: str, metrics: int | None, stop: threading.Event) -> None:
    figures = None
    if metrics is not None:
        from zetta.runtime.policy_server.metrics import MetricsServer  # needs an extra

        figures = MetricsServer(engine, door, metrics)
        output.note(f"metrics at http://127.0.0.1:{figures.port}/metrics")
    over = threading.Event()
    status = threading.Thread(target=_tell_status, args=(engine, door, over), daemon=True)
    status.start()
    try:
        door.serve(engine, bind, stop)
    finally:
        over.set()
        status.join()
        if figures is not None:
            figures.close()
    output.note(f"ended; {status_line(engine, door)}")


def status_line(engine: Engine, door: Door) -> str:
    """Return how the server fares, in one line."""
    stats, counts = engine.stats, door.counts
    parts = [f"{stats.sessions} sessions", f"{stats.inferences} chunks"]
    if stats.batches:
        parts.append(f"{stats.inferences / stats.batches:.1f} a batch")
        parts.append(f"{stats.infer_p50_ms:.1f} ms (p99 {stats.infer_p99_ms:.1f})")
    told = (("late", counts.late), ("failed", stats.failed), ("malformed", counts.malformed))
    return ", ".join([*parts, *(f"{number} {word}" for word, number in told if number)])


def _tell_status(engine: Engine, door: Door, over: threading.Event) -> None:
    """Write a line now and then, while something happens."""
    last = ""
    while not over.wait(STATUS_EVERY_S):
        line = status_line(engine, door)
        if line != last:
            output.note(line)
        last = line


def _announce(policy: str, door: str, endpoint: str, instance: str, as_json: bool) -> None:
    # Foreign doors name themselves as their clients do.
    scheme = endpoint.replace("tcp://", f"{door}://").replace("ipc://", f"{door}://")
    output.note(f"serving {policy} at {endpoint}; use it with --policy {scheme}")
    if as_json:
        output.emit(
            {
                "endpoint": endpoint,
                "policy": policy,
                "door": door,
                "instance": instance,
                "pid": os.getpid(),
            }
        )
