"""After an export: what a log-only export would have done, and what an export did."""
