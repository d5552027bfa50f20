"""Skill packages and how they are born."""
