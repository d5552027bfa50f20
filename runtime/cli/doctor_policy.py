"""`zetta doctor policy`: who serves there, and which convention does not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast

import typer

from zetta.runtime import registry
from zetta.runtime.cli import colours, output
from zetta.runtime.errors import (
    ConfigError,
    ConnectionLost,
    InfraError,
    SpecMismatch,
    Timeout,
    ZettaError,
)

if TYPE_CHECKING:
    from zetta.runtime.foreign.inspection import ForeignPolicy, Inspection, Part

MARKS: Final[Mapping[str, str]] = {"ok": "ok", "unknown": "??", "suspect": "?!", "wrong": "!!"}
OWN: Final = "zmq://"
SCHEMES: Final = ("openpi://", "gr00t://")

Reason: TypeAlias = Literal["refused", "no answer", "bad answer", "key refused", "failed"]


def command(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="zmq://…, openpi://HOST:PORT@CONVENTION, gr00t://…")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Ask a policy server about made-up scenes; exit 1 when it is unreachable or does not fit.

    Marks: ok seen to fit, ?? cannot be seen from outside, ?! looks odd, !! does not fit.
    """
    if url.startswith(OWN):
        _own(url, as_json)
        return
    if not url.startswith(SCHEMES):
        raise ConfigError(
            f"{url!r} is no address of a policy server; expected {OWN}HOST:PORT, "
            f"{SCHEMES[0]}HOST:PORT or {SCHEMES[1]}HOST:PORT"
        )
    from zetta.runtime.foreign.addresses import parse
    from zetta.runtime.foreign.inspection import inspect

    parse(url, "openpi" if url.startswith(SCHEMES[0]) else "gr00t")
    try:
        policy = cast("ForeignPolicy", registry.policy(url))
        try:
            found = inspect(policy)
        finally:
            cast(Any, policy).close()
    except (InfraError, SpecMismatch, ConfigError) as error:
        if isinstance(error, ConfigError) and "refuses the" not in str(error):
            raise  # a wish that no server could fulfil, such as more rows than there are
        _tell_unreachable(url, error, as_json)
        raise typer.Exit(1) from error
    if as_json:
        output.emit(_json(url, policy, found))
    else:
        _tell(url, policy, found)
    if not found.fits:
        raise typer.Exit(1)


def _own(url: str, as_json: bool) -> None:
    """Ask a policy of `zetta serve`, which declares everything itself."""
    from zetta.runtime.cli.doctor_served import served_lines, served_report

    try:
        report = served_report(url)
    except (InfraError, SpecMismatch) as error:
        _tell_unreachable(url, error, as_json)
        raise typer.Exit(1) from error
    if as_json:
        output.emit(report)
        return
    for line in served_lines(report):
        output.answer(line)


def reason_of(error: ZettaError) -> Reason:
    """Return why a server could not be asked, in one of few words."""
    match error:
        case ConnectionLost():
            return "refused"
        case Timeout():
            return "no answer"
        case SpecMismatch():
            return "bad answer"
        case ConfigError():
            return "key refused"
        case _:
            return "failed"


def _tell_unreachable(url: str, error: ZettaError, as_json: bool) -> None:
    reason = reason_of(error)
    if as_json:
        output.emit({"policy": url, "reachable": False, "reason": reason, "detail": str(error)})
    else:
        output.answer(f"{MARKS['wrong']}  {reason}: {error}")


def _tell(url: str, policy: ForeignPolicy, found: Inspection) -> None:
    address = policy.address
    output.answer(f"{url} speaks {address.convention.protocol}, form {policy.form}")
    output.answer(
        f"convention {address.convention.name}, checked with: {address.convention.checked}"
    )
    output.answer(f"says of itself: {dict(found.described) or 'nothing'}")
    for title, parts in (("we send", found.asked), ("it answers", found.answered)):
        if not parts:
            continue
        output.answer(f"{title}:")
        rows = [[p.key, "x".join(map(str, p.shape)) or "-", p.dtype] for p in parts]
        output.answer(output.table(["key", "shape", "dtype"], rows))
    if math.isfinite(found.first_s):
        output.answer(
            f"latency: first {1000 * found.first_s:.0f} ms, then {1000 * found.median_s:.1f} ms"
        )
    for finding in found.findings:
        output.answer(
            f"{MARKS[finding.state]}  {finding.name:<18} {finding.sentence}", colours.heads
        )


def _json(url: str, policy: ForeignPolicy, found: Inspection) -> dict[str, output.Json]:
    convention, spec = policy.address.convention, policy.spec
    return {
        "policy": url,
        "reachable": True,
        "fits": found.fits,
        "protocol": convention.protocol,
        "form": policy.form,
        "convention": convention.name,
        "checked": convention.checked,
        "described": _plain(found.described),
        "asked": [_part(p) for p in found.asked],
        "answered": [_part(p) for p in found.answered],
        "horizon": spec.horizon,
        "replan_steps": spec.replan_steps,
        "first_ms": _ms(found.first_s),
        "median_ms": _ms(found.median_s),
        "findings": [
            {"name": f.name, "state": f.state, "sentence": f.sentence} for f in found.findings
        ],
    }


def _part(part: Part) -> output.Json:
    return {"key": part.key, "shape": list(part.shape), "dtype": part.dtype}


def _ms(seconds: float) -> float | None:
    return round(1000.0 * seconds, 3) if math.isfinite(seconds) else None


def _plain(value: Any) -> output.Json:
    """Return what a server said, as JSON can hold it: arrays and oddities as text."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return f"{value!r:.200}"
