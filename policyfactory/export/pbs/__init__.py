"""OpenPBS: job_sort_formula, evaluated as PBS does it."""
