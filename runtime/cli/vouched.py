"""Who vouches for the skills of a run: a simulator warns of unsigned ones, an arm refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from zetta.runtime import registry
from zetta.runtime.cli import output
from zetta.runtime.cli.home import key_path
from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError
from zetta.skills.bundles import LoadedBundle
from zetta.skills.shelf import library_folder
from zetta.skills.signatures import id_of, read_key

OPTION: Final = "unsigned"
"""The option with which an arm takes skills that nobody has signed; it is in the log of the run."""


def check_vouched(spec: RunSpec, bundle: LoadedBundle) -> None:
    """Refuse skills on an arm for which nobody vouches, unless they only watch.

    A signature says that the holder of a key has it in hand, with these very bytes. It is not
    judged whose key that is: one that is not the user's own is named.

    Raises:
        ConfigError: a skill that could drive the arm is unsigned, and nobody said that it may.
    """
    if not registry.is_arm(spec.sim):
        return
    watched = spec.options.get("shadow") == "yes"
    if bundle.unsigned and not watched and spec.options.get(OPTION) != "yes":
        raise ConfigError(
            f"the bundle {spec.bundle!r} holds unsigned {_named(bundle.unsigned)}, and nobody "
            "vouches for what would drive this arm; read it, then zetta skills keygen (once) and "
            "zetta skills sign FOLDER, or take it into your library with zetta skills promote "
            f"NAME --sign and run with --bundle library; --option {OPTION}=yes takes it as it is"
        )
    if bundle.unsigned:
        why = "it only watches here" if watched else f"you said {OPTION}=yes"
        _note(f"nobody has signed {_named(bundle.unsigned)}; taken, for {why}")
    for line in _strangers(bundle):
        _note(line)


def warn_unsigned(spec: RunSpec, bundle: LoadedBundle) -> None:
    """Say in a simulator which skills an arm would refuse; those that come with zetta are known."""
    shipped = library_folder()
    own = {package.name for package in bundle.packages if shipped in package.folder.parents}
    unsigned = tuple(name for name in bundle.unsigned if name not in own)
    if unsigned and not registry.is_arm(spec.sim):
        _note(f"nobody has signed {_named(unsigned)}; an arm refuses that (zetta skills sign)")


def _strangers(bundle: LoadedBundle) -> Iterator[str]:
    """Yield a line for each key that is not the user's own."""
    signers = {p.signed.key_id: p.name for p in bundle.packages if p.signed.state == "signed"}
    own = _own_key() if signers else ""
    for key, name in signers.items():
        if key != own:
            yield f"the skill {name!r} is signed by {key}, not by your key; know whose that is"


def _own_key() -> str:
    """Return the id of the user's own key; empty where there is none that can be read."""
    try:
        return id_of(read_key(key_path()))
    except ConfigError:
        return ""


def _named(names: tuple[str, ...]) -> str:
    return f"skill{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


@cache
def _note(line: str) -> None:
    """Say something once in a process, however many episodes it runs."""
    output.note(line)
