"""Slurm's rules for a workload on a site: from both to the arrays of the engine, and back."""
