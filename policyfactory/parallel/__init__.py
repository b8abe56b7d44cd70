"""Pieces of work on threads, processes or a cluster, through joblib: the same results on each."""
