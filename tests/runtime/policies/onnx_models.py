"""Small graphs for tests, written as protobuf by hand: the package `onnx` is not needed to serve.

Only what the tests use of the format: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from zetta.runtime.policies.tiny.text import SIZE

TYPES: Final = {"float32": 1, "uint8": 2, "int32": 6, "int64": 7, "float64": 11}
IR_VERSION, OPSET = 8, 17
ATTRIBUTE_INT, ATTRIBUTE_INTS = 2, 7
H, A = 6, 7
"""Rows and numbers of the example's chunk."""
STATE: Final = 5
PICTURE: Final = (48, 64)
"""Size of the toy's front camera."""


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def block(tag: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(raw)) + raw


def value_info(name: str, dtype: str, shape: Sequence[int | str]) -> bytes:
    axes = b"".join(block(1, number(1, n) if isinstance(n, int) else block(2, n)) for n in shape)
    tensor = number(1, TYPES[dtype]) + block(2, axes)
    return block(1, name) + block(2, block(1, tensor))


def constant(name: str, array: np.ndarray) -> bytes:
    dims = b"".join(number(1, n) for n in array.shape)
    return dims + number(2, TYPES[str(array.dtype)]) + block(8, name) + block(9, array.tobytes())


def node(kind: str, inputs: Sequence[str], output: str, **attributes: int | list[int]) -> bytes:
    said = b"".join(block(1, each) for each in inputs) + block(2, output) + block(4, kind)
    for name, value in attributes.items():
        if isinstance(value, int):
            told = block(1, name) + number(3, value) + number(20, ATTRIBUTE_INT)
        else:
            told = block(1, name) + b"".join(number(8, v) for v in value)
            told += number(20, ATTRIBUTE_INTS)
        said += block(5, told)
    return said


def write_graph(
    path: Path,
    nodes: Sequence[bytes],
    constants: Mapping[str, np.ndarray],
    inputs: Mapping[str, tuple[str, Sequence[int | str]]],
    outputs: Mapping[str, tuple[str, Sequence[int | str]]],
) -> Path:
    graph = b"".join(block(1, each) for each in nodes) + block(2, "test")
    graph += b"".join(block(5, constant(name, array)) for name, array in constants.items())
    graph += b"".join(block(11, value_info(n, *told)) for n, told in inputs.items())
    graph += b"".join(block(12, value_info(n, *told)) for n, told in outputs.items())
    path.write_bytes(number(1, IR_VERSION) + block(8, number(2, OPSET)) + block(7, graph))
    return path


@dataclass(frozen=True, slots=True)
class Example:
    """A graph whose answer is `tanh` of a linear map of all its inputs."""

    pixels: tuple[str, Sequence[int | str]] = ("float32", (1, 3, *PICTURE))
    state: tuple[str, Sequence[int | str]] = ("float32", (1, STATE))
    words: tuple[str, Sequence[int | str]] = ("float32", (1, SIZE))
    noise: tuple[str, Sequence[int | str]] = ("float32", (1, H, A))
    output: Sequence[int | str] = (1, H, A)
    extra: Mapping[str, tuple[str, Sequence[int | str]]] = field(default_factory=dict)

    def write(self, path: Path) -> Path:
        rng = np.random.default_rng(0)
        constants = {
            "of_state": rng.normal(0, 0.3, (STATE, H * A)).astype(np.float32),
            "of_words": rng.normal(0, 0.03, (SIZE, H * A)).astype(np.float32),
            "chunk": np.array([1, H, A], dtype=np.int64),
        }
        nodes = [
            node("Cast", ["pixels"], "pixels_f", to=1),
            node("ReduceMean", ["pixels_f"], "grey", keepdims=0),
            node("MatMul", ["state", "of_state"], "felt"),
            node("MatMul", ["words", "of_words"], "told"),
            node("Add", ["felt", "told"], "both"),
            node("Add", ["both", "grey"], "all"),
            node("Reshape", ["all", "chunk"], "rows"),
            node("Add", ["rows", "noise"], "moved"),
            node("Tanh", ["moved"], "actions"),
        ]
        inputs = {"pixels": self.pixels, "state": self.state, "words": self.words,
                  "noise": self.noise, **self.extra}  # fmt: skip
        return write_graph(path, nodes, constants, inputs, {"actions": ("float32", self.output)})


DECLARATION: Final = """
[policy]
control_hz = 20
horizon = 6
replan_steps = 4

[policy.action]
kind = "delta_pose"
names = ["dx", "dy", "dz", "rx", "ry", "rz", "gripper"]
low = [-1, -1, -1, -1, -1, -1, -1]
high = [1, 1, 1, 1, 1, 1, 1]
scale = [0.05, 0.05, 0.05, 0.5, 0.5, 0.5, 1]
gripper_open = -1
gripper_close = 1

[[policy.cameras]]
name = "front"
height = 48
width = 64

[inputs.pixels]
source = "camera"
camera = "front"
layout = "CHW"
divide = 255
mean = [0.5, 0.5, 0.5]
std = [0.5, 0.5, 0.5]

[inputs.state]
source = "state"
parts = ["ee_pos", "gripper_fingers"]
mean = [0.1, 0, 0, 0, 0]
std = [0.2, 0.2, 0.2, 0.04, 0.04]

[inputs.words]
source = "instruction"
encoding = "sha256-pairs-256/1"

[inputs.noise]
source = "noise"

[output]
name = "actions"
"""


def write_example(folder: Path, example: Example | None = None, text: str = DECLARATION) -> str:
    """Write a graph and its declaration; return the policy's name."""
    path = (example or Example()).write(folder / "model.onnx")
    (folder / "model.toml").write_text(text)
    return f"onnx:{path}"
