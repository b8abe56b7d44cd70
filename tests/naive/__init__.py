"""Plain twins of the kernels: same names, written to be read, never fast."""
