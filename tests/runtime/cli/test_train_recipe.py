"""The stages of a training: what each leaves is what the next ones take."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zetta.runtime.cli.train_recipe import Job, recipe, run_stage, stages
from zetta.runtime.errors import ConfigError, WorkerDied

RECORDINGS, OUT = Path("recordings"), Path("out")


@pytest.mark.parametrize("variant", ["tiny", "tiny-shuffled"])
def test_every_shard_is_drawn_before_it_is_trained_on(variant: str) -> None:
    drawn: set[str] = set()
    trainings = 0
    for _, jobs in stages(recipe(variant), RECORDINGS, OUT):
        for job in jobs:
            if job.module.endswith("shards"):
                drawn.add(job.arguments[1])
            if job.module.endswith("train"):
                shards = job.arguments[job.arguments.index("--shards") + 1 :]
                asked = [s for s in shards if s.startswith(str(OUT / "shards"))]
                assert asked
                assert set(asked) <= drawn
                trainings += 1
    assert trainings == 1 + recipe(variant).rounds


def test_only_the_shuffled_variant_sees_shuffled_layouts() -> None:
    def words(variant: str) -> str:
        planned = stages(recipe(variant), RECORDINGS, OUT)
        return " ".join(" ".join(job.arguments) for _, jobs in planned for job in jobs)

    assert "shuffled" not in words("tiny")
    assert "shuffled-demo" not in words("tiny-shuffled")
    for kind in ("shuffled-libero_object-3", "scan-libero_object-3", "shuffled-correction1-"):
        assert kind in words("tiny-shuffled")


def test_an_unknown_variant_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="tiny-shuffled"):
        recipe("tiny-shufled")


def test_a_job_whose_product_is_there_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "done").touch()
    told: list[int] = []
    failing = Job("fail", "zetta.no_such_module", (), tmp_path / "done")
    run_stage([failing], tmp_path, 1, lambda finished, what: told.append(finished))
    assert told == [1]


def test_a_job_that_fails_names_its_log(tmp_path: Path) -> None:
    with pytest.raises(WorkerDied, match=r"missing\.log; run the same command again"):
        run_stage([Job("missing", "zetta.no_such_module", ())], tmp_path, 1)
    assert "no_such_module" in (tmp_path / "missing.log").read_text()


def test_a_killed_training_takes_its_jobs_along(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text("import time\nprint('up', flush=True)\ntime.sleep(300)\n")
    script = (
        "from pathlib import Path\n"
        "from zetta.runtime.cli.train_recipe import Job, run_stage\n"
        f"run_stage([Job('sleep', 'sleeper', ())], Path({str(tmp_path)!r}), 1)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    training = subprocess.Popen([sys.executable, "-c", script], env=environment)
    log = tmp_path / "sleep.log"
    try:
        _wait(lambda: log.exists() and "up" in log.read_text())
        assert _sleepers(tmp_path)
    finally:
        training.kill()
        training.wait()
    _wait(lambda: not _sleepers(tmp_path))


def _sleepers(folder: Path) -> list[int]:
    """Return the processes that write the log of `folder`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "fd" / "1").readlink() == folder / "sleep.log":
                found.append(int(process.name))
    return found


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
