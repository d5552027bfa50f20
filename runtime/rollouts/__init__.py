"""Many episodes on one machine's processes."""
