"""Downloading one file so that it can be broken off anywhere and gone on with.

What has come lies in `FILE.part`, beside a note of where it is from and how long it will be. A
later call asks the server for the rest. It begins anew where the server cannot send a part of a
file, or where the file has changed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import httpx2

from zetta.runtime.cli.byte_progress import Reached, in_words
from zetta.runtime.errors import ConfigError, ConnectionLost, InfraError

TRIES: Final = 5
"""In a row without one more byte; then it is given up."""
_MAGIC: Final = (b"PK\x03\x04", b"PK\x05\x06")
_BUSY: Final = (408, 425, 429, 500, 502, 503, 504)
_SHA256: Final = re.compile(r'(?:W/)?"?([0-9a-f]{64})"?')
_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server says of a file."""

    url: str
    size: int
    """Bytes; 0 where it does not tell."""
    etag: str
    """Changes with the file; empty where it does not tell."""
    sha256: str
    """Hugging Face tells it; empty elsewhere."""


class _CutError(Exception):
    """It ended early; another try may help."""


@contextmanager
def client() -> Iterator[httpx2.Client]:
    """Open connections that wait neither for a server nor for its next byte for ever."""
    timeout = httpx2.Timeout(30.0, read=60.0)
    headers = {"User-Agent": "zetta", "Accept-Encoding": "identity"}
    with httpx2.Client(follow_redirects=True, timeout=timeout, headers=headers) as http:
        yield http


def ask(http: httpx2.Client, url: str, pause: Callable[[float], None] = time.sleep) -> Offer:
    """Return what a server has under an address; one byte of it is sent at most.

    Raises:
        ConfigError: nothing is there, or no zip, or it is not for everybody.
        ConnectionLost: the server does not answer.
    """
    for left in (1, 0):
        try:
            with _opened(http, url, 0, 0) as response:
                return _offer(url, response)
        except _CutError as error:
            if not left:
                raise ConnectionLost(
                    f"{url} does not answer: {error}; try again later, or give the zips with --from"
                ) from None
            pause(1.0)
    raise AssertionError


def fetch(
    http: httpx2.Client,
    url: str,
    target: Path,
    reached: Reached,
    pause: Callable[[float], None] = time.sleep,
) -> Offer:
    """Download a file, going on from what lies there of it.

    Args:
        http: connections.
        url: where it is.
        target: where it shall lie.
        reached: told how far it has come.
        pause: waits between tries, seconds.

    Returns:
        What the server says of it.

    Raises:
        ConfigError: nothing is there, or no zip, or it is not for everybody.
        ConnectionLost: it breaks off again and again; what has come is kept.
        InfraError: it cannot be written.
    """
    partial = target.with_suffix(".part")
    most, tries = _length(partial), 0
    while True:
        try:
            offer = _receive(http, url, partial, reached)
            break
        except _CutError as error:
            have = _length(partial)
            tries = 1 if have > most else tries + 1
            most = max(most, have)
            if tries >= TRIES:
                raise ConnectionLost(
                    f"{url} broke off {TRIES} times: {error}; {in_words(have)} of it are kept, and "
                    "the same command goes on from there"
                ) from None
            pause(float(2 ** (tries - 1)))
        except OSError as error:
            raise InfraError(
                f"cannot write to {partial.parent}: {error.strerror}; {in_words(_length(partial))} "
                "of it are kept, and the same command goes on from there"
            ) from error
    partial.replace(target)
    return offer


def known(target: Path) -> Offer | None:
    """Return what the server said of a file that is here, whole or in part; None without any."""
    try:
        told = json.loads(_note_of(target).read_text(encoding="utf-8"))
        return Offer(str(told["url"]), int(told["size"]), str(told["etag"]), str(told["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def drop(target: Path) -> None:
    """Remove all that is here of a file."""
    for path in (target, target.with_suffix(".part"), _note_of(target)):
        path.unlink(missing_ok=True)


def _receive(http: httpx2.Client, url: str, partial: Path, reached: Reached) -> Offer:
    """Ask for what is missing and append it."""
    before = known(partial)
    if before is None or before.url != url or (before.size and _length(partial) > before.size):
        drop(partial)
        before = None
    have = _length(partial)
    if before is not None and have and have == before.size:
        return before
    with _opened(http, url, have) as response:
        offer = _offer(url, response)
        if response.status_code == 416:
            drop(partial)
            raise _CutError("the server has no bytes after those here, so it is begun anew")
        if response.status_code == 206 and have:
            _check_same(partial, before, offer, response, have)
        else:
            have = 0
        if not have:
            partial.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(b"")
            _note_of(partial).write_text(json.dumps(asdict(offer)), encoding="utf-8")
        have = _append(response, partial, have, offer.size, reached)
    if offer.size and have < offer.size:
        raise _CutError(f"the connection ended after {in_words(have)} of {in_words(offer.size)}")
    if offer.size and have > offer.size:
        drop(partial)
        raise _CutError(f"more than the {in_words(offer.size)} came that were announced")
    return offer


def _append(
    response: httpx2.Response, partial: Path, have: int, size: int, reached: Reached
) -> int:
    with partial.open("ab") as file:
        reached(have, size)
        try:
            for block in response.iter_raw():
                if not have and not any(magic.startswith(block[:4]) for magic in _MAGIC):
                    raise _no_zip(str(response.url))
                file.write(block)
                file.flush()  # what a kill leaves is whole up to its last byte
                have += len(block)
                reached(have, size)
        except httpx2.TransportError as error:
            raise _CutError(_said(error)) from error
    return have


def _check_same(
    partial: Path, before: Offer | None, offer: Offer, response: httpx2.Response, have: int
) -> None:
    """Drop what lies here unless the server goes on with the same file at the right byte."""
    found = _RANGE.fullmatch(response.headers.get("content-range", ""))
    start = int(found.group(1)) if found else -1
    same = before is not None and all(
        mine == theirs or not mine or not theirs
        for mine, theirs in ((before.etag, offer.etag), (before.size, offer.size))
    )
    if start != have or not same:
        drop(partial)
        raise _CutError("the file has changed on the server, so it is begun anew")


@contextmanager
def _opened(
    http: httpx2.Client, url: str, first: int, last: int | None = None
) -> Iterator[httpx2.Response]:
    """Open the answer to a request for the bytes `first` to `last`, or to the end."""
    wanted = f"bytes={first}-{'' if last is None else last}"
    headers = {"Range": wanted} if first or last is not None else {}
    try:
        with http.stream("GET", url, headers=headers) as response:
            _check_status(url, response, first)
            yield response
    except httpx2.TransportError as error:
        raise _CutError(_said(error)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConfigError(f"{url} cannot be downloaded: {_said(error)}") from error


def _check_status(url: str, response: httpx2.Response, first: int) -> None:
    status = response.status_code
    if url.startswith("https:") and response.url.scheme != "https":
        raise ConfigError(f"{url} leads to {response.url}, which is not encrypted; it is refused")
    if status in _BUSY:
        raise _CutError(f"the server says {status} {response.reason_phrase}")
    if status == 416 and not first:  # an empty file has no first byte
        raise _no_zip(url)
    if status in (401, 403):
        raise ConfigError(f"{url} is not for everybody (the server says {status}); {_by_hand(url)}")
    if status not in (200, 206, 416):
        raise ConfigError(
            f"nothing is at {url} (the server says {status} {response.reason_phrase}); it may have "
            "moved: give another place with --from"
        )
    kind = response.headers.get("content-type", "")
    if status != 416 and kind.startswith("text/html"):
        raise _no_zip(url)


def _no_zip(url: str) -> ConfigError:
    return ConfigError(f"{url} sent something that is no zip, such as a page; {_by_hand(url)}")


def _by_hand(url: str) -> str:
    return "download it with a browser and give its folder with --from"


def _offer(url: str, response: httpx2.Response) -> Offer:
    headers = response.headers
    length = headers.get("content-length", "0")
    size = int(length) if response.status_code == 200 and length.isdecimal() else 0
    found = _RANGE.fullmatch(headers.get("content-range", ""))
    if response.status_code == 206 and found and found.group(3) != "*":
        size = int(found.group(3))
    etag = headers.get("etag", "")
    hashes = (_SHA256.fullmatch(r.headers.get("x-linked-etag", "")) for r in _all(response))
    sha256 = next((found.group(1) for found in hashes if found), "")
    return Offer(url, size, "" if etag.startswith("W/") else etag, sha256)


def _all(response: httpx2.Response) -> tuple[httpx2.Response, ...]:
    return (*response.history, response)


def _note_of(partial: Path) -> Path:
    return partial.with_suffix(".note")


def _length(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _said(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
