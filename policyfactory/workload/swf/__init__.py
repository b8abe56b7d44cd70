"""The Standard Workload Format: read, written, downloaded."""
