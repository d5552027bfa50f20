"""Control ticks of the simulator, without the work that it repeats.

robosuite runs its operational-space controller at each of 25 substeps and computes the same
forward dynamics three times for each. Here position and velocity are computed once, the torques
from them, and then the step is finished (`mj_step1`, `mj_step2`); formulas and their order are
those of the original (Khatib 1987), the names of which are looked up once. Trajectories agree
with the original to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zetta.runtime.core import Action


class ControlLoop:
    """Advances a LIBERO problem environment by control ticks."""

    def __init__(self, inner: Any) -> None:
        import mujoco  # late: importing it chooses the OpenGL backend

        robot = inner.robots[0]
        model = inner.sim.model
        self._engine = mujoco
        self._inner, self._robot = inner, robot
        self._model, self._data = model._model, inner.sim.data._data
        self._substeps = int(inner.control_timestep / inner.model_timestep)
        self._site = model.site_name2id(robot.controller.eef_name)
        self._dofs = np.asarray(robot.controller.qvel_index)
        self._joints = np.asarray(robot.controller.qpos_index)
        self._arm = np.asarray(robot._ref_joint_actuator_indexes)
        self._fingers = np.array([model.actuator_name2id(a) for a in robot.gripper.actuators])
        limits = self._model.actuator_ctrlrange
        self._torque_low, self._torque_high = limits[self._arm].T.copy()
        self._finger_bias = limits[self._fingers].mean(axis=1)
        self._finger_weight = np.diff(limits[self._fingers], axis=1)[:, 0] / 2
        self._jacobian = np.zeros((6, self._model.nv))
        self._block = np.ix_(self._dofs, self._dofs)
        self._mass = np.zeros((self._model.nv, self._model.nv))
        self._kind = mujoco.mjtState.mjSTATE_INTEGRATION
        self.seen_from = np.zeros(mujoco.mj_stateSize(self._model, self._kind))
        """Integration state before the last substep. `mj_step2` moves joints and nothing else, so
        places, contacts and pictures of the present tick are those of this state."""

    def advance(self, action: Action) -> None:
        """Execute a 7-D action for one control tick."""
        inner, controller, gripper = self._inner, self._robot.controller, self._robot.gripper
        # A reset makes a new controller. Its own `update` computes forward dynamics once more.
        controller.update = self._sense
        inner.timestep += 1
        for substep in range(self._substeps):
            if substep == self._substeps - 1:
                self._engine.mj_getState(self._model, self._data, self.seen_from, self._kind)
            self._engine.mj_step1(self._model, self._data)
            if substep == 0:
                controller.set_goal(action[:6])
            torques = controller.run_controller()
            self._data.ctrl[self._arm] = np.clip(torques, self._torque_low, self._torque_high)
            fingers = gripper.format_action(action[6:])
            self._data.ctrl[self._fingers] = self._finger_bias + self._finger_weight * fingers
            self._engine.mj_step2(self._model, self._data)
        inner.cur_time += inner.control_timestep
        inner._post_process()

    def _sense(self, force: bool = False) -> None:
        """Fill what the controller computes from, as its own `update` would."""
        controller = self._robot.controller
        if not (controller.new_update or force):
            return
        model, data = self._model, self._data
        jacp, jacr = self._jacobian[:3], self._jacobian[3:]
        self._engine.mj_jacSite(model, data, jacp, jacr, self._site)
        self._engine.mj_fullM(model, data, self._mass)
        controller.ee_pos = np.array(data.site_xpos[self._site])
        controller.ee_ori_mat = data.site_xmat[self._site].reshape(3, 3).copy()
        controller.ee_pos_vel = jacp @ data.qvel
        controller.ee_ori_vel = jacr @ data.qvel
        controller.joint_pos = data.qpos[self._joints]
        controller.joint_vel = data.qvel[self._dofs]
        controller.J_full = self._jacobian[:, self._dofs]
        # Copies: the compiled formulas of the controller want contiguous arrays.
        controller.J_pos = controller.J_full[:3].copy()
        controller.J_ori = controller.J_full[3:].copy()
        controller.mass_matrix = self._mass[self._block]
        controller.new_update = False
