"""Kernels: arrays in, arrays out; no Python objects, no I/O, no randomness."""
