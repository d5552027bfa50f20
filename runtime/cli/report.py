"""`zetta report`: a run, an evaluation or a campaign as one page that needs nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.report_pdf import print_pdf
from zetta.runtime.cli.report_runs import is_run, read_run, side_by_side
from zetta.runtime.episode_log import POSES
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.evaluation_answers import tables_json
from zetta.runtime.reporting.document import Document, Picture
from zetta.runtime.reporting.evaluation_folder import plan_files, read_evaluation
from zetta.runtime.reporting.outcome_document import outcome_document
from zetta.runtime.reporting.outcomes import Episode, Outcomes, tables_of, worth_showing
from zetta.runtime.reporting.page import PAGE, is_report, render, write_page

CAMPAIGN: Final = "manifest.json"
MOST_STRIPS: Final = 24
DRAW_DEADLINE_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Told:
    """A report and its numbers for `--json`."""

    document: Document
    numbers: Mapping[str, output.Json]


def command(
    folders: Annotated[
        list[Path], typer.Argument(help="A run, an evaluation or a campaign; or several runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="File or folder; by default report.html in the folder.")
    ] = None,
    pdf: Annotated[Path | None, typer.Option(help="Print it to this PDF as well.")] = None,
    strips: Annotated[int, typer.Option(help="Most picture strips.")] = MOST_STRIPS,
    draw: Annotated[
        bool, typer.Option("--draw", help="Draw strips that are missing, from the logs.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write one page with tables, plots and evidence; it needs no network and no other file."""
    if strips < 0:
        raise ConfigError(f"--strips is 0 or more, got {strips}")
    if pdf is not None and pdf.exists():
        raise ConfigError(f"{pdf} exists already; choose another file")
    path = _target(folders, out)
    if path.exists():
        output.note(f"replacing the report {path}")
    told = _told(folders, strips, draw)
    text = render(told.document)
    write_page(path, text)
    if pdf is not None:
        print_pdf(path, pdf)
    _tell(told, path, pdf, len(text.encode()), as_json)


def kind_of(folder: Path) -> str:
    """Return `run`, `evaluation` or `campaign`.

    Raises:
        ConfigError: it is none of these.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}")
    if (folder / CAMPAIGN).exists():
        return "campaign"
    if plan_files(folder):
        return "evaluation"
    if is_run(folder):
        return "run"
    raise ConfigError(
        f"{folder} holds no run, no evaluation and no campaign that can be read; give a folder "
        "that zetta run, eval or evolve has written"
    )


def _target(folders: Sequence[Path], out: Path | None) -> Path:
    """Return where the report goes; a file that is no report is never replaced."""
    kinds = [kind_of(folder) for folder in folders]
    if len(folders) > 1 and set(kinds) != {"run"}:
        other = next(i for i, kind in enumerate(kinds) if kind != "run")
        raise ConfigError(
            f"several folders are compared where all are runs; {folders[other]} is "
            f"{'an evaluation' if kinds[other] == 'evaluation' else 'a campaign'}: report it alone"
        )
    if len({folder.resolve() for folder in folders}) < len(folders):
        raise ConfigError("a run is named twice; name each once")
    path = _place(folders, out)
    if path.exists() and not is_report(path):
        raise ConfigError(f"{path} exists already and is no report; choose another --out")
    return path


def _place(folders: Sequence[Path], out: Path | None) -> Path:
    if out is None:
        return (folders[0] if len(folders) == 1 else output.run_folder("report")) / PAGE
    is_folder = out.is_dir() or out.suffix.lower() not in (".html", ".htm")
    path = out / PAGE if is_folder else out
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfraError(f"cannot make {path.parent}: {error.strerror}") from error
    return path


def _told(folders: Sequence[Path], strips: int, draw: bool) -> Told:
    kind = kind_of(folders[0])
    if kind == "campaign":
        from zetta.runtime.cli.report_campaign import campaign_document  # late: all of evolution

        return Told(*campaign_document(folders[0], draw))
    output.note(f"reading {', '.join(str(folder) for folder in folders)}")
    if kind == "evaluation":
        outcomes = read_evaluation(folders[0])
    elif len(folders) == 1:
        outcomes = read_run(folders[0])
    else:
        outcomes = side_by_side([read_run(folder) for folder in folders])
    with ExitStack() as stack:
        drawn = _draw_missing(outcomes, strips, stack) if draw else {}
        document = outcome_document(outcomes, strips, drawn)
    return Told(document, tables_json(tables_of(outcomes)))


def _draw_missing(outcomes: Outcomes, most: int, stack: ExitStack) -> dict[str, Path]:
    """Draw chosen strips that nobody drew, each in a process of its own."""
    chosen, _ = worth_showing(outcomes, most)
    wanted = [e for e in chosen if e.strip is None and e.log and (e.log / POSES).exists()]
    if not wanted:
        return {}
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zetta-strips-")))
    drawn: dict[str, Path] = {}
    with output.progress("drawing strips", len(wanted)) as advance:
        for place, each in enumerate(wanted):
            path = scratch / f"{place}.png"
            if _drew(each, path):
                drawn[str(each.log)] = path
            advance(place + 1, each.name)
    return drawn


def _drew(each: Episode, path: Path) -> bool:
    """Draw one strip by `zetta replay`: a process renders for one environment only."""
    line = [sys.executable, "-m", "zetta.runtime.cli.main", "replay", str(each.log), "--strip"]
    try:
        ended = subprocess.run(
            [*line, str(path)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, timeout=DRAW_DEADLINE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        output.note(f"{each.name} was not drawn within {DRAW_DEADLINE_S:.0f} s")
        return False
    if ended.returncode:
        said = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
        output.note(f"{each.name} was not drawn: {said}")
    return ended.returncode == 0 and path.exists()


def _tell(told: Told, path: Path, pdf: Path | None, size: int, as_json: bool) -> None:
    document = told.document
    strips = sum(isinstance(block, Picture) for block in document.blocks())
    if as_json:
        output.emit(
            {
                "report": str(path.resolve()), "pdf": None if pdf is None else str(pdf.resolve()),
                "kind": document.kind, "title": document.title, "bytes": size, "strips": strips,
                "alarms": list(document.alarms), "missing": list(document.missing),
                "oracle": document.oracle, **told.numbers,
            }
        )  # fmt: skip
        return
    for alarm in document.alarms:
        output.answer(f"do not trust it as it is: {alarm}")
    for each in document.missing:
        output.note(f"missing: {each}")
    output.answer(document.lead)
    if pdf is not None:
        output.answer(f"printed to {pdf}")
    output.answer(f"look at {path}")
