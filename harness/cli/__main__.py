"""``python -m harness.cli``: the ``archbench`` command."""

from harness.cli import main

main()
