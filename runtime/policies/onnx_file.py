"""A user's own graph: `onnx:FILE`, with its conventions declared in a TOML file beside it.

The graph answers one observation with one chunk and remembers nothing. What is declared is
compared with the graph's own inputs and outputs before anything is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime

from zetta.runtime.core import ActionChunk, Array, Observation, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.declaration import Declaration, read_declaration
from zetta.runtime.policies.graphs import UNUSABLE, first_line, open_graph
from zetta.runtime.policies.onnx_inputs import Dimensions, Input, Source, Tensor, make_source
from zetta.runtime.policies.options import split_options
from zetta.runtime.snapshots import generator_from, generator_text

SCHEME: Final = "onnx:"
TYPES: Final[Mapping[str, str]] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(uint8)": "uint8",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
}


@dataclass(frozen=True, slots=True)
class Output:
    """The table `[output]`: how the graph's answer becomes actions."""

    name: str
    mean: tuple[float, ...] = ()
    """Added to each number of a row after it was multiplied by `std`."""
    std: tuple[float, ...] = ()
    clip: bool = False
    """Whether rows are cut to the range of the action; without it one outside is an error."""


@dataclass(frozen=True, slots=True)
class SpecFile:
    """All of the TOML file."""

    policy: Declaration
    inputs: Mapping[str, Input]
    output: Output
    batch: bool = True
    """Whether every input and the output begin with an axis of length 1."""


@dataclass(frozen=True, slots=True)
class OnnxState:
    """What the policy remembers."""

    instruction: str
    """Empty before the first reset."""
    generator: str


def load(name: str) -> OnnxPolicy:
    """Load `onnx:FILE`.

    Raises:
        ConfigError: a file is missing or unusable, or an option was given.
        SpecMismatch: what is declared is not what the graph takes and gives.
    """
    base, _ = split_options(name, {})
    path = Path(base.removeprefix(SCHEME))
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}; expected onnx:FILE, a model to run")
    places = (Path(f"{path}.toml"), path.with_suffix(".toml"), path.with_name("spec.toml"))
    beside = next((place for place in places if place.is_file()), None)
    if beside is None:
        raise ConfigError(
            f"nothing declares what {path} takes and gives; write {places[1].name} or "
            f"{places[2].name} beside it (docs/policies.md shows one)"
        )
    spec_file = read_declaration(SpecFile, beside)
    session = open_graph(path, "export it again, or upgrade onnxruntime")
    sources = matched(spec_file, session, f"{beside} does not fit {path.name}")
    digest = _digest([path, path.with_name(f"{path.name}.data"), beside])
    policy = OnnxPolicy(spec_file.policy.spec(name, digest, beside), spec_file, session, sources)
    policy.try_out()
    return policy


class OnnxPolicy:
    """A graph behind the policy protocol."""

    def __init__(
        self,
        spec: PolicySpec,
        spec_file: SpecFile,
        session: onnxruntime.InferenceSession,
        sources: Mapping[str, Source],
    ) -> None:
        self._spec, self._file, self._session, self._sources = spec, spec_file, session, sources
        self._low, self._high = np.array(spec.action.low), np.array(spec.action.high)
        output = spec_file.output
        self._mean = np.array(output.mean or (0.0,))
        self._std = np.array(output.std or (1.0,))
        self._instruction = ""
        self._generator = np.random.default_rng(0)

    @property
    def spec(self) -> PolicySpec:
        """What the policy needs and emits, as declared."""
        return self._spec

    def reset(self, instruction: str, seed: int) -> None:
        """Begin an episode; noise comes from `seed`.

        Raises:
            ConfigError: the instruction is empty, or the model cannot be given it.
        """
        self._begin(instruction, np.random.default_rng(seed))

    def infer(self, observation: Observation) -> ActionChunk:
        """Return the next rows.

        Raises:
            SpecMismatch: there was no reset, or the graph refuses or answers in another shape.
        """
        if not self._instruction:
            raise SpecMismatch("reset(instruction, seed) comes before the first infer")
        feeds = {
            name: self._tensor(name, source(observation)) for name, source in self._sources.items()
        }
        return ActionChunk(self._rows(self._run(feeds)), observation.proprio.t)

    def try_out(self) -> None:
        """Run once on zeros: what a graph says of itself only when it runs is heard now.

        Raises:
            SpecMismatch: it does not run, or answers in another shape.
        """
        zeros = {
            name: self._tensor(name, np.zeros([n or 1 for n in source.shape]))
            for name, source in self._sources.items()
        }
        self._rows(self._run(zeros))

    def state(self) -> OnnxState:
        """Return all that is remembered."""
        return OnnxState(self._instruction, generator_text(self._generator))

    def restore(self, state: OnnxState) -> None:
        """Continue from `state`.

        Raises:
            SpecMismatch: it holds no generator.
        """
        generator = generator_from(state.generator)
        if state.instruction:
            self._begin(state.instruction, generator)
        else:
            self._instruction, self._generator = "", generator

    def reseed(self, seed: int) -> None:
        """Take every later draw from `seed`; all else stays."""
        self._generator = np.random.default_rng(seed)
        if self._instruction:
            self._begin(self._instruction, self._generator)

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, instruction: str, generator: np.random.Generator) -> None:
        if not instruction.strip():
            raise ConfigError("the instruction is empty; say what the robot should do")
        for source in self._sources.values():
            source.reset(instruction, generator)
        self._instruction, self._generator = instruction, generator

    def _tensor(self, name: str, plain: Array) -> Tensor:
        tensor = np.ascontiguousarray(plain, dtype=np.dtype(self._file.inputs[name].dtype))
        return tensor[None] if self._file.batch else tensor

    def _run(self, feeds: Mapping[str, Tensor]) -> Tensor:
        try:
            (said,) = self._session.run([self._file.output.name], dict(feeds))
        except UNUSABLE as error:
            raise SpecMismatch(f"{self._spec.name} cannot be run: {first_line(error)}") from error
        return np.asarray(said)

    def _rows(self, said: Tensor) -> Array:
        expected = (self._spec.horizon, self._spec.action.size)
        if said.shape != ((1, *expected) if self._file.batch else expected):
            raise SpecMismatch(
                f"{self._spec.name} answered in the shape {said.shape}; its declaration says "
                f"{self._spec.horizon} rows of {self._spec.action.size} numbers"
            )
        plain = np.asarray(said, dtype=np.float64).reshape(expected)  # (H, A)
        rows: Array = plain * self._std + self._mean
        if self._file.output.clip:
            rows = np.clip(rows, self._low, self._high)
        rows.flags.writeable = False
        return rows


def matched(
    spec_file: SpecFile, session: onnxruntime.InferenceSession, who: str
) -> dict[str, Source]:
    """Return what makes each input, when the declaration fits the graph.

    Raises:
        SpecMismatch: it does not; one sentence for each thing.
    """
    takes = {each.name: each for each in session.get_inputs()}
    wrong = [
        f"the graph takes {name!r} {tuple(each.shape)}, which is not declared"
        for name, each in takes.items()
        if name not in spec_file.inputs
    ]
    cameras = {c.name: (c.height, c.width) for c in spec_file.policy.cameras}
    seen = {told.camera for told in spec_file.inputs.values() if told.source == "camera"}
    wrong += [f"the camera {name!r} feeds no input" for name in cameras if name not in seen]
    wrong += [f"the camera {name!r} is not declared; {suggest(name, cameras)}"
              for name in sorted(seen - set(cameras))]  # fmt: skip
    sources: dict[str, Source] = {}
    for name, told in spec_file.inputs.items():
        if name not in takes:
            wrong.append(f"the graph has no input {name!r}; {suggest(name, takes)}")
            continue
        shape = _lengths(takes[name].shape, spec_file.batch)
        try:
            sources[name] = make_source(name, told, cameras.get(told.camera), shape)
        except SpecMismatch as error:
            wrong.append(str(error))
            continue
        wrong += _differences(f"input {name!r}", takes[name], told.dtype, sources[name].shape,
                              spec_file.batch)  # fmt: skip
    wrong += _output_problems(spec_file, session)
    if wrong:
        raise SpecMismatch(f"{who}: " + "; ".join(wrong))
    return sources


def _output_problems(spec_file: SpecFile, session: onnxruntime.InferenceSession) -> list[str]:
    gives = {each.name: each for each in session.get_outputs()}
    output, size = spec_file.output, spec_file.policy.action.size
    if output.name not in gives:
        return [f"the graph has no output {output.name!r}; {suggest(output.name, gives)}"]
    wrong = [
        f"output.{what} has {len(values)} numbers, not {size}"
        for what, values in (("mean", output.mean), ("std", output.std))
        if len(values) not in (0, size)
    ]
    shape = (spec_file.policy.horizon, size)
    each = gives[output.name]
    named = f"output {output.name!r}"
    return wrong + _differences(named, each, TYPES.get(each.type, ""), shape, spec_file.batch)


def _differences(what: str, node: Any, dtype: str, declared: Dimensions, batch: bool) -> list[str]:
    wrong = []
    if TYPES.get(node.type) != dtype:
        wrong.append(f"the graph's {what} is a {node.type}, declared is {dtype or 'a number'}")
    full = (1, *declared) if batch else declared
    lengths = [n if isinstance(n, int) else None for n in node.shape]
    same = len(full) == len(lengths) and all(
        a is None or b is None or a == b for a, b in zip(full, lengths, strict=True)
    )
    if not same:
        wrong.append(f"the graph's {what} has the shape {tuple(node.shape)}, declared is {full}")
    return wrong


def _lengths(shape: Sequence[object], batch: bool) -> Dimensions:
    lengths = tuple(n if isinstance(n, int) else None for n in shape)
    return lengths[1:] if batch else lengths


def _digest(files: Sequence[Path]) -> str:
    """Return the SHA-256 of all files that are there: the graph, its weights, the declaration."""
    total = hashlib.sha256()
    for path in files:
        if path.is_file():
            with path.open("rb") as content:
                total.update(hashlib.file_digest(content, "sha256").digest())
    return total.hexdigest()
