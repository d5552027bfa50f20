"""`report.html` of a campaign, written while it runs: one file that needs no other."""

from __future__ import annotations

from pathlib import Path

from zetta.runtime.cli import output
from zetta.runtime.errors import ZettaError
from zetta.runtime.reporting.page import PAGE, render, write_page


def write_report(folder: Path) -> Path:
    """Write the report of a campaign from its records and whatever pictures lie beside them.

    Raises:
        ConfigError: there is no campaign, or the extra is not installed.
        InfraError: the file cannot be written.
    """
    from zetta.runtime.cli.report_campaign import campaign_document  # late: it imports plots

    document, _ = campaign_document(folder)
    path = folder / PAGE
    write_page(path, render(document))
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
    path = folder / PAGE
    return str(path) if path.exists() else ""
