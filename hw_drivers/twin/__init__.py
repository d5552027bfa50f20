"""A Panda that is not there: physics, cameras and the link of a real arm, for trying everything."""
