"""Signatures: who signed, what a change does to it, and how the key is kept."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed448

from zetta.runtime.errors import ConfigError, ScreenError
from zetta.skills import signatures
from zetta.skills.package import load_skill, sign
from zetta.skills.template import write_template


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_template("probe", tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "config" / signatures.KEY_NAME
    signatures.make_key(path)
    return path


def test_a_signed_package_says_which_key_signed_it(folder: Path, key: Path) -> None:
    before = load_skill(folder).digest
    private = signatures.read_key(key)

    assert sign(folder, private) == before
    package = load_skill(folder)
    assert package.digest == before
    assert str(package.signed) == f"signed by {signatures.id_of(private)}"


@pytest.mark.parametrize(
    "name", ["SKILL.md", "critic.py", "recovery.py", "params.toml", "evidence.json"]
)
def test_one_changed_byte_breaks_the_signature(folder: Path, key: Path, name: str) -> None:
    sign(folder, signatures.read_key(key))
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")

    with pytest.raises(ScreenError, match=r"signature\.json:1: the files are not the ones"):
        load_skill(folder)


def test_an_added_file_breaks_the_signature(folder: Path, key: Path) -> None:
    sign(folder, signatures.read_key(key))
    (folder / "notes.md").write_text("more", encoding="utf-8")

    with pytest.raises(ScreenError, match="not the ones that were signed"):
        load_skill(folder)


def test_a_broken_signature_can_be_replaced_by_signing_anew(folder: Path, key: Path) -> None:
    private = signatures.read_key(key)
    sign(folder, private)
    (folder / "notes.md").write_text("more", encoding="utf-8")
    sign(folder, private)

    assert load_skill(folder).signed.state == "signed"


def test_a_package_that_fails_its_checks_is_not_signed(folder: Path, key: Path) -> None:
    (folder / "critic.py").write_text("import os\n", encoding="utf-8")

    with pytest.raises(ScreenError, match=r"critic\.py:1: "):
        sign(folder, signatures.read_key(key))
    assert not (folder / "signature.json").exists()


@pytest.mark.parametrize("field", signatures.FIELDS)
def test_no_field_of_a_signature_can_be_exchanged(tmp_path: Path, field: str) -> None:
    texts = []
    for number in range(2):
        path = tmp_path / f"{number}.pem"
        signatures.make_key(path)
        texts.append(
            json.loads(signatures.signature_text(f"{number}" * 64, signatures.read_key(path)))
        )
    forged = {**texts[0], field: texts[1][field] if field != "algorithm" else "none"}

    assert signatures.verify("0" * 64, json.dumps(texts[0]).encode()).state == "signed"
    assert signatures.verify("0" * 64, json.dumps(forged).encode()).state == "broken"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"algorithm": 1}', "[" * 100_000, "\\xff", '"\\ud800"']
)
def test_whatever_lies_in_the_signature_file_is_only_broken(text: str) -> None:
    signed = signatures.verify("0" * 64, text.encode())

    assert (signed.state, str(signed)) == ("broken", "BROKEN")


def test_no_file_means_unsigned() -> None:
    assert str(signatures.verify("0" * 64, None)) == "unsigned"


def test_a_signature_of_other_data_with_the_same_key_is_no_signature(key: Path) -> None:
    private = signatures.read_key(key)
    fields = json.loads(signatures.signature_text("0" * 64, private))
    import base64

    fields["signature"] = base64.b64encode(private.sign(b"0" * 64)).decode()  # without the purpose

    assert signatures.verify("0" * 64, json.dumps(fields).encode()).state == "broken"


def test_only_its_owner_may_read_a_key(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert [path.name for path in key.parent.iterdir()] == [key.name]

    key.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        signatures.read_key(key)


def test_a_key_is_replaced_only_when_told(key: Path) -> None:
    before = key.read_bytes()
    with pytest.raises(ConfigError, match="--force"):
        signatures.make_key(key)
    assert key.read_bytes() == before

    replaced = signatures.make_key(key, force=True)
    assert key.read_bytes() != before
    assert signatures.id_of(signatures.read_key(key)) == replaced
    assert [path.name for path in key.parent.iterdir()] == [key.name]


def test_what_is_no_key_is_said(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(ConfigError, match="zetta skills keygen"):
        signatures.read_key(path)
    path.write_text("no key", encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="holds no private key"):
        signatures.read_key(path)
    pem = ed448.Ed448PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(pem)
    with pytest.raises(ConfigError, match="expected Ed25519"):
        signatures.read_key(path)
