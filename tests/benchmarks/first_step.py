"""From ``fit`` to the first batch of data in S3, Pipe mode against File mode."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.benchmarks.streams import server

from scriptmode import Estimator

#: 2 GB of records of 3 KB.
OBJECTS, RECORDS, RECORD_BYTES = amount(16, smallest=2), amount(42_000, smallest=500), 3_000
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
FIRST = """
import os, time
import tensorflow as tf
features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
def parsed(records):
    return records.map(lambda batch: tf.io.parse_example(batch, features), num_parallel_calls=2).prefetch(2)
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
        return _first(Path(folder))


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
