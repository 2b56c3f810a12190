"""A producer in a process of its own: ``feeder.py CHANNEL PLAN``, PLAN a JSON list of epochs.

An epoch is a list of texts, or numbers of ``x``. The last epoch is repeated for ever. ``null`` instead of a text is a
source that fails, ``false`` one that yields nothing until ``waiting`` raises. Prints what it does, and lives until its
stdin is closed.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

from scriptmode.errors import DataError
from scriptmode_local._data import pipes


def main(place, plan):
    counters = [0, 0]

    def stream(epoch, waiting):
        try:
            for text in plan[min(epoch, len(plan) - 1)]:
                while text is False:
                    waiting()
                    time.sleep(0.01)
                if text is None:
                    raise DataError("s3://b/k: the object is gone")
                yield text.encode() if isinstance(text, str) else b"x" * text
        finally:
            print(f"epoch {epoch} ended, {counters[0]} opened", flush=True)

    fifos = pipes.Fifos(place)
    fifos.create(0)
    print("ready", flush=True)
    try:
        pipes.feed(fifos, stream, counters)
    except Exception as error:
        print(f"error {error}", flush=True)
        threading.Event().wait()


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_stdin, daemon=True).start()
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
