"""Accounting logs of real schedulers as workload logs: one reader a format, one set of rules for all."""
