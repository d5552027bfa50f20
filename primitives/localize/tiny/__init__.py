"""A tiny localiser: named things of the LIBERO scenes from one RGB-D picture, on one CPU thread."""
