"""A trainer: leaves files, says its steps, and at a word does what the job's ``--fault`` is.

Words are files that the test makes in ``/opt/ml/input``: ``fault`` on the host of the trainer that ``--where`` names,
``quiet`` once the others would wait for it, ``finish`` when training is done.
"""

import json
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

STEP = 0.02
ML = Path("/opt/ml")
CONFIG = json.loads(os.environ.get("TF_CONFIG", "{}"))
OPTIONS = dict(zip(sys.argv[1::2], sys.argv[2::2]))
#: How a client of gRPC begins to speak HTTP/2; a server answers it with its own settings.
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def main():
    warming = warm_up()
    ask_servers()
    os.kill(warming, signal.SIGKILL)
    os.waitpid(warming, 0)
    train(FAULTS.get(OPTIONS["--fault"], nothing))


def warm_up():
    """Start a process that prints until training begins: TensorFlow's servers take their time to come up."""
    child = os.fork()
    while not child:
        os.write(1, b"warming up\n")
        time.sleep(0.2)
    return child


def train(fault):
    """Train until training is done; at the word ``fault()``, if this is the trainer to do it."""
    me = who()
    for folder in ("model", "output/data", "checkpoints"):
        (ML / folder / f"before the fault, {me}").write_text("whole" * 1000)
    mine = OPTIONS["--where"] == me
    if OPTIONS["--fault"] == "SIGTERM":
        signal.signal(signal.SIGTERM, save)
    if OPTIONS["--fault"] == "dies among daemons":
        forks_daemons()
    if OPTIONS["--fault"] == ("ignores TERM" if mine else "raises among the deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("training as", me, flush=True)
    while not said("finish"):
        ask_servers()
        if mine and said("fault"):
            fault()
            mine = False
        if not said("quiet"):
            with suppress(OSError):
                os.write(1, b"a step\n")
    with suppress(OSError):
        os.write(1, b"trained\n")


def save(*_):
    with (ML / "checkpoints" / f"saved by {who()}").open("wb", buffering=0) as file:
        for _part in range(10):
            time.sleep(0.05)
            file.write(b"whole" * 1000)
    sys.exit(0)


def ask_servers():
    """Make a step that needs an answer of every server."""
    time.sleep(STEP)
    for role in OPTIONS.get("--servers", "").split():
        for server in CONFIG["cluster"][role]:
            answers(server, time.monotonic() + 600)


def who():
    """Give the name of this trainer: its rank or its task."""
    rank, task = os.environ.get("OMPI_COMM_WORLD_RANK"), CONFIG.get("task")
    if rank:
        return f"rank {rank}"
    return f"{task['type']} {task['index']}" if task else "script"


def said(word):
    return (ML / "input" / word).exists()


def answers(place, deadline):
    """Ask a server for an answer, as a step of training does; a lost one is waited for, as TensorFlow does."""
    host, _, port = place.rpartition(":")
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=600) as server:
            server.sendall(GREETING)
            if server.recv(9):
                return
        time.sleep(STEP)


def raises():
    raise RuntimeError("this trainer gives up")


def eats_memory():
    eaten = []
    while True:
        eaten.append(bytearray(1 << 20))


def has_little_memory():
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20),) * 2)
    eats_memory()


def fills_the_disk():
    with (ML / "output" / "data" / "large").open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 65536)


def closes_stdout():
    os.close(1)
    os.close(2)


def forks_daemons():
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    for _ in range(3):
        os.wait()


def nothing():
    pass


FAULTS = {
    "raises": raises, "raises among the deaf": raises, "exits 7": lambda: sys.exit(7), "out of memory": eats_memory,
    "MemoryError": has_little_memory, "disk full": fills_the_disk, "closes stdout": closes_stdout,
    "forks daemons": forks_daemons, "dies among daemons": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "ignores TERM": nothing,
}  # fmt: skip

if __name__ == "__main__":
    main()
