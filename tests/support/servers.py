"""Servers that tests start as processes of their own."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def answers(address: str, server: subprocess.Popen, path: str = "/health") -> str:
    """The address, as soon as something answers there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, f"the server at {address} ended"
        try:
            urllib.request.urlopen(f"{address}{path}", timeout=5).close()
            return address
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"no answer at {address}")
