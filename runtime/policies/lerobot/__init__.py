"""Policies of LeRobot, read from a folder and run in this process with their own processors."""
