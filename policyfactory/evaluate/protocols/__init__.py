"""Protocols: experiments as data, and how they become what can be run."""
