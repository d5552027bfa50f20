"""Holds other people's LIBERO convention against the simulator: a process draws one world."""

from __future__ import annotations

import numpy as np

from zetta.runtime.cli.graphics import choose_graphics
from zetta.runtime.core import Init, Scene
from zetta.runtime.foreign import pictures, states
from zetta.runtime.foreign.robots import GR00T_LIBERO, OPENPI_LIBERO


def compare() -> None:
    from zetta.sims.libero.env import CAMERAS, LiberoEnv
    from zetta.sims.libero.simulator import LiberoSimulator

    choose_graphics("libero")
    env = LiberoEnv("libero_spatial", 0, "full")
    try:
        env.reset(Scene(LiberoSimulator().task("libero_spatial", 0), Init(0)))
        seen = env.observe(tuple(CAMERAS))
        from robosuite.utils import transform_utils

        robot, data = env.control.env.robots[0], env.control.env.sim.data
        # The three sensors of robosuite that the published clients read.
        place = data.site_xpos[robot.eef_site_id]
        quat = transform_utils.convert_quat(data.get_body_xquat(robot.robot_model.eef_name), "xyzw")
        fingers = data.qpos[robot._ref_gripper_joint_pos_indexes]
        theirs = np.concatenate([place, transform_utils.quat2axisangle(np.array(quat)), fingers])
        ours = states.vector(seen.proprio, OPENPI_LIBERO.states[0].parts, OPENPI_LIBERO)
        np.testing.assert_allclose(ours[:6], theirs[:6], atol=1e-6)
        # Of the fingers we know the distance only; at rest they mirror each other.
        np.testing.assert_allclose(ours[6:], theirs[6:], atol=1e-3)
        assert ours[6] > 0 > ours[7]

        renderer = env.renderer()
        mj = renderer._mj
        box = mj.MjrRect(0, 0, 256, 256)
        for convention in (OPENPI_LIBERO, GR00T_LIBERO):
            for picture in convention.pictures:
                name = picture.camera.name
                renderer._compose(CAMERAS[name])
                mj.mjr_render(box, renderer._scene, renderer._context)
                rows = np.empty((256, 256, 3), np.uint8)
                # robosuite hands out exactly these rows (`MjRenderContext.read_pixels`).
                mj.mjr_readPixels(rows, None, box, renderer._context)
                theirs_seen = np.ascontiguousarray(rows[::-1, ::-1])
                assert np.array_equal(
                    pictures.turned(np.asarray(seen.images[name]), picture.turn), theirs_seen
                )
                assert not np.array_equal(seen.images[name], theirs_seen)
    finally:
        env.close()


if __name__ == "__main__":
    compare()
    print("equal")
