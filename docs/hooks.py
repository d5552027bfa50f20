"""Makes the pages of the site that nobody writes by hand, when it is built."""

from __future__ import annotations

import re
from typing import Any, Final

from zetta.runtime.cli.main import VERBS
from zetta.runtime.cli.tree import load, walk

VERBS_PAGE: Final = "verbs.md"
"""The command's reference; it exists on the site only."""
COLUMNS: Final = 100
FETCHED: Final = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')
FENCE_WORDS: Final = re.compile(r"^( *```sh) [^\n`]+$|^( *```text) [^\n`]+$", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are generated."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, VERBS_PAGE, content=reference()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave of a fence its language alone: further words are for the tests of a page."""
    return FENCE_WORDS.sub(lambda found: found.group(1) or found.group(2), markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Leave out the one script that the theme would fetch: it lets searches run from `file://`."""
    return FETCHED.sub("", output)


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for pages that are no documents, such as the one for a wrong address."""
    return FETCHED.sub("", output_content)


def reference() -> str:
    """Return the page that says what every verb takes: its own help."""
    parts = [
        "# Every verb and option",
        "What `--help` says of every verb, written down when this site was built. Exit codes, "
        "`--json` and completion are in [The command line](cli.md).",
    ]
    for verb, what in VERBS.items():
        parts.append(f"## zetta {verb}\n\n{what[:1].upper()}{what[1:]}.")
        below = dict(walk(load(verb, verb), (verb,)))
        for path in sorted(below):
            name = " ".join(("zetta", *path))
            if path != (verb,):
                parts.append(f"### {name}")
            parts.append(f"```text\n{_help(name, below[path])}\n```")
    return "\n\n".join(parts) + "\n"


def _help(name: str, command: Any) -> str:
    """Return the help of one command, as a terminal of `COLUMNS` shows it."""
    context = command.context_class(
        command, info_name=name, terminal_width=COLUMNS, max_content_width=COLUMNS
    )
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return "\n".join(lines).strip()
