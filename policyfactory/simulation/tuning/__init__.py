"""Tuners: choose, period by period, the policy that orders the queue."""
