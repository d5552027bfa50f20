"""Pictures of a ManiSkill world, drawn when somebody looks.

The cameras are the task's own, drawn larger, and for the table one from each side. The
first picture of a process takes ten seconds of processor, while SAPIEN compiles its shaders.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from zetta.runtime.core import Camera, CameraSpec, Image, read_only
from zetta.runtime.errors import ConfigError, InfraError
from zetta.sims.maniskill.tasks import ManiSkillTask
from zetta.sims.quiet import quiet

SIZE: Final = 256
SHADERS: Final = {"fast": "minimal", "full": "default"}
"""SAPIEN's shaders by render profile; `minimal` is ManiSkill's own choice."""
_SIDES: Final = {"left": (0.40, 0.60, 0.60), "right": (0.40, -0.60, 0.60)}
"""Our own cameras over the table, to the left and the right of the arm, metres."""
_SIDE_TARGET, _SIDE_FOV = (-0.05, 0.0, 0.12), 0.9
_FAR_M: Final = 10.0


class Pictures:
    """The cameras of one world; a reset makes new ones."""

    def __init__(self, env: Any, task: ManiSkillTask, render: str) -> None:
        """Set the cameras up; nothing is drawn.

        Raises:
            ConfigError: unknown render profile.
        """
        if render not in SHADERS:
            known = " or ".join(SHADERS)
            raise ConfigError(f"ManiSkill is drawn {known}, got the render profile {render!r}")
        self._env, self._shader = env, SHADERS[render]
        self._shown = [getattr(env, name) for name in task.shows]
        self._cameras: dict[str, tuple[str, Any]] = {}
        with quiet():
            self._set_up(bool(task.robot))

    @property
    def specs(self) -> tuple[CameraSpec, ...]:
        """The cameras, those of the world first."""
        return tuple(
            CameraSpec(name, SIZE, SIZE, "wrist" if mount == "wrist" else "world")
            for name, (mount, _) in self._cameras.items()
        )

    def draw(self, name: str, depth: bool) -> tuple[Image, npt.NDArray[np.float32] | None, Camera]:
        """Draw one picture; return it, its depth in metres where asked for, and its calibration.

        Raises:
            InfraError: the picture is empty.
        """
        _, camera = self._cameras[name]
        camera.capture()
        seen = camera.get_obs(rgb=True, depth=depth, position=False, segmentation=False)
        image = seen["rgb"][0].numpy()
        if image.std() < 1.0:
            raise InfraError("SAPIEN draws empty pictures; run: zetta sims check maniskill")
        metres = seen["depth"][0, ..., 0].numpy() / 1000.0 if depth else None  # millimetres
        if metres is not None:
            metres = read_only(np.where(metres > 0.0, metres, _FAR_M), np.float32)
        return read_only(image, np.uint8), metres, self._calibration(camera, name)

    def refresh(self) -> None:
        """Tell the renderer where everything is now."""
        for hidden in self._env._hidden_objects:
            hidden.hide_visual()
        for shown in self._shown:
            shown.show_visual()
        self._env.scene.update_render(update_sensors=False, update_human_render_cameras=False)

    def _set_up(self, on_a_table: bool) -> None:
        from mani_skill.sensors.camera import Camera as Sensor
        from mani_skill.sensors.camera import CameraConfig
        from mani_skill.utils.sapien_utils import look_at

        env = self._env
        world: list[tuple[str, Any]] = []
        hands: list[tuple[str, Any]] = []
        for name, config in env._sensor_configs.items():
            on_hand = name in env._agent_sensor_configs
            (hands if on_hand else world).append((name, config))
        for i, (name, config) in enumerate(world):
            ours = "agentview" if i == 0 else name
            self._add(ours, "world", Sensor(self._alike(config, ours, None), env.scene))
        for side, eye in _SIDES.items() if on_a_table else ():
            ours = CameraConfig(
                f"zetta_{side}", look_at(eye, _SIDE_TARGET), SIZE, SIZE, _SIDE_FOV, 0.01, 100,
                shader_pack=self._shader,
            )  # fmt: skip
            self._add(side, "world", Sensor(ours, env.scene))
        for i, (name, config) in enumerate(hands):
            ours = "wrist" if i == 0 else name
            robot = env.agent.robot
            self._add(
                ours, "wrist", Sensor(self._alike(config, ours, config.mount), env.scene, robot)
            )

    def _alike(self, config: Any, name: str, mount: Any) -> Any:
        """Return a camera of the same place and angle, with our size and shader."""
        from mani_skill.sensors.camera import CameraConfig

        fov = config.fov
        if fov is None:
            fov = 2.0 * float(np.arctan(config.height / 2.0 / np.asarray(config.intrinsic)[1, 1]))
        return CameraConfig(
            f"zetta_{name}", config.pose, SIZE, SIZE, fov, config.near, config.far,
            entity_uid=config.entity_uid, mount=mount, shader_pack=self._shader,
        )  # fmt: skip

    def _add(self, name: str, mount: str, camera: Any) -> None:
        self._cameras[name] = (mount, camera)

    def _calibration(self, camera: Any, name: str) -> Camera:
        inside = np.eye(4)
        inside[:3] = camera.camera.get_extrinsic_matrix()[0].numpy().astype(np.float64)[:3]
        # Single precision: the rotation is made one again.
        u, _, v = np.linalg.svd(inside[:3, :3])
        place = np.eye(4)
        place[:3, :3] = (u @ v).T
        place[:3, 3] = -(u @ v).T @ inside[:3, 3]
        pixels = camera.camera.get_intrinsic_matrix()[0].numpy()
        return Camera(name, read_only(pixels), read_only(place))
