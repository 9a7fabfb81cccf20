"""An extra process of a cell on several devices: it trains along with the first one.

Lightning starts this module, see :func:`harness.running.devices.lead`.
"""

from __future__ import annotations

import sys

from harness.running.devices import from_json
from harness.running.worker import train_along

if __name__ == "__main__":
    train_along(*from_json(sys.argv[1]))
