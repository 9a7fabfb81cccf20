"""Deliberate mistakes in the code that tests must see: ``make breaks``.

``tests/breaks/<id>.toml`` lists the breaks of one architecture. Each one replaces a piece of text
in one file, and names the tests that must go red.
"""
