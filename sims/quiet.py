"""Keeping packages that were written for one program from disturbing another."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def global_numpy_seed(seed: int) -> Iterator[None]:
    """Let what draws from NumPy's global generator draw from `seed`; restore it afterwards."""
    saved = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        np.random.set_state(saved)


@contextlib.contextmanager
def quiet(errors: bool = False) -> Iterator[None]:
    """Keep notes off stdout and warnings out of the log; with `errors`, stderr too."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        with contextlib.redirect_stderr(io.StringIO()) if errors else contextlib.nullcontext():
            yield


@contextlib.contextmanager
def robosuite_quiet() -> Iterator[None]:
    """Keep robosuite's notes off stdout and its advice out of the log."""
    log = logging.getLogger("robosuite_logs")
    log.disabled = True
    with quiet():
        yield
