"""What every cell needs first: the fork server imports this, so that the cells find it done."""

from contextlib import suppress

from harness import registry

for _sort in ("architectures", "tasks"):
    with suppress(registry.RegistryError):  # the cells' business
        registry.entries(_sort)
