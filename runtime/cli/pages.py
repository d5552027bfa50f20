"""What the help of a command says beyond its options: when it is wanted, examples, exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

EXITS: Final[Mapping[int, str]] = {
    0: "carried out, whatever came of it",
    1: "an error: one line on stderr says what to do",
    2: "wrong usage",
    130: "interrupted",
}


@dataclass(frozen=True, slots=True)
class Page:
    """The end of one page of help."""

    when: str
    """When one wants the command, and what it leaves behind."""
    examples: tuple[str, ...]
    exits: Mapping[int, str] = field(default_factory=dict)
    """What differs from `EXITS`."""


PAGES: Final[Mapping[str, Page]] = {
    "run": Page(
        "Use it to see a policy at work, with or without critics and skills. Each episode leaves "
        "a folder with its log, a picture strip and, on request, a video. An episode that is not "
        "solved is a result, no error.",
        (
            "zetta run --sim toy --policy-seed 1",
            "zetta run --sim libero --suite libero_object_swap --bundle starter --episodes 5",
            "zetta run --sim toy --list --json",
        ),
        {1: "an error, or an episode without a score; with --require-success also one unsolved"},
    ),
    "eval": Page(
        "Use it to know whether something helps: every arm meets the same scenes, so that pairs "
        "can be tested. Finished episodes are kept, and --resume goes on where it was broken off.",
        (
            "zetta eval --sim toy --suites toy_pick --inits 0-4 --arms none,starter",
            "zetta eval --sim libero --suites libero_object --out results/mine --resume",
        ),
    ),
    "replay": Page(
        "Use it after a run, to look again at an episode from its log. For pictures the simulator "
        "only draws; --counterfactual runs the episode again, up to a tick and on from there.",
        (
            "zetta replay runs/mine/episodes/000 --video film.mp4 --size 512",
            "zetta replay runs/mine/episodes/000 --rerun episode.rrd",
            "zetta replay runs/mine/episodes/000 --counterfactual 80 --skill regrasp",
        ),
    ),
    "dashboard": Page(
        "Use it to watch running episodes and to look into finished ones, in a browser, offline.",
        ("zetta dashboard runs", "zetta dashboard runs --port 0 --json"),
        {0: "it was told to end"},
    ),
    "report": Page(
        "Use it to pass a result on: one file that loads nothing from elsewhere.",
        (
            "zetta report runs/mine --pdf mine.pdf",
            "zetta report runs/bare runs/mine --out both.html",
        ),
    ),
    "export": Page(
        "Use it to train on what was logged, interventions included.",
        ("zetta export runs/mine --lerobot dataset", "zetta export runs/mine --parquet tables"),
    ),
    "train": Page(
        "Use it to make the weights that come with zetta again, or others like them. It needs "
        "the extra `train`, takes hours on two cores, and goes on where it was broken off.",
        ("zetta train tiny", "zetta train localizer --minutes 30"),
    ),
    "serve": Page(
        "Use it when robots or simulators run in another process or on another machine than the "
        "policy. It listens on this machine only unless keys are given.",
        ("zetta serve --policy zetta/tiny", "zetta serve --policy zetta/tiny --door openpi"),
        {0: "it was told to end"},
    ),
    "serve keygen": Page(
        "Needed once, before a policy or an arm is served to other machines.",
        ("zetta serve keygen --out zetta-keys",),
    ),
    "drive": Page(
        "Use it where no policy knows the task: whoever drives sees pictures and gives commands "
        "in words, and the robot carries them out. --grammar shows the commands.",
        (
            "zetta drive --sim libero --suite libero_spatial --task 1",
            "zetta drive --sim libero --agent human",
            "zetta drive --grammar",
        ),
        {1: "an error, or an episode without a score; with --require-success also one unsolved"},
    ),
    "mcp": Page(
        "Use it to let an agentic program that speaks the Model Context Protocol drive. Such a "
        "program starts it itself and talks over stdin and stdout, or finds it with --http.",
        (
            "zetta mcp --sim libero --suite libero_object --task 3",
            "zetta mcp --sim toy --http 127.0.0.1:5710",
        ),
        {1: "an error; with --require-success also an episode that was not solved"},
    ),
    "sims list": Page(
        "The first thing to type when a simulator is missing. Imports none of them.",
        ("zetta sims list", "zetta sims list --json"),
    ),
    "sims install": Page(
        "For simulators that clash with others and so have an environment of their own. It takes "
        "minutes and some GB; what is whole is left as it is.",
        ("zetta sims install robosuite", "zetta sims install maniskill --again"),
    ),
    "sims graphics": Page(
        "For machines without a graphics card on which a simulator draws with Vulkan.",
        ("zetta sims graphics",),
    ),
    "sims check": Page(
        "Use it after an installation, or when a simulator does not start.",
        ("zetta sims check robocasa",),
        {1: "something is missing: the last line fixes it"},
    ),
    "sims assets": Page(
        "For simulators whose kitchens, objects or textures are downloads of their own. Every "
        "file is verified.",
        ("zetta sims assets robocasa --list", "zetta sims assets robocasa --part all --yes"),
    ),
    "sims remove": Page(
        "Use it to have room again.",
        ("zetta sims remove maniskill --yes", "zetta sims remove robocasa --keep-assets"),
    ),
    "arms list": Page(
        "Use it to see what can be driven here, and who is there.",
        ("zetta arms list", "zetta arms list tcp://robot:5701 --json"),
    ),
    "arms serve": Page(
        "Use it on the computer beside the robot, or with --twin to try everything without one.",
        ("zetta arms serve bench.toml", "zetta arms serve --twin panda --port 5701"),
        {
            0: "it was told to end",
            1: "the robot cannot be reached, or a port is taken",
            2: "what was declared is wrong",
        },
    ),
    "arms check": Page(
        "Use it before every session with an arm.",
        ("zetta arms check tcp://robot:5701 --setup arm.toml",),
        {1: "something is missing"},
    ),
    "arms estop": Page(
        "Use it when an arm does what it should not; a button in reach is still needed.",
        ("zetta arms estop tcp://robot:5701", "zetta arms estop --setup arm.toml"),
        {0: "every arm confirmed", 1: "an arm did not confirm"},
    ),
    "arms clear": Page(
        "Use it after a stop, when somebody has looked at the arm.",
        ("zetta arms clear tcp://robot:5701 --by ada",),
    ),
    "arms approve": Page(
        "Use it where the set-up of an arm asks a person before each target.",
        ("zetta arms approve tcp://robot:5701 --by ada",),
    ),
    "arms audit": Page(
        "Use it to know what an arm was told, and that nobody changed the log since.",
        ("zetta arms audit audit-log",),
        {1: "a line was changed, or the log cannot be read"},
    ),
    "arms record": Page(
        "Use it to collect pictures and poses for a calibration, or to see what cameras see.",
        ("zetta arms record tcp://robot:5701 --setup arm.toml --out recording --seconds 30",),
    ),
    "arms calibrate board": Page(
        "The first step of a calibration: print it at 100 % and measure a square.",
        ("zetta arms calibrate board --out board.pdf --squares 7x5 --square-mm 35",),
    ),
    "arms calibrate intrinsics": Page(
        "Needed once for every camera and lens, before its pose is measured.",
        ("zetta arms calibrate intrinsics --setup arm.toml --camera front pictures",),
    ),
    "arms calibrate extrinsics": Page(
        "Needed again whenever a camera was moved.",
        ("zetta arms calibrate extrinsics --setup arm.toml --camera wrist recording",),
    ),
    "arms camera": Page(
        "Use it on the machine to which a camera is plugged, when the policy runs elsewhere.",
        ("zetta arms camera --setup arm.toml --name front",),
        {0: "it was told to end"},
    ),
    "evolve": Page(
        "Use it over night: it runs, finds failures, writes candidates and tries them on scenes "
        "that nobody has seen. What passed is in the folder, with its evidence; "
        "`zetta skills promote` takes it over. --null measures how often the gate errs.",
        (
            "zetta evolve --sim toy --suite toy_slip --out runs/slip",
            "zetta evolve --null 200",
        ),
    ),
    "critics list": Page(
        "Use it to see who watches, at which sensing level, and which skill each one calls.",
        ("zetta critics list", "zetta critics list --json"),
    ),
    "critics check": Page(
        "Use it after every change to a critic or a recovery; nothing is run.",
        ("zetta critics check skills/my-skill", "zetta critics check critic.py --json"),
        {1: "something is wrong: file, line and reason are printed"},
    ),
    "critics calibrate": Page(
        "Needed where critics shall act in a new place: it sets thresholds from successes.",
        ("zetta critics calibrate runs/shadow --bundle starter --alpha 0.1",),
    ),
    "critics judge": Page(
        "Use it after an episode on an arm, which does not know whether its task is done.",
        ("zetta critics judge runs/arm/episodes/000 --success --by ada",),
    ),
    "critics replay": Page(
        "Use it after a change to a critic: it says what it would have done in old episodes.",
        ("zetta critics replay runs/shadow --bundle starter",),
        {1: "a log says otherwise, or an error"},
    ),
    "critics triggers": Page(
        "For the control arm `random`, which intervenes as often but at random moments.",
        ("zetta critics triggers runs/starter --out triggers.json",),
    ),
    "critics docs": Page(
        "Use it while writing a critic: every operator, limit and rule is there.",
        ("zetta critics docs", "zetta critics docs --into docs/critics.md"),
    ),
    "doctor": Page(
        "The first thing to type on a new machine, or when something does not start. Every line "
        "that is not ok ends with the command that mends it.",
        ("zetta doctor", "zetta doctor --json"),
        {1: "something that is needed is missing"},
    ),
    "doctor policy": Page(
        "Use it before the first run with somebody else's policy server.",
        ("zetta doctor policy openpi://localhost:8000@libero",),
        {1: "it cannot be reached, or does not fit"},
    ),
    "bench": Page(
        "Use it to know what an option costs on this machine. Figures are compared with a "
        "baseline that runs in turns with them, so that a busy machine slows both.",
        ("zetta bench sim", "zetta bench loop --sim toy --json"),
    ),
}  # fmt: skip
