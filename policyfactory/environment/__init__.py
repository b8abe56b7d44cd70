"""The simulator as an environment: what is observed, decided and rewarded; goals, and the guards beside them."""
