"""Memory and processor time of a process and all below it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.running import usage
from harness.running.usage import processor_s, resident_mib, used_mib

ROOT = Path(__file__).resolve().parents[2]

FORKS = r"""
import os, sys, time
held = b"x" * (100 << 20)
for _ in range(4):
    if os.fork() == 0:
        own = b"y" * (30 << 20)
        os.write(1, b"here\n")
        time.sleep(60)
os.write(1, b"here\n")
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell who shares a page")
def test_what_processes_share_counts_once_and_what_each_has_counts():
    process = subprocess.Popen(
        [sys.executable, "-c", FORKS], stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
    )
    try:
        assert process.stdout is not None and [process.stdout.readline() for _ in range(5)] == ["here\n"] * 5
        assert resident_mib(process.pid) > 5 * 100 + 4 * 30
        assert 100 + 4 * 30 <= used_mib(process.pid) < 100 + 4 * 30 + 60, "the interpreter itself is the rest"
    finally:
        os.killpg(process.pid, 9)
        process.communicate()
    assert used_mib(process.pid) == 0


def test_processor_time_counts_work_of_descendants_that_run_and_that_have_ended_and_no_waiting():
    # More than is asked for: the system counts in hundredths, and rounds both its parts down.
    work = "import time; [0 for _ in iter(lambda: time.process_time() < 0.35, False)]"
    program = (
        f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {work!r}]);"
        " print('ended', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ended\n"
        assert 0.3 <= processor_s(process.pid) < 1
    finally:
        process.kill()
        process.communicate()
    assert processor_s(process.pid) == 0


def test_a_reading_in_the_midst_of_which_processes_ended_is_not_believed(monkeypatch):
    """Those that are left share their pages with fewer then: the sum is more than ever was."""
    readings = iter([400 << 20, 100 << 20])
    monkeypatch.setattr(usage, "_used", lambda pid: next(readings))
    assert used_mib(os.getpid()) == 100
