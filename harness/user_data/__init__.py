"""Tasks that a TOML file describes: a user's own data, without code.

They are offered to the registry here; what reads them is imported with the first of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import registry


class Descriptions:
    """The descriptions of tasks in TOML, as the registry asks for them."""

    class_name = "OwnTask"

    def entry(self, file: Path) -> tuple[str, dict[str, Any]]:
        """The id of the task that a file describes, and the options of its entry."""
        from harness.user_data.description import entry

        return entry(file)

    def class_of(self, file: Path) -> type:
        """The class of the task that a file describes."""
        from harness.user_data.task import class_of

        return class_of(file)


registry.offer_tasks(Descriptions())
