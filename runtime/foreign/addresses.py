"""Names of foreign policies: `openpi://host:port@convention,option=value;option=value`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from zetta.runtime.core import PolicySpec
from zetta.runtime.errors import ConfigError, suggest
from zetta.runtime.foreign.conventions import Convention, Protocol, convention

PORTS: Final[Mapping[Protocol, int]] = {"openpi": 8000, "gr00t": 5555}
"""What their own servers listen on by default."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may follow the convention, as `name=value`."""

    replan_steps: int = 0
    """Rows used before the server is asked again; 0 takes the convention's."""
    horizon: int = 0
    """Rows kept of each chunk; 0 takes the convention's, or what a GR00T server declares."""
    connect_s: float = 20.0
    """How long to wait for a server that is still starting."""
    deadline_s: float = 15.0
    """How long an answer may take."""
    first_s: float = 180.0
    """How long the first answer may take: servers compile then."""
    flat: int = 0
    """1: a GR00T N1.6 server behind its simulation wrapper, which takes flat keys."""
    key_file: str = ""
    """File with the API key or token; a key does not belong into a name that results repeat."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a foreign policy listens, and how to speak with it."""

    name: str
    """As it was given."""
    host: str
    port: int
    convention: Convention
    options: Options = field(default_factory=Options)
    key: str = field(default="", repr=False)

    def spec(self, digest: str, horizon: int = 0) -> PolicySpec:
        """Return what this policy needs and emits.

        Args:
            digest: of all that is known of the server.
            horizon: rows that the server declares, or 0.

        Raises:
            ConfigError: more rows would be used than there are.
        """
        rows = self.options.horizon or horizon or self.convention.horizon
        used = self.options.replan_steps or min(self.convention.replan_steps, rows)
        if used > rows:
            raise ConfigError(
                f"{self.name!r} would use {used} rows of chunks that have {rows}; make "
                "replan_steps smaller, or give the server's own number with horizon="
            )
        return PolicySpec(
            name=self.name,
            action=self.convention.action,
            cameras=self.convention.cameras,
            replan_steps=used,
            horizon=rows,
            control_hz=self.convention.control_hz,
            digest=digest,
        )


def parse(name: str, protocol: Protocol) -> Address:
    """Return the address that a policy name such as `openpi://10.0.0.5:8000@libero` gives.

    Raises:
        ConfigError: it is none: no host, a bad port, or an unknown convention or option.
    """
    base, _, rest = name.partition("@")
    wanted = f"expected {protocol}://HOST:PORT@CONVENTION"
    try:
        parts = urlsplit(base)
        host, port = parts.hostname or "", parts.port or PORTS[protocol]
    except ValueError as error:
        raise ConfigError(f"{name!r} is no address ({error}); {wanted}") from error
    if parts.scheme != protocol or not host or parts.path or parts.query or parts.fragment:
        raise ConfigError(f"{name!r} is no address of a policy; {wanted}")
    if host in ("0.0.0.0", "::"):
        raise ConfigError(
            f"{host} is where a server binds, not where it is reached; say 127.0.0.1 or the "
            "address of its machine"
        )
    # Also at semicolons: lists of policies are split at commas.
    label, *given = re.split("[,;]", rest)
    options = _options(given)
    chosen = convention(protocol, label or "libero")
    key = key_in(options.key_file) if options.key_file else ""
    return Address(name, host, port, chosen, options, key)


def _options(given: list[str]) -> Options:
    options = Options()
    kinds: dict[str, type] = {f.name: type(getattr(options, f.name)) for f in fields(options)}
    for text in given:
        key, equals, value = text.partition("=")
        if key not in kinds or not equals:
            raise ConfigError(f"unknown option {text!r}; {suggest(key, kinds)}")
        try:
            number = kinds[key](value)
        except ValueError:
            raise ConfigError(f"the option {key} is {value!r}, expected a number") from None
        if not isinstance(number, str) and not (math.isfinite(number) and number >= 0):
            raise ConfigError(f"the option {key} is {value!r}, expected 0 or more")
        options = replace(options, **{key: number})
    for name in ("connect_s", "deadline_s", "first_s"):
        if getattr(options, name) <= 0:
            raise ConfigError(f"the option {name} is 0; a wait needs an end above 0 seconds")
    return options


def key_in(file: str) -> str:
    """Return the key that a file holds.

    Raises:
        ConfigError: it cannot be read, or holds none.
    """
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the key file {file} cannot be read: {error}") from error
    if not key or not key.isprintable():
        raise ConfigError(f"the key file {file} holds no key: one line of printable text")
    return key


def bracketed(host: str) -> str:
    """Return `host` as it stands before a port: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
