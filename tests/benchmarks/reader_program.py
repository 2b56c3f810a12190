"""Measure a `PipeModeDataset` of this interpreter's TensorFlow; write one JSON object of rates, in MB/s, a round.

    reader_program.py FOLDER ROUNDS BYTES

``FOLDER`` is to be in memory, ``BYTES`` is the size of the file of records. Everything is drained inside TensorFlow, as
its next stage would: Python takes longer for an element than the reader does.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from scriptmode_runtime.tensorflow import PipeModeDataset

FILE = int(sys.argv[3])
#: Bytes of a record, records of a vector.
RECORD, BATCH = 3_000, 256
#: Elements to pass over: more than there are, less than an int32 holds.
ALL = (1 << 31) - 1
WRITE = """
import fcntl, os, sys
for path, fifo, times in map(str.split, sys.stdin):
    data = memoryview(open(path, "rb").read())
    descriptor = os.open(fifo, os.O_WRONLY)
    fcntl.fcntl(descriptor, 1031, 1 << 20)
    for _ in range(int(times)):
        at = 0
        while at < len(data):
            at += os.write(descriptor, data[at : at + (1 << 20)])
    os.close(descriptor)
    os.unlink(fifo)
    print(flush=True)
"""


class Bench:
    """A host with one channel, and the process that feeds it from memory."""

    def __init__(self, base):
        self.base = base
        self.epoch = 0
        os.environ["SAGEMAKER_BASE_DIR"] = str(base)
        (base / "input" / "data").mkdir(parents=True)
        (base / "input" / "config").mkdir()
        config = base / "input" / "config" / "inputdataconfig.json"
        config.write_text(json.dumps({"train": {"TrainingInputMode": "Pipe"}}))
        pipe = subprocess.PIPE
        self.writer = subprocess.Popen([sys.executable, "-c", WRITE], stdin=pipe, stdout=pipe, text=True)

    def through(self, path, stream, read):
        """Return MB/s of ``read``, called with the name of a FIFO that is fed."""
        fifo = self.base / "input" / "data" / f"train_{self.epoch}"
        os.mkfifo(fifo)
        times = stream // path.stat().st_size
        self.writer.stdin.write(f"{path} {fifo} {times}\n")
        self.writer.stdin.flush()
        began = time.perf_counter()
        read(fifo)
        seconds = time.perf_counter() - began
        self.writer.stdout.readline()
        return path.stat().st_size * times / seconds / 1e6

    def cat(self, path, stream):
        def read(fifo):
            subprocess.run(["cat", fifo], check=True, stdout=subprocess.DEVNULL)

        return self.through(path, stream, read)

    def vectors(self, path, stream):
        iterator = iter(PipeModeDataset("train", "TFRecord", batch_size=BATCH).take(ALL).skip(ALL))
        rate = self.through(path, stream, lambda _: list(iterator))
        self.epoch += 1
        return rate


def main():
    bench = Bench(Path(sys.argv[1]))
    path, stream = bench.base / "records", 16 * FILE
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(FILE // RECORD):
            writer.write(os.urandom(RECORD))
    for number in range(int(sys.argv[2]) + 1):
        rates = {"version": tf.__version__, "cat": bench.cat(path, stream), "vectors": bench.vectors(path, stream)}
        if number:  # the first one warms up
            print(json.dumps(rates), flush=True)
    bench.writer.stdin.close()
    bench.writer.wait()


if __name__ == "__main__":
    main()
