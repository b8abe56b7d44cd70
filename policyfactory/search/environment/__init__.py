"""The simulator as an environment for learning agents."""
