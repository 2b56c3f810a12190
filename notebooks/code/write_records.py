"""Write the images of .npz files as TFRecord files, for channels in Pipe mode.

python write_records.py FOLDER TARGET [--files N] [--ranks N]

Images are distributed over the files in turn. ``--ranks`` creates a directory in TARGET for each training process of
a host, ``0`` to ``N-1``: the channels ``train_0`` ... of train_hvd.py. With ShardedByS3Key each host gets some of the
files, so a directory should have at least as many files as there are hosts.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import hyperparameters
import images

# Show only errors of TensorFlow, which reads this when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import records


def main(arguments: list[str]) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="directory with .npz files of the arrays x [n, 28, 28] and y [n]")
    parser.add_argument("target", type=Path)
    parser.add_argument("--files", type=hyperparameters.positive, default=4, help="number of files in each directory")
    parser.add_argument(
        "--ranks", type=hyperparameters.positive, help="number of directories: one for each process of a host"
    )
    options = parser.parse_args(arguments)
    whole = images.load(options.folder)
    folders = [options.target / str(rank) for rank in range(options.ranks)] if options.ranks else [options.target]
    count = options.files * len(folders)
    for index in range(count):
        path = folders[index % len(folders)] / f"part-{index // len(folders):05}.tfrecord"
        path.parent.mkdir(parents=True, exist_ok=True)
        records.write(path, whole.part(index, count))
    print(f"{len(whole)} images in {count} files below {options.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
