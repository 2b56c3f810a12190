import os
import signal

print("goodbye", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
