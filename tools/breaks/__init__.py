"""Deliberate mistakes in the code that tests must see: ``make breaks``.

Rules over the syntax tree make most of them (:mod:`tools.breaks.rules`): mutants. What no rule
makes is listed in ``tests/breaks/<id>.toml``: each break there replaces a piece of text in one
file, and names the tests that must go red. Mutants that no test can tell from the code are listed
in ``tests/mutants/equivalent.toml``, with the reason.
"""
