"""Compare parameter servers with Horovod: train the same network on the same images with both, and print the costs.

python notebooks/compare.py [--workers 1,2] [--widths 64,1024] [--epochs N] [--accuracy A] [--data FOLDER]

Every combination is one job whose hosts are processes of this machine; no other program should use the machine at the
same time. FOLDER contains the channels ``train`` and ``eval`` as TFRecord files. By default they are created from the
Fashion-MNIST subset, in color and of CIFAR's size (code/colour_images.py). MB/step is the traffic of the loopback
interface in the epochs, of all hosts together. Horovod's ranks use TCP, as between machines, instead of shared
memory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode import MPI, Estimator, ParameterServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).resolve().parent
CODE = HERE / "code"
sys.path.insert(0, str(CODE))

import colour_images  # noqa: E402 - beside the training programs
from program_arguments import channels, count, counts, run, share  # noqa: E402 - beside this file
from progress import read_summary, seconds_to  # noqa: E402

#: By default ranks of one machine exchange data in shared memory, which no network interface counts.
OVER_TCP = "--mca btl self,tcp --mca btl_tcp_if_include lo"
PARAMETER_SERVERS, HOROVOD = "parameter servers", "Horovod"
LAYOUTS: dict[str, dict[str, Any]] = {
    PARAMETER_SERVERS: {"entry_point": "train_ps.py", "distribution": ParameterServer(coordinator=True)},
    HOROVOD: {
        "entry_point": "train_hvd.py",
        "distribution": MPI(processes_per_host=1, custom_mpi_options=OVER_TCP),
    },
}


@dataclass(frozen=True)
class Sizes:
    """The combinations: each layout with each number of workers and each width of the network."""

    workers: tuple[int, ...] = (1, 2)
    #: Units of the dense layer, which has most of the parameters.
    widths: tuple[int, ...] = (64, 1024)
    #: Number of epochs; each ends with an evaluation.
    epochs: int = 12
    #: Images in an epoch, for all workers together.
    images: int = 5000
    batch_size: int = 64
    #: The accuracy to measure the training time for.
    accuracy: float = 0.7


@dataclass(frozen=True)
class Row:
    """The results of one job."""

    layout: str
    workers: int
    width: int
    images_per_second: float
    #: Updates of the shared model: each uses one batch with parameter servers, and one batch of each rank with Horovod.
    steps: int
    step_bytes: float
    #: Training time until the model reached the accuracy; ``None`` if it did not.
    seconds: float | None
    accuracy: float

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        return (
            self.layout,
            str(self.workers),
            str(self.width),
            f"{self.images_per_second:,.0f}",
            "-" if self.seconds is None else f"{self.seconds:.1f}",
            f"{self.step_bytes / 1e6:.2f}",
            f"{self.accuracy:.4f}",
        )


HEAD = ("layout", "workers", "width", "images/s", "s to accuracy", "MB/step", "accuracy at the end")


def compare(data: str | Path, sizes: Sizes, report: Callable[[Row], None] = lambda _: None) -> list[Row]:
    """Run one job after another on the channels of a directory; call `report` with each row."""
    rows = []
    for row in _measure(Path(data).resolve(), sizes):
        report(row)
        rows.append(row)
    return rows


def _measure(data: Path, sizes: Sizes) -> Iterator[Row]:
    for width in sizes.widths:
        for workers in sizes.workers:
            for layout in LAYOUTS:
                yield measure(layout, workers, width, data=data, sizes=sizes)


def measure(layout: str, workers: int, width: int, *, data: Path, sizes: Sizes) -> Row:
    """Run one job and parse its summary."""
    estimator = Estimator(
        source_dir=str(CODE),
        instance_type="local_process",
        instance_count=workers,
        base_job_name="comparison",
        hyperparameters={
            "width": width,
            "epochs": sizes.epochs,
            "evaluate-every": 1,
            "batch-size": sizes.batch_size,
            "steps-per-epoch": max(1, sizes.images // sizes.batch_size // workers),
        },
        environment={"TF_CPP_MIN_LOG_LEVEL": "2"},  # show only errors of TensorFlow
        max_run=3600,
        **LAYOUTS[layout],
    )
    job = estimator.fit({channel: (data / channel).as_uri() for channel in ("train", "eval")}, logs=False)
    log = "\n".join(event.message for event in job.logs())
    summary = read_summary(log)
    return Row(
        layout,
        workers,
        width,
        float(summary["images/s"]),
        int(summary["steps"]),
        float(summary["bytes/step"]),
        seconds_to(sizes.accuracy, log),
        float(summary["accuracy"]),
    )


def table(rows: Sequence[Row]) -> str:
    """Render the rows as a table, with columns as wide as their widest cell."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines)


def panels(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return the data of ``pictures.draw_bars``: a panel for each quantity, a group for each network and cluster."""
    found: dict[str, dict[str, dict[str, float | None]]] = {}
    for row in rows:
        case = f"width {row.width}\n{row.workers} worker{'s' if row.workers > 1 else ''}"
        quantities = {
            "images/s": row.images_per_second,
            "seconds to the accuracy": row.seconds,
            "MB a step": row.step_bytes / 1e6,
        }
        for quantity, value in quantities.items():
            found.setdefault(quantity, {}).setdefault(case, {})[row.layout] = value
    return found


def parse() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    sizes = Sizes()
    add = parser.add_argument
    add("--workers", type=counts, default=sizes.workers, help="numbers of workers, separated by commas")
    add("--widths", type=counts, default=sizes.widths, help="numbers of units of the dense layer, separated by commas")
    add("--epochs", type=count, default=sizes.epochs)
    add("--images", type=count, default=sizes.images, help="images in an epoch, for all workers together")
    add("--accuracy", type=share, default=sizes.accuracy, help="the accuracy to measure the training time for")
    add(
        "--data",
        type=channels,
        help="directory with train and eval; default: Fashion-MNIST in color, created for this run",
    )
    return parser.parse_args()


def main() -> int:
    """Run every combination and print the table."""
    arguments = parse()
    sizes = Sizes(
        workers=arguments.workers,
        widths=arguments.widths,
        epochs=arguments.epochs,
        images=arguments.images,
        accuracy=arguments.accuracy,
    )
    with tempfile.TemporaryDirectory(prefix="coloured-") as folder:
        data = arguments.data or Path(folder)
        if arguments.data is None:
            colour_images.write(HERE / "data" / "fashion_mnist", data)
        rows = compare(data, sizes, report=lambda row: print(f"{' '.join(row.cells())}", file=sys.stderr, flush=True))
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
