"""The messages of deoxys as field numbers, made into protobuf classes when they are first needed.

Only what is on the wire counts: field numbers, kinds, and the full names of what travels inside an
`Any`. Enumerations are int32 there, and nested messages need no name of their own. The classes live
in a pool of their own, so that a process may import the modules of deoxys as well. Field numbers
are the published ones: `franka_controller.proto` and `franka_robot_state.proto` of
UT-Austin-RPL/deoxys_control.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from zetta.runtime.errors import ConfigError

ERROR_FLAGS: Final = (
    "joint_position_limits_violation",
    "cartesian_position_limits_violation",
    "self_collision_avoidance_violation",
    "joint_velocity_violation",
    "cartesian_velocity_violation",
    "force_control_safety_violation",
    "joint_reflex",
    "cartesian_reflex",
    "max_goal_pose_deviation_violation",
    "max_path_pose_deviation_violation",
    "cartesian_velocity_profile_safety_violation",
    "joint_position_motion_generator_start_pose_invalid",
    "joint_motion_generator_position_limits_violation",
    "joint_motion_generator_velocity_limits_violation",
    "joint_motion_generator_velocity_discontinuity",
    "joint_motion_generator_acceleration_discontinuity",
    "cartesian_position_motion_generator_start_pose_invalid",
    "cartesian_motion_generator_elbow_limit_violation",
    "cartesian_motion_generator_velocity_limits_violation",
    "cartesian_motion_generator_velocity_discontinuity",
    "cartesian_motion_generator_acceleration_discontinuity",
    "cartesian_motion_generator_elbow_sign_inconsistent",
    "cartesian_motion_generator_start_elbow_invalid",
    "cartesian_motion_generator_joint_position_limits_violation",
    "cartesian_motion_generator_joint_velocity_limits_violation",
    "cartesian_motion_generator_joint_velocity_discontinuity",
    "cartesian_motion_generator_joint_acceleration_discontinuity",
    "cartesian_position_motion_generator_invalid_frame",
    "force_controller_desired_force_tolerance_violation",
    "controller_torque_discontinuity",
    "start_elbow_sign_inconsistent",
    "communication_constraints_violation",
    "power_limit_violation",
    "joint_p2p_insufficient_torque_for_planning",
    "tau_j_range_violation",
    "instability_detected",
    "joint_move_in_wrong_direction",
)
"""Flags of an error message by field number, which counts from 1."""

_GOAL = "1 bool is_delta, 2 double x, 3 double y, 4 double z, 5 double ax, 6 double ay, 7 double az"
_JOINT_GOAL = ", ".join(["1 bool is_delta", *(f"{n + 1} double q{n}" for n in range(1, 8))])
_GAINS = "2 double kp_gains, 3 double kd_gains, 4 double speed_factor"

MESSAGES: Final[Mapping[str, str]] = {
    "Goal": _GOAL,
    "JointGoal": _JOINT_GOAL,
    "ExponentialSmoothingConfig": (
        "1 double alpha_q, 2 double alpha_dq, 3 double alpha_eef, 4 double alpha_eef_vel"
    ),
    "FrankaStateEstimatorMessage": (
        "1 bool is_estimation, 2 int32 estimator_type, 5 Any config"  # there are no fields 3 and 4
    ),
    "FrankaOSCControllerConfig": "1 double* residual_mass_vec",
    "FrankaDummyControllerMessage": "1 Goal goal, 2 bool termination",
    "FrankaOSCPoseControllerMessage": (
        "1 Goal goal, 2 double* translational_stiffness, 3 double* rotational_stiffness, "
        "4 bool termination, 5 FrankaOSCControllerConfig config"
    ),
    "FrankaJointPositionControllerMessage": f"1 JointGoal goal, {_GAINS}",
    "FrankaJointImpedanceControllerMessage": "1 JointGoal goal, 2 double* kp, 3 double* kd",
    "FrankaCartesianVelocityControllerMessage": f"1 Goal goal, {_GAINS}",
    "FrankaControlMessage": (
        "1 bool termination, 2 int32 controller_type, 3 int32 traj_interpolator_type, "
        "4 double traj_interpolator_time_fraction, 5 Any control_msg, 6 double timeout, "
        "7 FrankaStateEstimatorMessage state_estimator_msg"
    ),
    "FrankaGripperHomingMessage": "1 bool homing",
    "FrankaGripperMoveMessage": "1 double width, 2 double speed",
    "FrankaGripperStopMessage": "1 bool stop",
    "FrankaGripperGraspMessage": (
        "1 double width, 2 double speed, 3 double force, 4 double epsilon_inner, "
        "5 double epsilon_outer"
    ),
    "FrankaGripperControlMessage": "1 bool termination, 2 Any control_msg",
    "Duration": "1 double toSec, 2 uint64 toMSec",
    "FrankaGripperStateMessage": (
        "1 double width, 2 double max_width, 3 bool is_grasped, 4 uint32 temperature, "
        "5 Duration time"
    ),
    "Errors": ", ".join(f"{n} bool {flag}" for n, flag in enumerate(ERROR_FLAGS, 1)),
    "FrankaRobotStateMessage": (
        "1 double* O_T_EE, 2 double* O_T_EE_d, 24 double* q, 25 double* q_d, 26 double* dq, "
        "29 double* joint_contact, 30 double* cartesian_contact, 31 double* joint_collision, "
        "32 double* cartesian_collision, 33 double* tau_ext_hat_filtered, "
        "34 double* O_F_ext_hat_K, 42 Errors current_errors, 43 Errors last_motion_errors, "
        "44 double control_command_success_rate, 45 int32 robot_mode, 46 Duration time, "
        "48 uint64 frame"
    ),
}
"""Fields as `number kind name`; a star repeats. Of the robot state only what is read."""


def new(name: str) -> Any:
    """Return an empty protobuf message of the kind `name`.

    Raises:
        ConfigError: protobuf is not installed.
    """
    return _classes()[name]()


@cache
def _classes() -> dict[str, Any]:
    try:
        from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise ConfigError(
            "the wire of deoxys needs protobuf; install it with pip install 'zetta[arms]'"
        ) from error
    file = descriptor_pb2.FileDescriptorProto(
        name="zetta_deoxys.proto", syntax="proto3", dependency=["google/protobuf/any.proto"]
    )
    kind = descriptor_pb2.FieldDescriptorProto
    scalars = {
        "bool": kind.TYPE_BOOL,
        "double": kind.TYPE_DOUBLE,
        "int32": kind.TYPE_INT32,
        "uint32": kind.TYPE_UINT32,
        "uint64": kind.TYPE_UINT64,
    }
    for name, text in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, of, field in (entry.split() for entry in text.split(", ")):
            single = of.removesuffix("*")
            made = message.field.add(name=field, number=int(number))
            made.label = kind.LABEL_REPEATED if single != of else kind.LABEL_OPTIONAL
            if single in scalars:
                made.type = scalars[single]
            else:
                made.type = kind.TYPE_MESSAGE
                made.type_name = ".google.protobuf.Any" if single == "Any" else f".{single}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in MESSAGES
    }
