"""An episode factory for tests of the pool: toy episodes that fail in asked-for ways.

The bundle names the arm: `weak` is the toy's expert with much noise, `moved` starts elsewhere.
The option `fault` holds `KIND SUITE/TASK/K [FILE]`, several separated by `;`: that episode meets
the fault, once only when a file is given (the file remembers across processes).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from zetta.runtime.cli.episodes import AssembledEpisodes
from zetta.runtime.core import RunSpec
from zetta.runtime.errors import ConfigError, InfraError
from zetta.runtime.rollouts.factory import EpisodeRecord, Identity, Watch

FAULT_TICK = 5


def make() -> FaultyEpisodes:
    return FaultyEpisodes()


class FaultyEpisodes:
    def __init__(self) -> None:
        self._inner = AssembledEpisodes()

    def identify(self, specs: Sequence[RunSpec]) -> Identity:
        identity = self._inner.identify([_plain(spec) for spec in specs])
        return replace(identity, bundles={spec.bundle: spec.bundle for spec in specs})

    def run(self, spec: RunSpec, watch: Watch) -> EpisodeRecord:
        print("a simulator that prints on stdout", flush=True)
        watched = _Sabotage(watch, _fault(spec))
        record = self._inner.run(_plain(spec), watched)
        if spec.bundle == "moved":
            return replace(record, scene_digest="0" * 64)
        return record

    def close(self) -> None:
        self._inner.close()


def _plain(spec: RunSpec) -> RunSpec:
    noise = {"weak": "0.32"}.get(spec.bundle, "0")
    options = {k: v for k, v in spec.options.items() if k != "fault"}
    return replace(spec, bundle="none", options={"noise": noise, **options})


def _fault(spec: RunSpec) -> str:
    here = (f"{spec.suite}/{spec.task}/{spec.layout}", f"{spec.suite}/{spec.task}", "all")
    for fault in filter(None, spec.options.get("fault", "").split(";")):
        kind, where, *marker = fault.split()
        if where in here and (not marker or _is_first(Path(marker[0]))):
            return kind
    return ""


def _is_first(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class _Sabotage:
    """Passes on what is reported, and commits the fault at a tick."""

    def __init__(self, watch: Watch, fault: str) -> None:
        self._watch, self._fault = watch, fault

    def phase(self, text: str) -> None:
        self._watch.phase(text)
        if self._fault == "unbuildable":
            raise InfraError("the renderer is not usable here")
        if self._fault == "stuck":
            time.sleep(3600)

    def tick(self, index: int) -> None:
        self._watch.tick(index)
        if self._fault == "slow":
            time.sleep(0.01)
        if index != FAULT_TICK:
            return
        match self._fault:
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                time.sleep(3600)
            case "infra":
                raise InfraError("the camera went away")
            case "bug":
                raise KeyError("no such body")
            case "config":
                raise ConfigError("there is no such thing; known: others")
