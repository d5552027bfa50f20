"""Any policy behind a socket: one inference front, and doors to it."""
