"""pi0, read from a folder and run in this process."""
