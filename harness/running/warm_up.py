"""The work of the fork server before its first cell, which it does by importing this.

It parses all plugins, so that cells start with a warm cache, and asks for the commit of the code
that it has imported. Cells inherit the answer: a later one would be of code that they do not run.
"""

from contextlib import suppress

from harness import registry
from harness.records.provenance import commit

for _sort in ("architectures", "tasks"):
    with suppress(registry.RegistryError):  # reported when a cell loads the plugin
        registry.entries(_sort)

commit()
