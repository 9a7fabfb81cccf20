"""Parsers of the corpora's published file formats: each yields plain values, or raises DataError
naming file and line."""
