"""From a log to a tested policy: scores, formulas, a choice, and evidence on jobs that had no part in the choice."""
