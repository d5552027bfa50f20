"""Where things are, from what cameras and depth show."""
