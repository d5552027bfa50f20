"""How help is laid out: a paragraph, arguments, options in panels, exit codes, examples.

The layout is plain text, so that it reads the same in a terminal, in a pipe and as a manual page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from typer.core import TyperCommand, TyperGroup

from zetta.runtime.cli.pages import EXITS, PAGES, Page
from zetta.runtime.cli.skill_pages import SKILL_PAGES

MANY: Final = 12
"""More options than this are shown in panels."""
OTHER: Final = "Options"
EVERYWHERE: Final = "--debug, anywhere, shows the traceback of an error."

PANELS: Final[Mapping[str, str]] = {
    "Scenes": "sim arm suite suites task tasks init inits layout seed seeds episodes scenes to",
    "Who drives": "policy policies policy-seed policy-seeds temperature inference agent base-url "
    "overlays demonstrations shots save-demonstrations think-ahead model author drafts",
    "Critics and skills": "bundle arms sensing recovery-share shadow calibration localizer "
    "critic-isolation skills level",
    "Limits": "turns commands-per-turn tokens dollars seconds steps call-seconds idle linger "
    "generations budget watchdog minutes blocks ticks hz pictures margin batch max-sessions",
    "The search and its gate": "development search branch-seeds pass-k reuse null everywhere",
    "Server": "door bind http port url name keys key-file token-file allow-remote convention "
    "generation metrics",
    "Episodes and pictures": "only successes with-oracle state camera size videos overlay every "
    "count strip",
    "How it runs": "realtime render any-profile worker workers launch ray-address share-policy "
    "depth-noise option key",
    "What comes out": "video text lerobot parquet gymnasium pdf draw strips force "
    "signals out resume list plan grammar report plot require-success "
    "json help",
}
"""Panel and the options that belong to it, wherever they occur."""
PANEL_OF: Final = {f"--{name}": panel for panel, names in PANELS.items() for name in names.split()}

Row: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it: a term and its explanation each."""

    title: str
    rows: tuple[Row, ...]


def page_of(path: Sequence[str]) -> Page | None:
    """Return what is written about a command, such as `("skills", "list")`."""
    name = " ".join(path)
    return PAGES.get(name) or SKILL_PAGES.get(name)


def sections(command: Any, context: Any) -> Iterator[Section]:
    """Yield the arguments and then the options, in panels where there are many."""
    arguments: list[Row] = []
    panels: dict[str, list[Row]] = {}
    options = [p for p in command.get_params(context) if p.param_type_name == "option"]
    many = sum(not p.hidden for p in options) > MANY
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(record)
            continue
        own = getattr(parameter, "rich_help_panel", None)
        panel = (own or _panel(parameter.opts)) if many else OTHER
        panels.setdefault(panel, []).append(record)
    if arguments:
        yield Section("Arguments", tuple(arguments))
    for title in (*(each for each in panels if each not in PANELS), *PANELS):
        if title in panels:
            yield Section(title, tuple(panels[title]))


def exits(page: Page) -> tuple[Row, ...]:
    """Return the exit codes of a command and what they mean."""
    return tuple((f"{code}", said) for code, said in ({**EXITS, **page.exits}).items())


def path_of(context: Any) -> tuple[str, ...]:
    """Return the names of a command after `zetta`."""
    return tuple(context.command_path.split()[1:])


class PageCommand(TyperCommand):
    """A command whose help is a page."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what it does, and when one wants it."""
        super().format_help_text(ctx, formatter)
        _write_when(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        _write_sections(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write exit codes and examples."""
        _write_end(ctx, formatter)


class PageGroup(TyperGroup):
    """A command with commands of its own."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what it does, and when one wants it."""
        super().format_help_text(ctx, formatter)
        _write_when(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and commands."""
        _write_sections(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what else is there to read, exit codes and examples."""
        super().format_epilog(ctx, formatter)
        _write_end(ctx, formatter)


def _panel(flags: Sequence[str]) -> str:
    return next((PANEL_OF[flag] for flag in flags if flag in PANEL_OF), OTHER)


def _write_when(context: Any, formatter: Any) -> None:
    page = page_of(path_of(context))
    if page is not None:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(page.when)


def _write_sections(command: Any, context: Any, formatter: Any) -> None:
    for section in sections(command, context):
        with formatter.section(section.title):
            formatter.write_dl(section.rows)


def _write_end(context: Any, formatter: Any) -> None:
    page = page_of(path_of(context))
    if page is not None:
        with formatter.section("Exit codes"):
            formatter.write_dl(exits(page))
        with formatter.section("Examples"):
            for line in page.examples:  # never wrapped: they are copied
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(EVERYWHERE)
