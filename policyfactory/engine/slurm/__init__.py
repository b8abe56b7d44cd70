"""Slurm's rules as kernels: a job's way from its submission to its start."""
