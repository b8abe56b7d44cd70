"""Policies learned with the simulator in the loop."""
