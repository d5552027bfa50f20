"""A zip from elsewhere writes nothing outside its folder, and only whole files are taken."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from tests.runtime.cli.asset_server import zipped
from zetta.runtime.cli import sims_unpack
from zetta.runtime.cli.sims_unpack import DamagedError, contents, hash_of, settle, unpack
from zetta.runtime.errors import InfraError
from zetta.sims.installs.downloads import AssetPart

PART = AssetPart(
    name="objects",
    about="",
    url="https://box.example/objects.zip",
    file="objects.zip",
    into="objects",
    gives=("objects/cups",),
    needed=True,
    download_mb=1,
    unpacked_mb=1,
    size=0,
    sha256="",
)
CUP = {"cups/1/cup.obj": b"c" * 5000}


def written(folder: Path, content: bytes) -> Path:
    path = folder / "objects.zip"
    path.write_bytes(content)
    return path


def test_files_go_below_their_folder_and_over_older_ones(tmp_path: Path) -> None:
    root, staging = tmp_path / "root", tmp_path / "staging"
    (root / "objects" / "cups" / "1").mkdir(parents=True)
    (root / "objects" / "cups" / "1" / "cup.obj").write_text("older")
    (root / "objects" / "mine.txt").write_text("kept")
    path = written(tmp_path, zipped({**CUP, "cups/": b"", "__MACOSX/._cups": b"junk"}))
    held = contents(path, PART, ".zetta")
    assert held.unpacked == 5000
    told: list[tuple[int, int]] = []
    unpack(path, held, PART, staging, lambda *at: told.append(at))
    assert told[-1] == (5000, 5000)
    assert settle(staging, root) == ["objects/cups/1/cup.obj"]
    assert (root / "objects/cups/1/cup.obj").read_bytes() == CUP["cups/1/cup.obj"]
    assert (root / "objects" / "mine.txt").read_text() == "kept"
    assert not staging.exists()


@pytest.mark.parametrize(
    "name",
    ["../evil", "cups/../../../evil", "/etc/evil", "..\\evil", "cups/..", "cups/a\\..\\..\\b"],
)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, zipped({**CUP, name: b"evil"}))
    with pytest.raises(DamagedError, match="no place inside its folder; it is refused"):
        contents(path, PART, ".zetta")


def test_our_own_files_cannot_be_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, zipped({"cups/a": b"", ".zetta/objects.json": b"{}"}))
    at_root = PART.__class__(**{**fields(), "into": "", "gives": ("cups",)})  # type: ignore[arg-type]
    with pytest.raises(DamagedError, match=r"\.zetta/objects\.json"):
        contents(path, at_root, ".zetta")


def fields() -> dict[str, object]:
    return {name: getattr(PART, name) for name in AssetPart.__slots__}


def test_a_link_becomes_a_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "objects.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("cups/a", b"a")
        link = zipfile.ZipInfo("cups/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    unpack(path, contents(path, PART, ".zetta"), PART, tmp_path / "staging", lambda *at: None)
    written_out = tmp_path / "staging/objects/cups/link"
    assert not written_out.is_symlink()
    assert written_out.read_text() == "/etc/passwd", "the words of the link, not what it leads to"


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, zipped({"plates/1.obj": b"p"}))
    with pytest.raises(DamagedError, match="holds no objects/cups: it is another one"):
        contents(path, PART, ".zetta")


def test_a_zip_that_would_grow_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "objects.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cups/zeros", bytes(2_000_000))
    with pytest.raises(DamagedError, match="more than 200 times its size"):
        contents(path, PART, ".zetta")


@pytest.mark.parametrize("left", [0, 3, 100, 5000])
def test_a_zip_that_ends_early_is_refused(tmp_path: Path, left: int) -> None:
    path = written(tmp_path, zipped(CUP)[:left])
    with pytest.raises(DamagedError, match="the zip of objects is damaged"):
        contents(path, PART, ".zetta")


def test_a_file_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    broken = bytearray(zipped(CUP))
    broken[1000] ^= 1
    path = written(tmp_path, bytes(broken))
    held = contents(path, PART, ".zetta")
    with pytest.raises(DamagedError, match="Bad CRC-32"):
        unpack(path, held, PART, tmp_path / "staging", lambda *at: None)


def test_a_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    locked = bytearray(zipped(CUP))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + offset] |= 1
    path = written(tmp_path, bytes(locked))
    with pytest.raises(DamagedError, match="encrypted"):
        unpack(path, contents(path, PART, ".zetta"), PART, tmp_path / "staging", lambda *at: None)


def test_a_disk_that_is_full_keeps_the_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zipped(CUP))

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    held = contents(path, PART, ".zetta")
    monkeypatch.setattr(sims_unpack.shutil, "copyfileobj", full)
    with pytest.raises(InfraError, match="No space left on device; the zip is kept") as caught:
        unpack(path, held, PART, tmp_path / "staging", lambda *at: None)
    assert not isinstance(caught.value, DamagedError)


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "objects/cups/1/cup.obj/in the way").mkdir(parents=True)
    path = written(tmp_path, zipped(CUP))
    unpack(path, contents(path, PART, ".zetta"), PART, tmp_path / "staging", lambda *at: None)
    with pytest.raises(InfraError, match="cannot write to"):
        settle(tmp_path / "staging", root)


def test_the_hash_is_that_of_the_whole_file(tmp_path: Path) -> None:
    path = written(tmp_path, b"abc")
    assert hash_of(path, lambda *at: None).startswith("ba7816bf8f01cfea414140de5dae2223")
