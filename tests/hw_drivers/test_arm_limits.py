from __future__ import annotations

import re
from pathlib import Path

import pytest

from zetta.hw_drivers.arm_limits import (
    MAX_STALE_S,
    SHIPPED,
    load_limits,
    parse_limits,
    shipped_limits,
)
from zetta.hw_drivers.arm_messages import Endpoints
from zetta.hw_drivers.arm_server import ServerSettings
from zetta.runtime.errors import ConfigError

PANDA = (SHIPPED / "panda.toml").read_text(encoding="utf-8")


def changed(old: str, new: str, count: int = 1) -> str:
    assert old in PANDA
    return PANDA.replace(old, new, count)


def test_shipped_limits_load_and_shares_are_taken() -> None:
    assert "panda" in shipped_limits()
    limits = load_limits("panda")
    assert limits.translation.velocity.tolist() == [1.7]
    assert limits.translation.acceleration[0] == pytest.approx(13.0 * 0.15)
    assert limits.joint.jerk[1] == pytest.approx(3750.0 * 0.005)
    assert len(limits.joints) == limits.joint_low.size == 7
    assert limits.keep_out[0].box.low[0] == pytest.approx(-0.35)  # with its clearance


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(changed('arm = "Franka Emika Panda"', 'arm = "mine"'), encoding="utf-8")
    assert load_limits(path).arm == load_limits(str(path)).arm == "mine"


def test_keep_out_boxes_may_be_declared_absent_but_not_forgotten() -> None:
    head, _, _ = PANDA.partition("[[keep_out]]")
    head = head.replace("# keep_out = []", "")
    with pytest.raises(ConfigError, match="lacks 'keep_out'"):
        parse_limits(head)
    assert parse_limits("keep_out = []\n" + head).keep_out == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('unit = "m/s", source = "libfranka', 'unit = "mm/s", source = "libfranka', "is in 'm/s'"),
        ('value = 1.7, unit = "m/s",', "value = 1.7,", "lacks 'unit'"),
        ('source = "libfranka kMaxTranslationalJerk; FCI"', 'source = " "', "not empty"),
        (', source = "libfranka kMaxTranslationalJerk; FCI"', "", "lacks 'source'"),
        ("value = 1.7,", "value = nan,", "finite"),
        ("value = 1.7,", "value = inf,", "finite"),
        ("value = 1.7,", "value = 0.0,", "above 0"),
        ("value = 1.7,", "value = -1.7,", "above 0"),
        ("value = 1.7,", "value = true,", "is a number"),
        ("value = 1.7,", 'value = "1.7",', "is a number"),
        ("value = 1.7,", f"value = 1{'0' * 400},", "finite"),
        ("[translation]\nvelocity", "[translation]\nspeed", "'speed'; did you mean|'speed'; known"),
        ("[jump]", "[jumps]", "unknown key 'jumps'"),
        ('arm = "Franka Emika Panda"', "", "lacks 'arm'"),
        ("value = [0.28, -0.4, 0.02]", "value = [0.8, -0.4, 0.02]", "low 0.8, which is not below"),
        ("value = [0.28, -0.4, 0.02]", "value = [-0.4, 0.02]", "list of 3 numbers"),
        ("[2.175, 2.175, 2.175, 2.175, 2.61", "[2.175, 2.175, 2.175, 2.61", "list of 7 numbers"),
        ("[2.8973, 1.7628,", "[-2.9, 1.7628,", "not below high"),
        ('value = 0.15, unit = "1"', 'value = 1.5, unit = "1"', "at most 1"),
        ("jitter = { value = 0.2", "jitter = { value = 0.6", "below 0.5"),
        ("stale = { value = 0.15", "stale = { value = 30.0", "at most 1 s, the longest watchdog"),
        ('"panda_joint7"]', '"panda_joint6"]', "each once"),
        ("\n[share]", "\n[share", "is no TOML"),
    ],
)
def test_a_limit_that_is_not_one_is_refused_in_one_sentence(old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refusal:
        parse_limits(changed(old, new))
    assert "\n" not in str(refusal.value).rstrip() or "no TOML" in str(refusal.value)


def test_every_single_entry_is_needed() -> None:
    lines = PANDA.splitlines()
    entries = [i for i, line in enumerate(lines) if re.match(r"\w+ = ", line)]
    assert len(entries) > 30
    for i in entries:
        with pytest.raises(ConfigError):
            parse_limits("\n".join(lines[:i] + lines[i + 1 :]))


def test_an_unknown_arm_or_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'pandaa'.*panda"):
        load_limits("pandaa")
    with pytest.raises(ConfigError, match="cannot read"):
        load_limits(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="no limits"):
        load_limits("../limits/panda")


def test_no_reading_may_be_older_than_the_longest_watchdog() -> None:
    ServerSettings(Endpoints.on(), watchdog_s=MAX_STALE_S)
    with pytest.raises(ConfigError, match="watchdog"):
        ServerSettings(Endpoints.on(), watchdog_s=MAX_STALE_S + 0.01)
