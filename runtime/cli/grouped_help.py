"""Help of a verb with many options: they stand under the headings that the verb gives them."""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand

OPTIONS: Final = "Options"
"""The heading of options that have none."""


class GroupedCommand(TyperCommand):
    """A command whose options are listed by their `rich_help_panel`, in the order they came."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then one section for each heading."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        plain: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            line = param.get_help_record(ctx)
            if line is None:
                continue
            if param.param_type_name == "argument":
                sections["Arguments"].append(line)
                continue
            heading = getattr(param, "rich_help_panel", None)
            (plain if heading is None else sections.setdefault(heading, [])).append(line)
        for heading, lines in (*sections.items(), (OPTIONS, plain)):
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)
