"""Policies on logs: simulate, measure, compare, draw."""
