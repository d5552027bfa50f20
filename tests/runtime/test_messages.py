"""What crosses the pipe comes back equal."""

from __future__ import annotations

from zetta.runtime.core import Recovery
from zetta.runtime.rollouts.factory import EpisodeRecord
from zetta.runtime.rollouts.messages import decode, encode, record_from_json, record_to_json


def test_a_record_with_recoveries_comes_back_equal() -> None:
    record = EpisodeRecord(
        success=True,
        success_at_reset=False,
        reason="success",
        ticks=120,
        inferences=30,
        interventions=1,
        sources={"policy": 100, "skill:regrasp": 20},
        scene_digest="abc",
        wall_s=1.5,
        recoveries=(Recovery("regrasp", "regrasp", "the hand is empty", 40, 20, True, "holding"),),
    )
    assert record_from_json(decode(encode(record_to_json(record)))) == record


def test_a_record_written_before_there_were_recoveries_has_none() -> None:
    plain = {
        "success": False, "success_at_reset": False, "reason": "truncated", "ticks": 5,
        "inferences": 1, "interventions": 0, "sources": {}, "scene_digest": "", "wall_s": 0.1,
    }  # fmt: skip
    assert record_from_json(plain).recoveries == ()
