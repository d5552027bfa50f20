"""Bounded motions, sensing of objects, semantic commands."""
