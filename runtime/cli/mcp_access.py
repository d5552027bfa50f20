"""Where `zetta mcp --http` listens, and the token without which it answers nobody."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from zetta.runtime.errors import ConfigError, InfraError, cannot_listen

TOKEN_BYTES: Final = 32
TOKEN_LEAST: Final = 16
"""Characters of the shortest token that a user may choose."""
TOKEN_NAME: Final = "token"
BACKLOG: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen."""

    host: str
    port: int
    """0 lets the system choose."""

    @property
    def local(self) -> bool:
        """Whether only this machine can call."""
        return ipaddress.ip_address(self.host).is_loopback


def parse_place(text: str) -> Place:
    """Return the place that `HOST:PORT` names.

    >>> parse_place("127.0.0.1:8931"), parse_place("[::1]:0").host, parse_place("localhost:1").host
    (Place(host='127.0.0.1', port=8931), '::1', '127.0.0.1')

    Raises:
        ConfigError: it names none.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    host = "127.0.0.1" if host == "localhost" else host
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ConfigError(
            f"--http takes ADDRESS:PORT, such as 127.0.0.1:8931, got {text!r}; the address is one "
            "of this machine's, in numbers, or localhost"
        ) from None
    if not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise ConfigError(f"--http takes ADDRESS:PORT, such as 127.0.0.1:8931, got {text!r}")
    return Place(host, int(port))


def check_place(
    place: Place, allow_remote: bool, token_file: Path | None, names: Sequence[str]
) -> None:
    """Refuse to be reachable from elsewhere unless everything for it was said.

    Raises:
        ConfigError: something is missing.
    """
    if place.local:
        return
    if not allow_remote or token_file is None or not names:
        raise ConfigError(
            f"{place.host} can be reached from other machines, and whoever gets in moves the "
            "robot; if that is wanted, add --allow-remote, --token-file FILE with a token of your "
            "own, and --name HOST:PORT for each name by which clients call it"
        )


def names_of(place: Place, port: int, names: Sequence[str]) -> tuple[str, ...]:
    """Return the values of `Host` that are answered."""
    if not place.local:
        return tuple(names)
    host = f"[{place.host}]" if ":" in place.host else place.host
    return (f"{host}:{port}", f"localhost:{port}", *names)


def listen(place: Place) -> socket.socket:
    """Return a socket that listens there.

    Raises:
        ConfigError: the place is none of this machine's.
        InfraError: it is taken.
    """
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((place.host, place.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        where = f"{place.host}:{place.port}"
        raise cannot_listen(where, error, "choose another port, or 0 for any") from error
    return listening


@contextlib.contextmanager
def token_at(file: Path | None) -> Iterator[tuple[str, Path]]:
    """Give the token and the file where it is; a generated one lives as long as the block.

    Raises:
        ConfigError: the file of the user holds no token, or others may read it.
        InfraError: no file can be written.
    """
    if file is not None:
        yield _own_token(file), file
        return
    token = secrets.token_urlsafe(TOKEN_BYTES)
    try:
        folder = Path(tempfile.mkdtemp(prefix="zetta-mcp-"))  # for its owner alone
        path = folder / TOKEN_NAME
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(token + "\n")
    except OSError as error:
        raise InfraError(
            f"the token cannot be kept: {error}; name one with --token-file"
        ) from error
    try:
        yield token, path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _own_token(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {file} cannot be read: {error}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"others may read the token file {file}; run: chmod 600 {file}")
    if len(token) < TOKEN_LEAST or not token.isprintable() or " " in token:
        raise ConfigError(
            f"the token file {file} holds no token: one word of at least {TOKEN_LEAST} characters"
        )
    return token
