"""Networks by reinforcement: proximal policy optimisation with the simulator in the loop."""
