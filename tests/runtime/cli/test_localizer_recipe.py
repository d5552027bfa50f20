"""The recipe of the tiny localiser: pictures before training before export, nothing twice."""

from __future__ import annotations

from pathlib import Path

from zetta.runtime.cli.localizer_recipe import PICTURES, stages


def test_pictures_come_before_training_and_training_before_export() -> None:
    names = [name for name, _ in stages(Path("out"), None)]
    assert names == ["draw pictures", "train", "export"]


def test_every_picture_is_of_a_base_suite_scattered_anew() -> None:
    (_, jobs), *_ = stages(Path("out"), None)
    assert len(jobs) == len(PICTURES)
    base = {"libero_object", "libero_spatial", "libero_goal", "libero_10"}
    for job in jobs:
        kind, _, count, task = job.arguments
        assert kind == "scattered"
        assert task.partition(":")[0] in base
        assert PICTURES[task] == int(count)


def test_what_is_finished_is_not_made_again(tmp_path: Path) -> None:
    _, (_, (train,)), (_, (export,)) = stages(tmp_path, 5.0)
    assert train.product == tmp_path / "training" / "weights.safetensors"
    assert str(train.product) in export.arguments
    assert train.arguments[-2:] == ("--minutes", "5")
