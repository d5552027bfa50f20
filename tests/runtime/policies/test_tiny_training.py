"""Training, export and serving of one small network, from synthetic shards."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import tiny_blobs

from zetta.runtime.errors import ConfigError

torch = pytest.importorskip("torch", reason="needs torch: pip install 'zetta[train]'")

from zetta.runtime.policies.tiny import serve  # noqa: E402
from zetta.runtime.policies.tiny.batches import Pool, Sampling, plain_batch  # noqa: E402
from zetta.runtime.policies.tiny.checkpoint import load_weights  # noqa: E402
from zetta.runtime.policies.tiny.data import read_shard  # noqa: E402
from zetta.runtime.policies.tiny.export import export  # noqa: E402
from zetta.runtime.policies.tiny.losses import run  # noqa: E402
from zetta.runtime.policies.tiny.manifest import ACT, LOOK, MANIFEST, Execution, digest  # noqa: E402
from zetta.runtime.policies.tiny.model import LENGTH_UNIT  # noqa: E402
from zetta.runtime.policies.tiny.scores import Scores, evaluate  # noqa: E402
from zetta.runtime.policies.tiny.train import CONFIG, LOG, Report, TrainConfig, train  # noqa: E402

# The wall time of the shared fixture says nothing on a busy machine.
pytestmark = [pytest.mark.train, pytest.mark.timeout(900)]

SMALL = TrainConfig(
    steps=6,
    width=0.25,
    holdout=0.0,
    report_every=2,
    warm_up=2,
    sampling=Sampling(frames=4),
)
LEARNING = replace(
    SMALL,
    steps=90,
    width=0.5,
    holdout=0.1,
    report_every=45,
    evaluate_every=1000,
    warm_up=10,
    learning_rate=3e-3,
    averaging=0.9,
    sampling=Sampling(frames=12),
)


@dataclass(frozen=True)
class Trained:
    shard: Path
    weights: Path
    served: Path
    reports: list[Report]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root = tmp_path_factory.mktemp("tiny")
    shard = tiny_blobs.write(root / "blobs", frames=240)
    reports: list[Report] = []
    weights = train(LEARNING, [shard], root / "run", on_report=reports.append)
    export(weights, root / "served", source="blobs")
    return Trained(shard, weights, root / "served", reports)


def scores_of(trained: Trained) -> Scores:
    scores = trained.reports[-1].scores
    assert scores is not None
    return scores


def test_it_learns_to_look_at_what_the_instruction_names(trained: Trained) -> None:
    scores = scores_of(trained)
    assert scores.agent_px < 3
    assert scores.wrist_px < 3
    losses = [report.losses["points"] for report in trained.reports]
    assert losses[-1] < 0.8 * losses[0]


def test_it_does_not_look_there_before_training(trained: Trained) -> None:
    net, _ = load_weights(trained.weights)
    torch.manual_seed(0)
    fresh = type(net)(net.config)
    pool = Pool([read_shard(trained.shard)])
    assert evaluate(fresh, pool, np.arange(90)).agent_px > 10


def test_a_run_says_what_was_asked_for_and_how_it_went(trained: Trained) -> None:
    asked = json.loads((trained.weights.parent / CONFIG).read_text())
    assert asked["config"]["steps"] == LEARNING.steps
    assert asked["shards"] == [str(trained.shard)]
    lines = (trained.weights.parent / LOG).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [45, 90]


def test_a_killed_training_ends_as_an_uninterrupted_one(trained: Trained, tmp_path: Path) -> None:
    whole = train(SMALL, [trained.shard], tmp_path / "whole")

    def kill(report: Report) -> None:
        if report.step == 4:
            raise KeyboardInterrupt

    often = replace(SMALL, checkpoint_minutes=0.0)
    reference = train(often, [trained.shard], tmp_path / "often")
    with pytest.raises(KeyboardInterrupt):
        train(often, [trained.shard], tmp_path / "killed", on_report=kill)
    resumed: list[Report] = []
    again = train(often, [trained.shard], tmp_path / "killed", on_report=resumed.append)
    assert resumed[0].step == 4  # the third step was the last that had been saved
    for other in (reference, again):
        for name, value in load_weights(whole)[0].state_dict().items():
            assert torch.equal(value, load_weights(other)[0].state_dict()[name]), name


def test_a_folder_of_another_training_is_not_continued(trained: Trained, tmp_path: Path) -> None:
    train(SMALL, [trained.shard], tmp_path / "run")
    other = replace(SMALL, seed=1)
    with pytest.raises(ConfigError, match="another configuration"):
        train(other, [trained.shard], tmp_path / "run")
    train(other, [trained.shard], tmp_path / "run", resume=False)


def test_a_training_can_start_from_earlier_weights(trained: Trained, tmp_path: Path) -> None:
    config = replace(LEARNING, steps=1, learning_rate=1e-6, init=str(trained.weights))
    reports: list[Report] = []
    train(config, [trained.shard], tmp_path / "run", on_report=reports.append)
    scores = reports[-1].scores
    assert scores is not None
    assert scores.agent_px == pytest.approx(scores_of(trained).agent_px, abs=0.5)
    with pytest.raises(ConfigError, match=r"width=0\.25"):
        train(replace(SMALL, init=str(trained.weights)), [trained.shard], tmp_path / "other")


# --------------------------------------------------------------------------------- serving


@pytest.fixture(scope="module")
def policy(trained: Trained) -> serve.TinyPolicy:
    return serve.load_from(trained.served)


def looks(count: int = 4) -> list[serve.Observation]:
    rng = np.random.default_rng(5)
    return [tiny_blobs.observation(*tiny_blobs.scene(rng)) for _ in range(count)]


def actions(policy: serve.TinyPolicy, seed: int, temperature: float = 0.0) -> np.ndarray:
    policy.set_temperature(temperature)
    policy.reset(tiny_blobs.instruction("red"), seed)
    return np.stack([policy.infer(look).actions for look in looks()])


def test_the_graphs_say_what_the_network_says(trained: Trained, policy: serve.TinyPolicy) -> None:
    pool = Pool([read_shard(trained.shard)])
    rows = np.arange(0, 30, 5)
    batch = plain_batch(pool, rows)
    net, _ = load_weights(trained.weights)
    with torch.inference_mode():
        heard = run(net, batch)
    lead = Execution().lead
    for row in range(len(rows)):
        frame = int(batch.labels.frame[row])
        agent, wrist = (picture[0] for picture in pool.frames(np.array([frame])))
        seen = serve.run(
            policy._look,
            {
                "agent": agent,
                "wrist": wrist,
                "proprio": batch.labels.proprio[row],
                "lang": batch.lang[row],
            },
        )
        heats = [heat[row].numpy() for heat in heard.heats]
        assert seen["heat_a"] == pytest.approx(heats[0], abs=1e-4)
        assert seen["heat_w"] == pytest.approx(heats[1], abs=1e-4)
        seen["attention_a"], seen["attention_w"] = (serve.softmax(h)[None] for h in heats)
        said = serve.run(policy._act, seen)
        expected = heard.answer.path[row].numpy() * LENGTH_UNIT
        assert said["path"][0] == pytest.approx(expected, abs=1e-4)
        assert said["close"][0] == pytest.approx(
            heard.answer.close[row].sigmoid().numpy(), abs=1e-4
        )
    assert policy.spec.horizon == len(expected) - lead


def test_at_temperature_zero_the_seed_changes_nothing(policy: serve.TinyPolicy) -> None:
    assert np.array_equal(actions(policy, seed=0), actions(policy, seed=1))


def test_draws_come_from_the_seed_alone(policy: serve.TinyPolicy) -> None:
    one, again = actions(policy, 3, 4.0), actions(policy, 3, 4.0)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, actions(policy, 4, 4.0))
    assert not np.array_equal(one, actions(policy, 3))


def test_a_scene_without_the_named_thing_spreads_the_draws(policy: serve.TinyPolicy) -> None:
    rng = np.random.default_rng(8)
    clear, unclear = [], []
    policy.set_temperature(0.0)
    policy.reset(tiny_blobs.instruction("red"), 0)
    for _ in range(6):
        blobs, hand = tiny_blobs.scene(rng)
        clear.append(policy.infer(tiny_blobs.observation(blobs, hand)).dispersion)
        del blobs["red"]
        unclear.append(policy.infer(tiny_blobs.observation(blobs, hand)).dispersion)
    assert np.mean(unclear) > 1.5 * np.mean(clear)


def test_a_policy_is_bound_to_what_it_was_trained_on(policy: serve.TinyPolicy) -> None:
    spec = policy.spec
    assert (spec.render_profile, spec.control_hz, spec.sensing) == ("blobs", 20.0, "vision")
    assert [(c.name, c.height) for c in spec.cameras] == [("agentview", 256), ("wrist", 256)]
    assert len(spec.digest) == 64


@pytest.mark.parametrize("name", [LOOK, ACT])
def test_a_damaged_or_missing_graph_is_refused(trained: Trained, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(trained.served, tmp_path / "served")
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ConfigError, match=f"{name} is damaged"):
        serve.load_from(folder)
    (folder / name).unlink()
    with pytest.raises(ConfigError, match=f"{name} is missing"):
        serve.load_from(folder)


def test_a_graph_that_is_none_is_refused_though_its_hash_fits(
    trained: Trained, tmp_path: Path
) -> None:
    folder = shutil.copytree(trained.served, tmp_path / "served")
    (folder / LOOK).write_bytes(b"no graph")
    raw = json.loads((folder / MANIFEST).read_text())
    raw["files"][LOOK] = "a3"
    (folder / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(ConfigError, match="damaged"):
        serve.load_from(folder)
    raw["files"][LOOK] = digest(folder / LOOK)
    (folder / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(ConfigError, match="no usable graph"):
        serve.load_from(folder)


def test_a_manifest_of_another_encoder_is_refused(trained: Trained, tmp_path: Path) -> None:
    folder = shutil.copytree(trained.served, tmp_path / "served")
    raw = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**raw, "encoder": "other/9"}))
    with pytest.raises(ConfigError, match="encoder 'other/9'"):
        serve.load_from(folder)
    (folder / MANIFEST).write_text(json.dumps({**raw, "files": 3}))
    with pytest.raises(ConfigError, match="does not fit"):
        serve.load_from(folder)
