"""Tasks that a TOML file describes: a user's own data, without code."""
