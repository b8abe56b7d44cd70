"""Real batch schedulers on loopback, each in a directory of its own, for the tests of what is exported to them."""
