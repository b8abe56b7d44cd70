"""Slurm: its own files, its accounting and its reports, read as a site."""
