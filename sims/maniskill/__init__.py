"""ManiSkill 3.0.1: tasks of one Panda arm on SAPIEN, in an environment of its own."""
