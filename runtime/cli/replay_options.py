"""The options of `zetta replay`, under the headings of its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

SHOWN: Final = "What is shown"
DRAWN: Final = "How it is drawn"
ASKED: Final = "What if a skill had started (runs the simulator and the policy again)"

Episode = Annotated[Path, typer.Argument(metavar="EPISODE", help="Folder of one episode.")]
Video = Annotated[
    Path | None, typer.Option(help="Write an MP4 to this file.", rich_help_panel=SHOWN)
]
Strip = Annotated[
    Path | None, typer.Option(help="Write a picture strip (PNG) here.", rich_help_panel=SHOWN)
]
Text = Annotated[
    bool,
    typer.Option(
        "--text", help="Tell it in words; so is one of an arm, in any case.", rich_help_panel=SHOWN
    ),
]
RerunFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.rrd",
        help="Write it for Rerun: pictures, signals, actions, who drove, on one time axis.",
        rich_help_panel=SHOWN,
    ),
]
View = Annotated[
    bool,
    typer.Option("--view", help="Open the file of --rerun in its viewer.", rich_help_panel=SHOWN),
]
Cameras = Annotated[
    list[str] | None,
    typer.Option(help="Camera to draw; may be given again. Default all.", rich_help_panel=DRAWN),
]
Size = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Size of each camera's picture: WIDTHxHEIGHT, or HEIGHT. Default: what the policy "
        "sees, enlarged.",
        rich_help_panel=DRAWN,
    ),
]
Every = Annotated[
    int,
    typer.Option(
        help="Ticks between two pictures of --video and --rerun; films run in real time.",
        rich_help_panel=DRAWN,
    ),
]
Count = Annotated[int, typer.Option(help="Moments of the strip.", rich_help_panel=DRAWN)]
Written = Annotated[
    str,
    typer.Option(
        help="What the MP4 says below the pictures: none, source (who drives), or verdicts (and "
        "what critics said).",
        rich_help_panel=DRAWN,
    ),
]
Render = Annotated[
    str | None,
    typer.Option(help="Render profile; default that of the episode.", rich_help_panel=DRAWN),
]
Tick = Annotated[
    int | None,
    typer.Option(
        metavar="TICK",
        help="Branch at this tick: as it was, and with a skill.",
        rich_help_panel=ASKED,
    ),
]
Skill = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The skill that starts there: a name, or the folder of one.",
        rich_help_panel=ASKED,
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        help="Continuations of each branch: the episode's own seed of the policy, then others.",
        rich_help_panel=ASKED,
    ),
]
Level = Annotated[
    str | None,
    typer.Option(help="Highest level used; default that of the episode.", rich_help_panel=ASKED),
]
Share = Annotated[
    float | None,
    typer.Option(
        help="Share of the step budget that skills may use; default that of the episode.",
        rich_help_panel=ASKED,
    ),
]
Inexact = Annotated[
    bool,
    typer.Option(
        "--inexact",
        help="Branch also where the episode does not come out again as logged; marked.",
        rich_help_panel=ASKED,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the branches; one with the same question is gone on with.",
        rich_help_panel=ASKED,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
