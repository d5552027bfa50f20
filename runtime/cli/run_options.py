"""Options that mean the same to several verbs, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

Arm = Annotated[
    str | None,
    typer.Option(
        help="A real arm, in place of a simulator: its set-up file, or the name or address "
        "(zmq://HOST:PORT) of one whose set-up is kept."
    ),
]
Instruction = Annotated[
    str | None, typer.Argument(help="What shall be done, in words; in place of --task.")
]
Sim = Annotated[str, typer.Option(help="Simulator; `zetta sims list` names them.")]
Suite = Annotated[
    str | None, typer.Option(help="Suite of tasks; --list of `zetta run` names them.")
]
Tasks = Annotated[str | None, typer.Option(help="Task number or name, or 0,2-4, or all.")]
Init = Annotated[str | None, typer.Option(help="Number of an init state, or 'sampled'. Default 0.")]
Seed = Annotated[int, typer.Option(help="Seed of the scene.")]
Episodes = Annotated[
    int, typer.Option(help="Episodes of each task: inits K, K+1, ... or seeds N, N+1, ...")
]

SkillPolicy = Annotated[
    str, typer.Option(help="Policy behind the command `policy`; none by default.")
]
Steps = Annotated[str, typer.Option(help="Ticks of an episode: published, unlimited, or a number.")]
Overlays = Annotated[
    str, typer.Option(help="Drawn into its pictures: all, none, or such as grid,cross,marks.")
]
Seeing = Annotated[
    str, typer.Option(help="Highest level used: vision, or oracle to see what sight costs.")
]

Sensing = Annotated[
    str, typer.Option(help="Highest level used: proprio, policy, vision or oracle.")
]
Bundle = Annotated[
    str, typer.Option(help="Critics and skills: none, starter, library, or a folder of skills.")
]
Calibration = Annotated[Path | None, typer.Option(help="File of `zetta critics calibrate`.")]
Localizer = Annotated[
    str | None, typer.Option(help="What finds things in pictures; each simulator has its own.")
]
CriticIsolation = Annotated[
    str, typer.Option(help="Give the critics a process of their own: none or process.")
]

Realtime = Annotated[
    bool, typer.Option("--realtime", help="Run at the control rate; an arm always does.")
]
Render = Annotated[str, typer.Option(help="Render profile: fast or full.")]
More = Annotated[list[str] | None, typer.Option(help="Further NAME=VALUE; may be repeated.")]
Strip = Annotated[bool, typer.Option(help="Draw a strip of pictures of each episode.")]
Video = Annotated[bool, typer.Option(help="Write an MP4 of each episode.")]
Out = Annotated[Path | None, typer.Option(help="Folder of this run; new or empty.")]
RequireSuccess = Annotated[
    bool, typer.Option("--require-success", help="Exit 1 unless every episode is solved.")
]
