"""The folder of a LeRobot policy: what it says of itself, read and checked without lerobot.

`config.json`, weights and the two processor pipelines are what LeRobot writes; `zetta.toml`
declares what none of them says: the robot's conventions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import safe_open

from zetta.runtime.errors import ConfigError, SpecMismatch, suggest
from zetta.runtime.policies.checkpoint_files import digest_of_files
from zetta.runtime.policies.declaration import Declaration, read_declaration
from zetta.runtime.policies.proprio_parts import ProprioParts
from zetta.runtime.records import read_object

CONFIG: Final = "config.json"
PIPELINES: Final = ("policy_preprocessor.json", "policy_postprocessor.json")
"""Where normalisation lives: LeRobot keeps it apart from the policy."""
DECLARED: Final = "zetta.toml"
VIEW: Final = "observation.images."
STATE: Final = "observation.state"
ACTION: Final = "action"


NORMALIZERS: Final = ("normalizer_processor", "unnormalizer_processor")
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "MEAN_STD": ("mean", "std"),
    "MIN_MAX": ("min", "max"),
    "QUANTILES": ("q01", "q99"),
    "QUANTILE10": ("q10", "q90"),
}
"""Statistics that each mode of normalisation needs."""


@dataclass(frozen=True, slots=True)
class Told:
    """All of `zetta.toml`."""

    policy: Declaration
    state: tuple[str, ...]
    """Parts of the state; see `ProprioParts`."""
    views: tuple[str, ...]
    """For each camera, the picture of `input_features` that it is, without `observation.images.`"""
    resize: bool = False
    """Whether pictures are stretched to the size that the policy was trained with."""
    clip: bool = False
    """Whether rows are cut to the range of the action."""


@dataclass(frozen=True, slots=True)
class Folder:
    """What the files say, in agreement."""

    path: Path
    kind: str
    """LeRobot's name of the policy, such as `act`."""
    told: Told
    sizes: tuple[tuple[int, int], ...]
    """Height and width of each view."""


def read_folder(path: Path) -> Folder:
    """Read everything but the weights.

    Raises:
        ConfigError: a file is missing or cannot be read, or it is no policy of LeRobot.
        SpecMismatch: the files contradict each other.
    """
    if not path.is_dir():
        raise ConfigError(f"there is no folder {str(path)!r}; expected lerobot:FOLDER")
    for name in (CONFIG, *PIPELINES, DECLARED):
        if not (path / name).is_file():
            raise ConfigError(f"{path} has no {name}; {_advice(name)}")
    config = read_object(path / CONFIG, _advice(CONFIG))
    kind = config.get("type")
    if not isinstance(kind, str):
        raise ConfigError(f"{path / CONFIG} names no type of policy; it is none of LeRobot's")
    told = read_declaration(Told, path / DECLARED)
    shapes = {
        **_shapes(path, config, "input_features"),
        **_shapes(path, config, "output_features"),
    }
    wrong = [*_vector_problems(told, shapes), *_view_problems(told, shapes)]
    steps = config.get("n_obs_steps", 1)
    if steps != 1:
        wrong.append(f"it wants the last {steps} observations, and is given the present one only")
    inner = config.get("vlm_model_name")
    if inner and not Path(str(inner)).is_dir():
        wrong.append(f"its vlm_model_name {inner!r} is no folder here, and nothing is fetched")
    for name in PIPELINES:
        check_pipeline(path, name)
    if wrong:
        raise SpecMismatch(f"{path / DECLARED} does not fit the policy: {'; '.join(wrong)}")
    sizes = tuple((shapes[VIEW + v][1], shapes[VIEW + v][2]) for v in told.views)
    return Folder(path, kind, told, sizes)


def check_pipeline(folder: Path, name: str) -> None:
    """Refuse a pipeline that would pass something on without normalising it.

    LeRobot leaves a feature as it is when it has no statistics for it, and says nothing.

    Raises:
        ConfigError: statistics are missing, or a step is one that LeRobot does not register.
    """
    steps = read_object(folder / name, _advice(name)).get("steps") or []
    unknown = [step.get("class") for step in steps if not step.get("registry_name")]
    if unknown:
        raise ConfigError(
            f"{folder / name} names the class {unknown[0]!r} to be imported; only steps that "
            "LeRobot registers by name are run"
        )
    scaling = [s for s in steps if s["registry_name"] in NORMALIZERS]
    if not scaling:
        raise ConfigError(f"{folder / name} normalises nothing; {_advice(name)}")
    for step in scaling:
        known = _statistics(folder, step.get("state_file"))
        modes = step.get("config", {}).get("norm_map", {})
        for feature, told in step.get("config", {}).get("features", {}).items():
            mode = modes.get(told.get("type"), "IDENTITY")
            missing = [s for s in NEEDED.get(mode, ()) if f"{feature}.{s}" not in known]
            # What goes in holds no action: that is for training.
            if missing and not (name == PIPELINES[0] and feature == ACTION):
                raise ConfigError(
                    f"{folder / name} lacks {' and '.join(missing)} of {feature}; {_advice(name)}"
                )


def _statistics(folder: Path, file: str | None) -> frozenset[str]:
    if not file or not (folder / file).is_file():
        return frozenset()
    with safe_open(folder / file, framework="numpy") as tensors:
        return frozenset(tensors.keys())


def digest_of(folder: Path, settings: str) -> str:
    """Return the SHA-256 of weights, pipelines, declaration and how they are run.

    Raises:
        ConfigError: there are no weights as safetensors.
    """
    tensors = sorted(folder.glob("*.safetensors"))
    if not (folder / "model.safetensors").is_file():
        raise ConfigError(f"{folder} holds no model.safetensors; other formats are not read")
    return digest_of_files([*tensors, *sorted(folder.glob("*.json")), folder / DECLARED], settings)


def _advice(name: str) -> str:
    if name == DECLARED:
        return "it declares the robot's conventions (docs/policies.md shows one)"
    if name in PIPELINES:
        return (
            "without the statistics in it a policy acts wrongly and says nothing, so it is not "
            "run; save it with a current version of LeRobot"
        )
    return "save the policy with save_pretrained of LeRobot"


def _shapes(path: Path, config: Mapping[str, Any], key: str) -> dict[str, tuple[int, ...]]:
    features = config.get(key)
    try:
        return {name: tuple(int(n) for n in each["shape"]) for name, each in features.items()}  # type: ignore[union-attr]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path / CONFIG} tells no shapes of {key}") from error


def _vector_problems(told: Told, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    sizes = {STATE: ProprioParts(told.state).size, ACTION: told.policy.action.size}
    return [
        f"{name} has the shape {shapes.get(name)}, declared are {size} numbers"
        for name, size in sizes.items()
        if shapes.get(name) != (size,)
    ]


def _view_problems(told: Told, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    trained = {name.removeprefix(VIEW): s for name, s in shapes.items() if name.startswith(VIEW)}
    cameras = told.policy.cameras
    if len(cameras) != len(told.views):
        return [f"{len(cameras)} cameras are declared for {len(told.views)} views"]
    wrong = [f"there is no view {v!r}; {suggest(v, trained)}" for v in told.views
             if v not in trained]  # fmt: skip
    wrong += [f"the view {v!r}, which it was trained with, is fed by no camera" for v in trained
              if v not in told.views]  # fmt: skip
    for camera, view in zip(cameras, told.views, strict=True):
        size = trained.get(view, ())[1:]
        if size and size != (camera.height, camera.width) and not told.resize:
            wrong.append(
                f"the view {view!r} is {size[0]}x{size[1]} and the camera {camera.name!r} "
                f"{camera.height}x{camera.width}; resize = true would stretch it"
            )
    return wrong
