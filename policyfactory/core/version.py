"""The version of the package: below everything, so that no module needs the package itself for it."""

__version__ = "0.1.0"
