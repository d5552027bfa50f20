"""Key files of CURVE, which encrypts a ZMQ socket and lets only known clients in.

One pair of files for one server and its clients: `server.key` stays with the server, `client.key`
goes to the robot. Both are JSON, readable by their owner alone, and are refused when others could
read them. Nothing here prints a secret.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import zmq

from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json

SERVER_FILE: Final = "server.key"
CLIENT_FILE: Final = "client.key"
KEY_TEXT: Final = 40
"""Characters of a key in the Z85 notation."""

KeysT = TypeVar("KeysT", "ServerKeys", "ClientKeys")


@dataclass(frozen=True, slots=True)
class ServerKeys:
    """What a server needs: its own pair and who may come in."""

    public: str
    secret: str = field(repr=False)
    clients: tuple[str, ...]
    """Public keys of the clients that are let in."""


@dataclass(frozen=True, slots=True)
class ClientKeys:
    """What a client needs: its own pair and whom it trusts."""

    public: str
    secret: str = field(repr=False)
    server: str
    """Public key of the server."""


def write_keys(folder: Path) -> tuple[Path, Path]:
    """Make a new pair of key files in `folder` and return them: the server's, the client's.

    Raises:
        ConfigError: one of the files is there already, or the folder cannot be written.
    """
    public, secret = _pair()
    their_public, their_secret = _pair()
    server = ServerKeys(public, secret, (their_public,))
    client = ClientKeys(their_public, their_secret, public)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (SERVER_FILE, CLIENT_FILE):
            if (folder / name).exists():
                raise ConfigError(
                    f"{folder / name} is there already; choose another folder with --out, "
                    "or delete it if no server or client uses it"
                )
        _write(folder / SERVER_FILE, server)
        _write(folder / CLIENT_FILE, client)
    except OSError as error:
        raise ConfigError(f"cannot write keys to {folder}: {error.strerror}") from error
    return folder / SERVER_FILE, folder / CLIENT_FILE


def read_server_keys(path: Path) -> ServerKeys:
    """Return the keys of `server.key`, or of the folder that holds one.

    Raises:
        ConfigError: the file is missing, damaged, or readable by others.
    """
    return _read(path / SERVER_FILE if path.is_dir() else path, ServerKeys)


def read_client_keys(path: Path) -> ClientKeys:
    """Return the keys of `client.key`, or of the folder that holds one.

    Raises:
        ConfigError: the file is missing, damaged, or readable by others.
    """
    return _read(path / CLIENT_FILE if path.is_dir() else path, ClientKeys)


def _pair() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def _write(path: Path, keys: ServerKeys | ClientKeys) -> None:
    # Created with its final mode: a file that is narrowed afterwards was open for a moment.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(keys), file, indent=1)
        file.write("\n")


def _read(path: Path, kind: type[KeysT]) -> KeysT:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"cannot read the keys in {path}; make them with: zetta serve keygen --out FOLDER"
        ) from None
    if mode & 0o077:
        raise ConfigError(f"others can read {path} (mode {mode:o}); run: chmod 600 {path}")
    try:
        keys = from_json(kind, json.loads(text))
        if any(len(key) != KEY_TEXT for key in _every_key(keys)):
            raise ValueError(path)
    except (ValueError, SpecMismatch):
        # Without the cause: what stands in the file must not end in a message.
        raise ConfigError(
            f"{path} holds no keys of this kind; make them with: zetta serve keygen --out FOLDER"
        ) from None
    return keys


def _every_key(keys: ServerKeys | ClientKeys) -> tuple[str, ...]:
    known = keys.clients if isinstance(keys, ServerKeys) else (keys.server,)
    return (keys.public, keys.secret, *known)
