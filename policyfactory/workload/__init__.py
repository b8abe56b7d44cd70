"""Who arrives: logs, workload models, their cleaning and their description."""
