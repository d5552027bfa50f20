"""Frozen policies behind one protocol."""
