import os
import time

print("asleep", os.environ.get("SM_CURRENT_HOST"), flush=True)
time.sleep(600)
