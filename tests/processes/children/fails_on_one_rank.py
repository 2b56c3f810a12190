import os
import signal
import sys
import time
from pathlib import Path

rank = os.environ["OMPI_COMM_WORLD_RANK"]
how = sys.argv[sys.argv.index("--how") + 1]
print("rank", rank, "of", os.environ["SM_CURRENT_HOST"], "in", Path.cwd(), flush=True)
if rank == "3" and how == "raise":
    raise ValueError("rank three\n has had enough")
if rank == "3" and how == "exit":
    sys.exit(3)
if rank == "3" and how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how != "well":
    time.sleep(600)
