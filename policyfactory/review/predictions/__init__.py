"""How good predictions of run times are."""
