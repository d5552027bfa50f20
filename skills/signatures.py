"""Who vouches for a skill package: Ed25519 keys, and the signature that lies beside its files.

What is signed is the package's content hash. A signature says that these bytes are the ones that
the holder of a key signed; whether that key deserves trust is for the reader of its id to decide.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from zetta.runtime.errors import ConfigError

SIGNATURE_NAME: Final = "signature.json"
KEY_NAME: Final = "signing-key.pem"
"""The private key, in the user's configuration folder."""
PURPOSE: Final = b"zetta skill package 1\n"
"""Goes before what is signed, so that the signature can stand for nothing else."""
FIELDS: Final = ("algorithm", "content", "public_key", "signature")

SignedState: TypeAlias = Literal["signed", "unsigned", "broken"]


@dataclass(frozen=True, slots=True)
class Signed:
    """What is known of a package's signature."""

    state: SignedState
    key_id: str = ""
    """Id of the key that signed; empty unless the state is `signed`."""
    reason: str = ""
    """Why it is broken."""

    def __str__(self) -> str:
        if self.state == "signed":
            return f"signed by {self.key_id}"
        return "unsigned" if self.state == "unsigned" else "BROKEN"


def key_id(public_key: bytes) -> str:
    """Return the id of a raw public key: the first 16 digits of its SHA-256.

    >>> key_id(bytes(32))
    '66687aadf862bd77'
    """
    return hashlib.sha256(public_key).hexdigest()[:16]


def make_key(path: Path, force: bool = False) -> str:
    """Write a new private key that only its owner may read, and return its id.

    Raises:
        ConfigError: there is a key already and `force` is not set, or the file cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
        try:
            if force:
                fresh.replace(path)
            else:
                os.link(fresh, path)  # unlike a rename, never replaces
        finally:
            fresh.unlink(missing_ok=True)
    except FileExistsError:
        raise ConfigError(
            f"there is a key in {path}; what it signed can no longer be signed anew once it is "
            "gone; give --force to replace it"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write the key {path}: {error.strerror}") from None
    return key_id(_raw(key.public_key()))


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key.

    Raises:
        ConfigError: there is none, others may read it, or it is no Ed25519 key.
    """
    try:
        mode = path.stat().st_mode
        pem = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no key {path}; make one with: zetta skills keygen") from None
    except OSError as error:
        raise ConfigError(f"cannot read the key {path}: {error.strerror}") from None
    if mode & 0o077:
        raise ConfigError(f"others may read the key {path}; type: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        raise ConfigError(f"{path} holds no private key without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"{path} holds a key of another kind; expected Ed25519")
    return key


def id_of(key: Ed25519PrivateKey) -> str:
    """Return the id of a private key."""
    return key_id(_raw(key.public_key()))


def signature_text(content: str, key: Ed25519PrivateKey) -> str:
    """Return the text of `signature.json` for a content hash.

    Args:
        content: SHA-256 of the package, 64 hexadecimal digits.
        key: who signs.
    """
    fields = {
        "algorithm": "ed25519",
        "content": content,
        "public_key": base64.b64encode(_raw(key.public_key())).decode(),
        "signature": base64.b64encode(key.sign(PURPOSE + content.encode())).decode(),
    }
    return json.dumps(fields, indent=2) + "\n"


def verify(content: str, signature: bytes | None) -> Signed:
    """Say who signed `content`; `signature` is what lies in `signature.json`, None for no file."""
    if signature is None:
        return Signed("unsigned")
    try:
        fields = json.loads(signature)
        if not isinstance(fields, dict) or sorted(fields) != sorted(FIELDS):
            raise ValueError
        if fields["algorithm"] != "ed25519" or not isinstance(fields["content"], str):
            raise ValueError
        public = base64.b64decode(fields["public_key"], validate=True)
        proof = base64.b64decode(fields["signature"], validate=True)
        key = Ed25519PublicKey.from_public_bytes(public)
    except (ValueError, TypeError, RecursionError, binascii.Error):
        return Signed("broken", reason=f"{SIGNATURE_NAME} is not readable as a signature")
    if fields["content"] != content:
        return Signed("broken", reason="the files are not the ones that were signed")
    try:
        key.verify(proof, PURPOSE + content.encode())
    except InvalidSignature:
        return Signed("broken", reason="the signature does not belong to its key")
    return Signed("signed", key_id(public))


def _raw(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
