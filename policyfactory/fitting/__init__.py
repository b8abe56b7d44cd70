"""From a score table to a formula, with the diagnostics that say when not to trust it."""
