"""What a model's file does not say about itself, declared beside it in TOML by whoever made it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from zetta.runtime.core import ActionSpec, CameraSpec, PolicySpec
from zetta.runtime.errors import ConfigError, SpecMismatch
from zetta.runtime.policies.spec_check import check_spec
from zetta.runtime.records import from_json

RecordT = TypeVar("RecordT")


@dataclass(frozen=True, slots=True)
class Declaration:
    """The table `[policy]`: the conventions of a `PolicySpec`."""

    control_hz: float
    horizon: int
    replan_steps: int
    action: ActionSpec
    cameras: tuple[CameraSpec, ...] = ()
    render_profile: str | None = None

    def spec(self, name: str, digest: str, source: Path) -> PolicySpec:
        """Return the spec of the policy called `name`.

        Raises:
            SpecMismatch: the declaration in `source` contradicts itself.
        """
        spec = PolicySpec(
            name=name,
            action=self.action,
            cameras=self.cameras,
            replan_steps=self.replan_steps,
            horizon=self.horizon,
            control_hz=self.control_hz,
            render_profile=self.render_profile,
            sensing="vision" if self.cameras else "proprio",
            digest=digest,
        )
        check_spec(spec, str(source))
        return spec


def read_declaration(kind: type[RecordT], path: Path) -> RecordT:
    """Read a TOML file as a record.

    Raises:
        ConfigError: it cannot be read, or is no TOML.
        SpecMismatch: something in it is missing, unknown or of another type.
    """
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error
    try:
        return from_json(kind, plain)
    except SpecMismatch as error:
        raise SpecMismatch(f"{path}: {error} (docs/policies.md shows a whole one)") from None
