"""Sessions of ONNX Runtime with one thread."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from zetta.runtime.errors import ConfigError

UNUSABLE = (
    ort_errors.Fail,
    ort_errors.InvalidArgument,
    ort_errors.InvalidGraph,
    ort_errors.InvalidProtobuf,
    ort_errors.NoSuchFile,
    ort_errors.NotImplemented,
    ort_errors.RuntimeException,
)
"""What ONNX Runtime raises about a graph; they share no base but Exception."""


def open_graph(path: Path, advice: str) -> onnxruntime.InferenceSession:
    """Load a graph.

    Args:
        path: the file.
        advice: ends the sentence when it is not usable.

    Raises:
        ConfigError: it is no graph, or one that this version cannot run.
    """
    options = onnxruntime.SessionOptions()
    # One thread: with the simulator beside it, a second one only waits at barriers.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except UNUSABLE as error:
        raise ConfigError(f"{path} is no usable graph: {first_line(error)}; {advice}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return next(iter(str(error).splitlines()), type(error).__name__)
