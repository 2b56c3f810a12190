"""Fails on the host that ``--host`` names, in the way that ``--how`` names; sleeps on the others."""

import os
import signal
import sys
import time
from pathlib import Path

host, how = (sys.argv[sys.argv.index(name) + 1] for name in ("--host", "--how"))
if os.environ["SM_CURRENT_HOST"] == host:
    while not Path(sys.argv[sys.argv.index("--go") + 1]).exists():
        time.sleep(0.01)
    if how == "raise":
        raise RuntimeError("this host gives up")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(int(how))
print("training", flush=True)
time.sleep(600)
