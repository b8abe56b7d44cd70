"""How far a simulated schedule is from the real scheduler's, and why."""
