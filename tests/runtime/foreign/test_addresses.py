"""Names of foreign policies: what they say, and what is wrong with those that say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from zetta.runtime import registry
from zetta.runtime.errors import ConfigError
from zetta.runtime.foreign.addresses import parse


def test_a_name_says_host_port_convention_and_options() -> None:
    address = parse("openpi://10.0.0.5:9000@droid,replan_steps=4;deadline_s=2.5", "openpi")
    assert (address.host, address.port, address.convention.name) == ("10.0.0.5", 9000, "droid")
    assert address.options.replan_steps == 4
    assert address.options.deadline_s == 2.5


def test_what_is_left_out_is_as_upstream_has_it() -> None:
    assert parse("openpi://gpu-box", "openpi").port == 8000
    assert parse("gr00t://gpu-box@", "gr00t").port == 5555
    assert parse("gr00t://[::1]:7000", "gr00t").host == "::1"
    assert parse("openpi://gpu-box", "openpi").convention.name == "libero"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openpi://", "HOST"),
        ("openpi://0.0.0.0:8000", "binds"),
        ("openpi://h:99999", "no address"),
        ("openpi://h:x", "no address"),
        ("openpi://h:1/path", "HOST"),
        ("openpi:h", "HOST"),
        ("openpi://h@liberro", "libero"),
        ("openpi://h@libero,replan=3", "replan_steps"),
        ("openpi://h@libero,replan_steps", "replan_steps"),
        ("openpi://h@libero,replan_steps=x", "number"),
        ("openpi://h@libero,replan_steps=-1", "0 or more"),
        ("openpi://h@libero,deadline_s=nan", "0 or more"),
        ("openpi://h@libero,deadline_s=0", "an end"),
        ("openpi://h@libero,key_file=/no/such/file", "key file"),
    ],
)
def test_a_name_that_says_nothing_is_explained(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(name, "openpi")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a\nb"])
def test_a_key_file_holds_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="key file"):
        parse(f"openpi://h@libero,key_file={file}", "openpi")


def test_more_rows_than_there_are_cannot_be_used() -> None:
    with pytest.raises(ConfigError, match="12 rows of chunks that have 10"):
        parse("openpi://h@libero,replan_steps=12", "openpi").spec("")
    spec = parse("openpi://h@libero,replan_steps=12,horizon=50", "openpi").spec("")
    assert (spec.replan_steps, spec.horizon) == (12, 50)


@pytest.mark.parametrize("scheme", ["openpi", "gr00t"])
def test_both_schemes_are_known_without_connecting(scheme: str) -> None:
    registry.check_policy(f"{scheme}://127.0.0.1:1@libero")
