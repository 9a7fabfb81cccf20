"""Anybody's own data in one command: which architecture suits them, as far as chance lets see."""
