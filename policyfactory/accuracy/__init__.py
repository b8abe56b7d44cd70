"""How good predictions of run times are, beside simple rules from the same past."""
