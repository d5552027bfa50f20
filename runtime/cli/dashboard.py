"""`zetta dashboard`: look at runs in a browser, while they run and afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import secrets
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.ending import wish_to_end
from zetta.runtime.cli.home import cache_home
from zetta.runtime.cli.installation import own_version
from zetta.runtime.cli.mcp_access import TOKEN_BYTES, Place, listen, names_of, token_at
from zetta.runtime.errors import ConfigError

if TYPE_CHECKING:
    from zetta.runtime.dashboard.board import Board

PORT: Final = 5690
NEEDED: Final = ("starlette", "uvicorn", "sse_starlette")


def command(
    runs: Annotated[
        Path, typer.Argument(help="Folder of runs, or one run; also while it is written.")
    ] = Path("runs"),
    host: Annotated[str, typer.Option(help="Address of this machine to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 lets the system choose.")] = PORT,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token; else one is made at each start.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="HOST:PORT by which browsers also call it.")
    ] = None,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open it in a browser.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object once it listens.")
    ] = False,
) -> None:
    """Look at runs in a browser until it is told to end (Ctrl-C)."""
    for package in NEEDED:
        import_module(package)  # says at once which extra is missing
    if not runs.is_dir():
        raise ConfigError(
            f"there is no folder {runs}; name the folder of your runs, or make some with "
            "zetta run --sim toy --episodes 3"
        )
    place = place_of(host, port)
    with _token(token_file) as token, listen(place) as listening, wish_to_end() as ending:
        from zetta.runtime.dashboard.app import make_app
        from zetta.runtime.dashboard.security import Access
        from zetta.runtime.dashboard.serving import serve

        taken = int(listening.getsockname()[1])
        hosts = hosts_of(place, taken, name or ())
        access = Access(hosts, token, not place.local, f"zetta_dashboard_{taken}")
        board = board_of(runs.resolve())

        def on_ready() -> None:
            _announce(board.root, hosts[0], token, not place.local, as_json)
            if open_browser and not webbrowser.open(f"http://{hosts[0]}/?token={token}"):
                output.note("no browser could be opened; open the URL yourself")

        serve(make_app(board, access), listening, ending.stop, on_ready, board.hub.close)
    output.note("the dashboard has ended")


def place_of(host: str, port: int) -> Place:
    """Return where to listen.

    >>> place_of("localhost", 0).host
    '127.0.0.1'

    Raises:
        ConfigError: it is no address, or no port.
    """
    address = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise ConfigError(
            f"--host takes an address of this machine in numbers, or localhost; got {host!r}"
        ) from None
    if not 0 <= port < 65536:
        raise ConfigError(f"--port takes a number from 0 to 65535, got {port}")
    return Place(address, port)


def hosts_of(place: Place, port: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the values of `Host` that are answered; the first one is printed.

    >>> hosts_of(Place("192.168.1.5", 80), 80, ())
    ('192.168.1.5:80',)

    Raises:
        ConfigError: it listens everywhere, and nobody said under which name.
    """
    given = tuple(each.lower() for each in names)
    if place.local:
        return tuple(names_of(place, port, given))
    if ipaddress.ip_address(place.host).is_unspecified:
        if not given:
            raise ConfigError(
                f"{place.host} is every address of this machine; say by which name browsers call "
                f"it: --name HOST:{port}"
            )
        return given
    host = f"[{place.host}]" if ":" in place.host else place.host
    return (f"{host}:{port}", *given)


def board_of(root: Path) -> Board:
    """Return what the views share, with what only the command knows.

    Raises:
        InfraError: the index cannot be written.
    """
    from zetta.runtime.cli.dashboard_bundles import BundleExplainer
    from zetta.runtime.cli.dashboard_campaigns import CampaignPages
    from zetta.runtime.cli.dashboard_library import LibraryPages
    from zetta.runtime.dashboard.board import Board, Handed
    from zetta.runtime.dashboard.films import Films
    from zetta.runtime.dashboard.store import Store

    cache = cache_home() / "dashboard" / hashlib.sha256(str(root).encode()).hexdigest()[:16]
    store = Store(cache / "index.sqlite")
    films = Films(cache / "films", draw_command)
    handed = Handed(BundleExplainer(), CampaignPages(), LibraryPages())
    return Board(root, store, films, handed, own_version() or "source tree")


def draw_command(log: Path, film: Path) -> Sequence[str]:
    """Return the command that draws a log: every tick is one frame."""
    return (
        sys.executable, "-m", "zetta.runtime.cli.main",
        "replay", str(log), "--video", str(film), "--every", "1", "--json",
    )  # fmt: skip


@contextlib.contextmanager
def _token(file: Path | None) -> Iterator[str]:
    if file is None:
        yield secrets.token_urlsafe(TOKEN_BYTES)
        return
    with token_at(file) as (token, _):
        yield token


def _announce(root: Path, host: str, token: str, needed: bool, as_json: bool) -> None:
    url = f"http://{host}/"
    with_token = f"{url}?token={token}"
    output.note(f"showing {root} at {with_token if needed else url}")
    if not needed:
        output.note(f"buttons that change something need the token: {with_token}")
    else:
        output.note("what is sent is not encrypted; put a proxy or an SSH tunnel before it")
    if as_json:
        output.emit({"url": url, "runs": str(root), "token": token, "url_with_token": with_token})
