"""Formulas as data: parse, simplify, compile, store, and the catalogue of known ones."""
