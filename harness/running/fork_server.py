"""Set-up of the fork server, which imports this last.

It is a process group of its own, so that a closed terminal reaches the run alone, which ends the
cells in order. Whatever ends the run, the server ends soon after, and every process below it
before.

Last, because libraries may write when they are imported, and some terminals stop a process of
another group that does.
"""

import atexit
import os
import warnings

from harness.running.orphans import adopt_orphans, kill_descendants

os.environ.pop("PYTHONSAFEPATH", None)  # it was for this process, and programs that cells start are others
os.setpgid(0, 0)
adopt_orphans()
atexit.register(kill_descendants)  # cells leave by os._exit, so this is for the server alone
warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")  # an orphan that it adopted
