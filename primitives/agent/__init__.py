"""An agent drives the robot through semantic commands: turns, budgets, models, demonstrations."""
