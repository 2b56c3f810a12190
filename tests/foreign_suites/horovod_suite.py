"""Horovod's examples for TensorFlow 2, each on two ranks of mpirun, with few steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.foreign_suites import programs, sources
from tests.foreign_suites.programs import KERAS_DATA, Program

from scriptmode import MPI

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "0.28.1"
REPOSITORY = "horovod/horovod"
FEW = ["--batch-size", "2", "--num-batches-per-iter", "1", "--num-iters", "2", "--no-cuda"]
SMALL = ["--model", "MobileNet"]  # the default, ResNet50, takes minutes on a CPU
PROGRAMS = {
    "tensorflow2_keras_mnist.py": (r"loss: .* accuracy: ", (KERAS_DATA, ("500 //", "20 //"), ("epochs=24", "epochs=1")), []),
    "tensorflow2_mnist.py": (r"Step #10\tLoss: ", (KERAS_DATA, ("10000 //", "30 //")), []),
    "tensorflow2_synthetic_benchmark.py": (
        r"Total img/sec on 2 CPU\(s\): ", (), [*SMALL, *FEW, "--num-warmup-batches", "1"],
    ),
    "tensorflow2_keras_synthetic_benchmark.py": (r"Total img/sec on 2 CPU\(s\): ", (), [*SMALL, *FEW]),
}  # fmt: skip


def run(folder: Path) -> dict[str, str | None]:
    """Run the programs; return the failure of each, None of one that succeeded."""
    examples = sources.repository(REPOSITORY, f"v{VERSION}") / "examples" / "tensorflow2"
    two = {"distribution": MPI(processes_per_host=2)}
    chosen = {
        name: Program({name: (examples / name).read_text()}, printed, adaptations, {**two, "arguments": arguments})
        for name, (printed, adaptations, arguments) in PROGRAMS.items()
    }
    return programs.run(folder, chosen)
