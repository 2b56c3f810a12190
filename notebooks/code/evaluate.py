"""Load a trained model and evaluate it on held-out images.

python evaluate.py MODEL EVAL_FOLDER

MODEL is a model.tar.gz or a directory with one SavedModel. The program prints one line,
``accuracy=0.8710 images=2000 model=...``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import images
import model


def main() -> None:
    """Print the accuracy of the model on the images of the directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path, help="model.tar.gz, or a directory with one SavedModel")
    parser.add_argument("eval_folder", type=Path, help="directory with .npz files of x and y")
    arguments = parser.parse_args()
    held_out = images.load(arguments.eval_folder)
    score = model.score if arguments.model.is_dir() else model.score_archive
    accuracy = score(arguments.model, held_out)
    print(f"accuracy={accuracy:.4f} images={len(held_out)} model={arguments.model}")


if __name__ == "__main__":
    main()
