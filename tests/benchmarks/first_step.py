"""S3 to parsed batches, against S3 to ``cat``; and from ``fit`` to the first batch, Pipe mode against File mode."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.streams import producer, server

from scriptmode import Estimator

if TYPE_CHECKING:
    from collections.abc import Iterator

#: 2 GB of records of 3 KB.
OBJECTS, RECORDS, RECORD_BYTES = amount(16, smallest=2), amount(42_000, smallest=500), 3_000
RUNS = 2
WRITE = f"""import os, sys
import tensorflow as tf
def feature(**kind):
    return tf.train.Feature(**kind)
with tf.io.TFRecordWriter(sys.argv[1]) as file:
    for number in range({RECORDS}):
        image = feature(bytes_list=tf.train.BytesList(value=[os.urandom({RECORD_BYTES})]))
        label = feature(int64_list=tf.train.Int64List(value=[number % 10]))
        features = tf.train.Features(feature={{"image": image, "label": label}})
        file.write(tf.train.Example(features=features).SerializeToString())
"""
PARSE = """
import os, sys, time
import tensorflow as tf
features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
def parsed(records):
    return records.map(lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=2).prefetch(2)
"""
READER = f"""{PARSE}
from scriptmode_runtime.tensorflow import PipeModeDataset
dataset = parsed(PipeModeDataset("train", record_format="TFRecord", batch_size=256))
for _ in sys.stdin:
    began = time.monotonic()
    records = sum(int(batch["label"].shape[0]) for batch in dataset)
    print(time.monotonic() - began, records, flush=True)
"""
FIRST = f"""{PARSE}
if os.environ["MODE"] == "Pipe":
    from scriptmode_runtime.tensorflow import PipeModeDataset
    records = PipeModeDataset("train", record_format="TFRecord", batch_size=256)
else:
    folder = os.environ["SM_CHANNEL_TRAIN"]
    records = tf.data.TFRecordDataset([os.path.join(folder, name) for name in sorted(os.listdir(folder))]).batch(256)
for batch in parsed(records):
    print("first batch at", time.time(), flush=True)
    break
"""


def run(folder: str) -> list[Figure]:
    with server(Path(folder) / "s3") as client:
        written = Path(folder) / "records"
        subprocess.run((sys.executable, "-c", WRITE, str(written)), check=True, stderr=subprocess.DEVNULL)
        client.create_bucket(Bucket="bench")
        for number in range(OBJECTS):
            client.upload_file(str(written), "bench", f"records/{number:05}")
        return [*_parsed(Path(folder)), *_first(Path(folder))]


def _parsed(folder: Path) -> list[Figure]:
    base = folder / "host"
    (base / "input" / "config").mkdir(parents=True)
    config = {
        "train": {"TrainingInputMode": "Pipe", "RecordWrapperType": "None", "S3DistributionType": "FullyReplicated"}
    }
    (base / "input" / "config" / "inputdataconfig.json").write_text(json.dumps(config))
    place = base / "input" / "data" / "train"
    place.parent.mkdir()
    records = "s3://bench/records/"
    with producer(records, folder / "plain") as plain, producer(records, place), _reader(base) as through_reader:
        cat, parsed = in_turn(RUNS, plain.through_cat, through_reader)
    return [Figure("S3 to parsed batches of 3 KB records / S3 to cat", cat / parsed, "x", 0.75, at_most=False)]


@contextmanager
def _reader(base: Path) -> Iterator[Callable[[], float]]:
    """A TensorFlow process that reads one epoch when it is called."""
    process = subprocess.Popen(
        (sys.executable, "-c", READER), env={**os.environ, "SAGEMAKER_BASE_DIR": str(base)}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip

    def epoch() -> float:
        process.stdin.write("epoch\n")
        process.stdin.flush()
        seconds, records = process.stdout.readline().split()
        assert int(records) == OBJECTS * RECORDS
        return float(seconds)

    try:
        yield epoch
    finally:
        process.kill()
        process.communicate()


def _first(folder: Path) -> list[Figure]:
    code = folder / "code"
    code.mkdir()
    (code / "train.py").write_text(FIRST)

    def begun(mode: str) -> float:
        began = time.time()
        job = Estimator(
            entry_point="train.py", source_dir=str(code), instance_type="local_process", input_mode=mode,
            environment={"MODE": mode},
        ).fit({"train": "s3://bench/records/"}, wait=False)  # fmt: skip
        job.wait()
        said = "\n".join(event.message for event in job.logs())
        return float(re.search(r"first batch at ([\d.]+)", said)[1]) - began

    file, pipe = begun("File"), begun("Pipe")
    return [
        Figure("fit to the first batch of 2 GB, File mode", file, "s"),
        Figure("fit to the first batch of 2 GB, Pipe mode", pipe, "s"),
    ]
