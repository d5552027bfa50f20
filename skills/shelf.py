"""Where skill packages stand: the library that comes with zetta, and the folders a user names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from zetta.runtime.errors import ConfigError, suggest
from zetta.skills.package_files import PAGE


def library_folder() -> Path:
    """Return the folder of the skills that come with zetta."""
    return Path(__file__).resolve().parent / "library"


def package_folders(folder: Path) -> tuple[Path, ...]:
    """Return the packages in a folder, by name; the folder may be a package itself.

    Raises:
        ConfigError: there is no such folder.
    """
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ConfigError(f"{folder} {what}; give a folder of skill packages with --skills")
    folder = folder.resolve()
    if (folder / PAGE).exists():
        return (folder,)
    return tuple(sorted(page.parent for page in folder.glob(f"*/{PAGE}")))


def shelve(folders: Iterable[Path], library: Path | None = None) -> dict[str, Path]:
    """Return the package folder of every name: the library's and those in `folders`.

    No package replaces another: two of one name are an error.

    Raises:
        ConfigError: a folder does not exist, or two packages have one name.
    """
    shelf: dict[str, Path] = {}
    library = library_folder() if library is None else library
    for folder in (*([library] if library.is_dir() else []), *folders):
        for package in package_folders(folder):
            known = shelf.setdefault(package.name, package)
            if known != package:
                raise ConfigError(
                    f"two skills are named {package.name!r}: {known} and {package}; rename one"
                )
    return shelf


def find_package(wanted: str, folders: Sequence[Path] = ()) -> Path:
    """Return the folder of a package that is given by its name or by its folder.

    What holds a `/` or is `.` is a folder; a word is a name, and a folder only when there is no
    such name.

    Raises:
        ConfigError: there is neither such a name nor such a folder.
    """
    path = Path(wanted)
    if "/" not in wanted and wanted not in (".", ".."):
        shelf = shelve(folders)
        if wanted in shelf:
            return shelf[wanted]
        if not path.is_dir():
            raise ConfigError(f"there is no skill {wanted!r}; {suggest(wanted, shelf)}")
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise ConfigError(f"{wanted} {what}; give the folder of a skill package, or a skill's name")
    return path.resolve()
