"""`zetta skills promote|retire|rollback|history|diff|quarantine|release`: the user's library."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zetta.runtime.cli import output
from zetta.runtime.cli.home import home_library, key_path
from zetta.runtime.errors import ConfigError, ScreenError

if TYPE_CHECKING:
    from zetta.skills.bundle_folders import Member
    from zetta.skills.library_history import Author, Change
    from zetta.skills.package_files import PackageFiles
    from zetta.skills.promotions import PromotionEvidence
    from zetta.skills.user_library import UserLibrary

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Where = Annotated[
    Path | None, typer.Option("--library", help="Folder of the library; your own by default.")
]
Skill = Annotated[str, typer.Argument(metavar="SKILL", help="A skill of the library.")]
Why = Annotated[str, typer.Option(help="The reason, for the history.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `zetta skills`."""
    for name, command in (
        ("promote", promote),
        ("retire", retire),
        ("rollback", rollback),
        ("history", history),
        ("diff", diff),
        ("quarantine", quarantine),
        ("release", release),
    ):
        app.command(name)(command)


def promote(
    wanted: Annotated[
        str, typer.Argument(metavar="SKILL|CAMPAIGN", help="A package, or a campaign's folder.")
    ],
    evidence: Annotated[
        Path | None, typer.Option(help="What the gate found: promotion.json of a campaign.")
    ] = None,
    sign: Annotated[bool, typer.Option("--sign", help="Sign it with your key.")] = False,
    unproven: Annotated[
        bool, typer.Option("--unproven", help="Take it without a gate's verdict; recorded.")
    ] = False,
    why: Why = "",
    library: Where = None,
    as_json: AsJson = False,
) -> None:
    """Put a skill into your library and use it from now on, as `--bundle library`."""
    from zetta.skills.bundle_folders import manifest_of

    shelf = library_at(library)
    package, offered = _offer(wanted, evidence)
    member = _member(package, offered, sign, unproven)
    before = manifest_of(shelf.bundle(shelf.current())[1])
    change = shelf.promote(member, _author(), why)
    after = shelf.bundle(change.version)[0]
    _tell(
        shelf,
        change,
        [
            f"{member.name} is {'unproven' if change.unproven else 'proven'} and "
            f"{'signed' if member.part.signature else 'unsigned'}",
            *_about_parent(member, before.bundle if before.skills else ""),
            *_about_calibration(before.bundle if before.skills else "", after.bundle),
        ],
        as_json,
    )


def retire(skill: Skill, why: Why, library: Where = None, as_json: AsJson = False) -> None:
    """Leave a skill out from now on; earlier versions keep it."""
    shelf = library_at(library)
    before = shelf.bundle(shelf.current())[0].bundle
    change = shelf.retire(skill, _author(), why)
    after = shelf.bundle(change.version)[0].bundle
    _tell(shelf, change, _about_calibration(before, after), as_json)


def rollback(
    to: Annotated[str, typer.Option(help="A version, by its first digits.")] = "",
    why: Why = "",
    library: Where = None,
    as_json: AsJson = False,
) -> None:
    """Use the version before the present one, or the one that is named; nothing is lost."""
    shelf = library_at(library)
    _tell(shelf, roll_back(shelf, to, why), [], as_json)


def history(library: Where = None, as_json: AsJson = False) -> None:
    """Show who changed the library, when and why."""
    shelf = library_at(library)
    changes, current = shelf.history(), shelf.current()
    if as_json:
        output.emit(
            {
                "library": str(shelf.folder),
                "current": current or None,
                "changes": [change_json(change) for change in changes],
            }
        )
        return
    if not changes:
        output.answer(f"the library {shelf.folder} is empty; zetta skills promote fills it")
        return
    columns = ["at", "who", "what", "skill", "from", "to", "why"]
    output.answer(output.table(columns, [_row(change) for change in changes]))
    if changes[-1].version != current:
        output.note(
            f"the last change was recorded and not carried out: {_short(current)} is in use; "
            "repeat it"
        )


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A version, or a package.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The same, to compare with it.")],
    library: Where = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two packages or two versions: numbers in a table, then text."""
    from zetta.skills.bundle_differences import compare

    first, second = _contents(before, library), _contents(after, library)
    found = compare(first, second, before, after)
    if as_json:
        output.emit(
            {
                "same": not found.paths,
                "files": list(found.paths),
                "parameters": [
                    {"parameter": n.parameter, "field": n.field, "before": n.before,
                     "after": n.after}
                    for n in found.numbers
                ],
                "diff": found.text,
            }
        )  # fmt: skip
        return
    if not found.paths:
        output.answer("they are the same")
        return
    if found.numbers:
        rows = [[n.parameter, n.field, n.before or "-", n.after or "-"] for n in found.numbers]
        output.answer(output.table(["parameter", "what", "before", "after"], rows) + "\n")
    output.answer(found.text.rstrip("\n"))


def quarantine(
    skill: Annotated[str, typer.Argument(metavar="SKILL", help="A skill of the library.")] = "",
    why: Why = "",
    evaluation: Annotated[
        Path | None,
        typer.Option("--from", help="An evaluation: every skill that did harm in it."),
    ] = None,
    arm: Annotated[str, typer.Option(help="Its arm with the skills, with --from.")] = "library",
    baseline: Annotated[str, typer.Option(help="Its arm without, with --from.")] = "none",
    most: Annotated[int, typer.Option(help="Harms that are forgiven, with --from.")] = 0,
    library: Where = None,
    as_json: AsJson = False,
) -> None:
    """Leave a skill out of every load of the library at once."""
    shelf = library_at(library)
    if evaluation is not None:
        if skill:
            raise ConfigError("give a skill, or an evaluation with --from, not both")
        _quarantine_from(shelf, evaluation, baseline, arm, most, as_json)
        return
    if not skill or not why:
        raise ConfigError("say which skill, and why: zetta skills quarantine SKILL --why '…'")
    _tell(shelf, shelf.quarantine(skill, _author(), why), [], as_json)


def release(skill: Skill, why: Why, library: Where = None, as_json: AsJson = False) -> None:
    """Let a skill out of quarantine."""
    shelf = library_at(library)
    _tell(shelf, shelf.release(skill, _author(), why), [], as_json)


# ------------------------------------------------------------------------------------- finding


def library_at(folder: Path | None) -> UserLibrary:
    """Return the library in a folder, the user's own by default.

    Raises:
        ConfigError: the folder is a file.
    """
    from zetta.skills.user_library import UserLibrary

    folder = home_library() if folder is None else folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"the library {folder} is a file; give a folder with --library")
    return UserLibrary(folder)


def roll_back(shelf: UserLibrary, to: str, why: str) -> Change:
    """Use the version before the present one, or the one that `to` names.

    Raises:
        ConfigError: there is no such version, or it is in use already or damaged.
        InfraError: the library cannot be written.
    """
    return shelf.rollback(to, _author(), why)


def library_rows(shelf: UserLibrary) -> list[dict[str, output.Json]]:
    """Return what a list says of the skills in use."""
    from zetta.skills.package import load_skill

    version = shelf.current()
    rows: list[dict[str, output.Json]] = []
    for standing in shelf.standings(version):
        folder = shelf.path(version) / standing.part.name
        row: dict[str, output.Json] = {
            "name": standing.part.name,
            "standing": standing.word,
            "why": standing.quarantined or None,
            "hash": standing.part.package,
            "path": str(folder),
        }
        try:
            package = load_skill(folder)
        except ScreenError as error:
            rows.append({**row, "version": None, "level": None, "signed": "BROKEN",
                         "error": str(error)})  # fmt: skip
            continue
        rows.append({**row, "version": package.page.version, "level": package.level,
                     "signed": str(package.signed), "error": None})  # fmt: skip
    return rows


def _offer(wanted: str, evidence: Path | None) -> tuple[Path, PromotionEvidence | None]:
    """Return the package that is offered and what speaks for it."""
    from zetta.skills.evolve.campaign import MANIFEST
    from zetta.skills.evolve.promotion_stage import check_offer
    from zetta.skills.promotions import PROMOTION, offered_by, read_evidence
    from zetta.skills.shelf import find_package

    folder = Path(wanted)
    if not (folder / MANIFEST).exists():
        return find_package(wanted), None if evidence is None else read_evidence(evidence)
    if evidence is not None:
        raise ConfigError("a campaign brings its own evidence; leave --evidence out")
    offer = offered_by(folder)
    if offer is None:
        raise ConfigError(f"the campaign {folder} has promoted nothing")
    check_offer(folder, offer[1], offer[0].parent.parent / PROMOTION)
    return offer


def _member(
    package: Path, evidence: PromotionEvidence | None, sign: bool, unproven: bool
) -> Member:
    from zetta.skills.bundle_folders import Member
    from zetta.skills.package import load_skill
    from zetta.skills.promotions import check_proof

    loaded = load_skill(package)
    if evidence is None and not unproven:
        raise ConfigError(
            f"nothing proves {loaded.name}: give what its gate found with --evidence FILE, or "
            "--unproven to take it on your own word, which is recorded"
        )
    if evidence is not None:
        if unproven:
            raise ConfigError("--unproven is for skills without evidence; give one of the two")
        check_proof(evidence, loaded.name, loaded.digest)
    return Member(_signed(package, loaded.digest, sign), evidence)


def _signed(package: Path, digest: str, sign: bool) -> PackageFiles:
    """Return the files as they were checked, with the user's signature where it is wanted."""
    from dataclasses import replace

    from zetta.skills.package_files import read_files
    from zetta.skills.signatures import read_key, signature_text

    files = read_files(package)
    if files.digest != digest:
        raise ConfigError(f"{package} changed while it was read; try again")
    if not sign:
        return files
    return replace(files, signature=signature_text(digest, read_key(key_path())).encode())


def _contents(wanted: str, library: Path | None) -> dict[str, bytes]:
    from zetta.skills.bundle_differences import contents_of
    from zetta.skills.package_files import read_files
    from zetta.skills.shelf import find_package
    from zetta.skills.user_library import CURRENT

    shelf = library_at(library)
    if wanted == CURRENT or any(v.startswith(wanted) for v in shelf.versions() if len(wanted) > 3):
        return contents_of(shelf.bundle(shelf.resolve(wanted))[1])
    return dict(read_files(find_package(wanted)).contents)


def _author() -> Author:
    from zetta.skills.library_history import Author

    try:
        who = getpass.getuser()
    except (OSError, KeyError):  # a container may know no name for its user
        who = "unknown"
    return Author(who, output.command_line())


# ------------------------------------------------------------------------------------- telling


def _quarantine_from(
    shelf: UserLibrary, evaluation: Path, baseline: str, arm: str, most: int, as_json: bool
) -> None:
    from zetta.skills.quarantine import HarmLimit, harms_of, paired_episodes, quarantine_harmful

    found = harms_of(paired_episodes(evaluation, baseline, arm))
    changes = quarantine_harmful(shelf, found, HarmLimit(most=most), _author())
    left_out = {change.skill for change in changes}
    if as_json:
        output.emit(
            {
                "skills": [
                    {"name": h.skill, "episodes": h.episodes, "harms": h.harms,
                     "quarantined": h.skill in left_out}
                    for h in found
                ]
            }
        )  # fmt: skip
        return
    rows = [[h.skill, str(h.episodes), str(h.harms),
             "quarantined" if h.skill in left_out else "-"] for h in found]  # fmt: skip
    output.answer(output.table(["skill", "episodes", "harms", "and now"], rows))


def _about_parent(member: Member, bundle: str) -> list[str]:
    evidence = member.evidence
    if evidence is None or evidence.parent == bundle:
        return []
    return [
        f"it was judged against the bundle {_short(evidence.parent)} and joins {_short(bundle)}: "
        "what it does beside these skills was not measured"
    ]


def _about_calibration(before: str, after: str) -> list[str]:
    if before == after or not before:
        return []
    return [
        f"a calibration of the bundle {_short(before)} does not hold for {_short(after)} and will "
        "be refused: calibrate again (zetta critics calibrate --bundle library)"
    ]


def _tell(shelf: UserLibrary, change: Change, notes: list[str], as_json: bool) -> None:
    if as_json:
        bundle = shelf.bundle(change.version)[0].bundle
        output.emit({**change_json(change), "bundle": bundle, "library": str(shelf.folder),
                     "notes": notes})  # fmt: skip
        return
    moved = change.version != change.before
    what = f"version {_short(change.version)} is in use" if moved else "at once"
    output.answer(f"{change.action} {change.skill}".rstrip() + f": {what}")
    for note in notes:
        output.note(f"note: {note}")


def change_json(change: Change) -> dict[str, output.Json]:
    """Return an entry of the history as it is printed."""
    return {
        "action": change.action, "at": change.at, "who": change.who, "why": change.why,
        "before": change.before or None, "version": change.version, "skill": change.skill or None,
        "package": change.package or None, "evidence": change.evidence or None,
        "unproven": change.unproven, "command": change.command,
    }  # fmt: skip


def _row(change: Change) -> list[str]:
    what = f"{change.action} (unproven)" if change.unproven else change.action
    ends = [_short(change.before), _short(change.version)]
    return [change.at, change.who, what, change.skill or "-", *ends, change.why or "-"]


def _short(digest: str) -> str:
    return digest[:12] or "none"
