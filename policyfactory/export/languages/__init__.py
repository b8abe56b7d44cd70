"""A policy as a program, and a formula in the languages that schedulers speak."""
