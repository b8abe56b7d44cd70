"""Random orders of a queue, and the score of running each job first."""
