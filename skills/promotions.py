"""What speaks for a skill that goes into a library: the record of the gate that judged it.

The record lies beside the package and never inside it: a package that held its own evidence would
have another hash than the one that was judged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from zetta.runtime.core import Sensing
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.records import from_json, to_json

GateDecision: TypeAlias = Literal["PROMOTE", "REJECT", "INCONCLUSIVE", "SIMPLIFY"]
EVIDENCE_SUFFIX: Final = ".evidence.json"
"""Of the file beside a package; the skill's name goes before."""
PROMOTION: Final = "promotion.json"
"""The record that a campaign leaves in the folder of a generation."""
OFFERED: Final = "package"
"""Folder of a generation that holds the package which was judged."""


@dataclass(frozen=True, slots=True)
class StageCounts:
    """One stage of the gate in numbers."""

    stage: str
    outcome: str
    pairs: int
    wins: int
    """Pairs in which only the candidate succeeded."""
    harms: int
    """Pairs in which only the parent did."""


@dataclass(frozen=True, slots=True)
class ReportEstimate:
    """The gain on the report block: fresh scenes, run after the verdict, that decide nothing."""

    pairs: int
    difference: float
    """Success rate of the candidate minus that of its parent."""
    low: float
    high: float
    """95 % interval of the difference."""


@dataclass(frozen=True, slots=True)
class PromotionEvidence:
    """What the gate found about one skill package."""

    campaign: str
    """Digest of the campaign's manifest."""
    candidate: str
    """SHA-256 of the package that was judged."""
    verdict: GateDecision
    stages: tuple[StageCounts, ...]
    report: ReportEstimate | None
    suites: tuple[str, ...]
    policy: str
    sensing: Sensing
    versions: Mapping[str, str]
    command: str
    parent: str = ""
    """Digest of the bundle that it was compared with; empty for the bare policy."""
    reason: str = ""
    """The verdict in words."""
    null: Mapping[str, float] = field(default_factory=dict)
    """The same figures of candidates that do nothing, by name."""

    @property
    def digest(self) -> str:
        """SHA-256 of the record as it is written."""
        return hashlib.sha256(evidence_text(self).encode()).hexdigest()


def evidence_text(evidence: PromotionEvidence) -> str:
    """Return the record as it is written: equal records give equal text."""
    plain = to_json(from_json(PromotionEvidence, to_json(evidence)))  # 1 and 1.0 are one number
    return json.dumps(plain, indent=1, sort_keys=True) + "\n"


def parse_evidence(text: str, where: str) -> PromotionEvidence:
    """Return the record in a text.

    Args:
        text: JSON.
        where: named in an error.

    Raises:
        ConfigError: it is no such record.
    """
    try:
        return from_json(PromotionEvidence, json.loads(text))
    except (ValueError, RecursionError, SpecMismatch) as error:
        raise ConfigError(
            f"{where} is no evidence of a promotion: {error}; expected the {PROMOTION} that a "
            "campaign writes"
        ) from None


def read_evidence(path: Path) -> PromotionEvidence:
    """Return the record in a file.

    Raises:
        ConfigError: it cannot be read, or is no such record.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the evidence {path} cannot be read: {error}") from None
    return parse_evidence(text, str(path))


def check_proof(evidence: PromotionEvidence, skill: str, package: str) -> None:
    """Refuse evidence that does not promote this very package.

    Args:
        evidence: of the gate.
        skill: name of the package.
        package: its hash.

    Raises:
        ConfigError: it is about other bytes, or the verdict is another.
    """
    if evidence.candidate != package:
        raise ConfigError(
            f"the evidence is about the package {evidence.candidate[:12]} and {skill} is "
            f"{package[:12]}; what was judged is what is promoted, so judge this one or give "
            "--unproven"
        )
    if evidence.verdict != "PROMOTE":
        raise ConfigError(
            f"the gate said {evidence.verdict} about {skill} and promotion needs PROMOTE; "
            "improve it and judge it again, or give --unproven"
        )


def offered_by(campaign: Path) -> tuple[Path, PromotionEvidence] | None:
    """Return the package and the evidence that a campaign offers last, or None.

    A generation offers something when its folder holds `promotion.json` and `package/<skill>/`.

    Raises:
        ConfigError: the record cannot be read, or the package is missing.
    """
    records = sorted(campaign.glob(f"*/{PROMOTION}"))
    if not records:
        return None
    evidence = read_evidence(records[-1])
    packages = [path for path in sorted((records[-1].parent / OFFERED).glob("*")) if path.is_dir()]
    if len(packages) != 1:
        raise ConfigError(
            f"{records[-1].parent / OFFERED} holds {len(packages)} packages; expected the one that "
            "was judged"
        )
    return packages[0], evidence
