"""`report.html` of a campaign: one file that needs no other, no network and no script."""

from __future__ import annotations

import base64
import io
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PIL import Image as Pillow

from zetta.runtime.cli import output
from zetta.runtime.cli.evolve_strips import strip_path, wished
from zetta.runtime.errors import ConfigError, InfraError, ZettaError
from zetta.skills.evolve.campaign import Manifest
from zetta.skills.evolve.campaign_records import read_campaign
from zetta.skills.evolve.campaign_report import campaign_report
from zetta.skills.evolve.report_views import CampaignReport

REPORT: Final = "report.html"
TEMPLATES: Final = Path(__file__).parent / "templates"
TEMPLATE: Final = "campaign.html.j2"
STRIP_WIDTH: Final = 900
"""Pixels; wider strips are made narrower."""
QUALITY: Final = 82
"""Of JPEG."""
PROGRAMS: Final = ("critic.py", "recovery.py", "params.toml")


@dataclass(frozen=True, slots=True)
class Strip:
    """A strip as it is embedded."""

    caption: str
    uri: str


def write_report(folder: Path) -> Path:
    """Write the report of a campaign from its records and whatever pictures lie beside them.

    Raises:
        ConfigError: there is no campaign, a record is damaged, or the extra is not installed.
        InfraError: the file cannot be written.
    """
    text = render(campaign_report(read_campaign(folder)), folder)
    path = folder / REPORT
    fresh = path.with_name(f".{REPORT}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise InfraError(f"cannot write {path}: {error.strerror}") from error
    return path


def keep_report(folder: Path) -> None:
    """Write the report of a campaign; what goes wrong is told and harms nothing."""
    try:
        write_report(folder)
    except (
        ZettaError, OSError, ValueError, TypeError, LookupError, ArithmeticError, RuntimeError,
    ) as error:  # fmt: skip
        output.note(f"the report was not written: {error}")


def report_of(folder: Path) -> str:
    """Return the path of a campaign's report; empty where there is none."""
    path = folder / REPORT
    return str(path) if path.exists() else ""


def render(report: CampaignReport, folder: Path) -> str:
    """Return the report as HTML; every text in it is escaped.

    Raises:
        ConfigError: Jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2  # late: an extra

        from zetta.runtime.cli.evolve_figures import success_curve

        curve = _uri(success_curve(report), "image/svg+xml")
    except ImportError as error:
        raise ConfigError(
            f"a report needs {error.name}; install it with: pip install 'zetta[evolve]'"
        ) from error
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"share": _share, "number": _number, "seconds": _seconds}
    strips, absent = _strips(report, folder)
    return environment.get_template(TEMPLATE).render(
        report=report, curve=curve, strips=strips, absent=absent, programs=PROGRAMS,
        command=command_of(report.manifest),
    )  # fmt: skip


def command_of(manifest: Manifest) -> str:
    """Return a command that begins a campaign like this one; budgets of stages are in the plan."""
    words = [
        "zetta", "evolve", "--sim", manifest.sim, "--suite", manifest.suite,
        "--tasks", ",".join(str(task) for task in manifest.tasks),
        "--policy", manifest.policy.split(" ")[0], "--author", manifest.author,
        "--generations", str(manifest.generations), "--budget", str(manifest.rollouts),
        "--bundle", manifest.bundle, "--sensing", manifest.sensing,
    ]  # fmt: skip
    for name, value in manifest.options.items():
        words += ["--option", f"{name}={value}"]
    return shlex.join(words)


def _strips(report: CampaignReport, folder: Path) -> tuple[list[Strip], int]:
    """Return the strips that lie in the folder, and how many do not."""
    wishes = wished(report)
    strips = [
        Strip(wish.caption, _picture(path))
        for wish in wishes
        if (path := strip_path(folder, wish)).exists()
    ]
    return strips, len(wishes) - len(strips)


def _picture(path: Path) -> str:
    with Pillow.open(path) as opened:
        picture = opened.convert("RGB")
    if picture.width > STRIP_WIDTH:
        height = max(1, round(picture.height * STRIP_WIDTH / picture.width))
        picture = picture.resize((STRIP_WIDTH, height), Pillow.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, format="JPEG", quality=QUALITY)
    return _uri(buffer.getvalue(), "image/jpeg")


def _uri(content: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _share(value: float) -> str:
    """Return a share in percent.

    >>> _share(0.354), _share(float("nan"))
    ('35 %', '–')
    """
    return "–" if value != value else f"{100 * value:.0f} %"


def _number(value: float | None) -> str:
    """Return a number in three digits.

    >>> _number(0.0303), _number(None)
    ('0.0303', '–')
    """
    return "–" if value is None or value != value else f"{value:.3g}"


def _seconds(value: float | None) -> str:
    """Return a duration as people say it.

    >>> _seconds(5.25), _seconds(150), _seconds(9000), _seconds(None)
    ('5.2 s', '2.5 min', '2.5 h', '–')
    """
    if value is None or value != value:
        return "–"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"
