"""Arms and cameras behind the same protocol as simulators."""
