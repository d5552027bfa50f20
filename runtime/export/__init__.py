"""Logged episodes as data sets that others read: LeRobot's layout, plain Parquet, npz."""
