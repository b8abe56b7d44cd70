"""From a log to a tested policy: scores, formulas, a choice among them, and evidence on jobs that chose none."""
