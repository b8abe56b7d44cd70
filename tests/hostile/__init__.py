"""Input that nobody would send but an enemy, a broken disk or an old program: every reader answers it, in words."""
