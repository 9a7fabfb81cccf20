"""Parsing of all plugins in the fork server, which imports this: cells start with a warm cache."""

from contextlib import suppress

from harness import registry

for _sort in ("architectures", "tasks"):
    with suppress(registry.RegistryError):  # reported when a cell loads the plugin
        registry.entries(_sort)
