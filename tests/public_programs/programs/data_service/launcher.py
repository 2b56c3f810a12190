"""tf.data service: the last host's processes prepare the data of the first host, found by the names in SM_HOSTS."""

import json
import os
import socket
import subprocess
import sys
import time

DATA_PORT, SHUTDOWN_PORT = 6000, 16000
hosts = json.loads(os.environ["SM_HOSTS"])
trainer, dispatcher = hosts[0], hosts[-1]


def start_child_process(name, additional_args):
    params = ["python", f"./{name}", *sys.argv[1:], *additional_args]
    print(f"Opening process: {params}")
    return subprocess.run(params, check=False).returncode


def shutdown_data_service(dispatcher_host):
    for _ in range(100):
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
                s.connect((dispatcher_host, SHUTDOWN_PORT))
                print(f"Shutdown request sent to {dispatcher_host}:{SHUTDOWN_PORT}")
                return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{dispatcher_host} does not listen")


if __name__ == "__main__":
    if os.environ["SM_CURRENT_HOST"] == dispatcher:
        sys.exit(start_child_process("train_data.py", ["--dispatcher_host", dispatcher]))
    code = start_child_process("train_dnn.py", ["--dispatcher_host", dispatcher])
    shutdown_data_service(dispatcher)
    sys.exit(code)
