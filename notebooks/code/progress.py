"""The lines in which a training program prints its progress and its speed, and how to parse them.

    epoch 1: loss=0.6231 accuracy=0.7742 steps/s=57.10 images/s=3654
    evaluation 1: accuracy=0.7810 seconds=1.37
    summary: layout=horovod trainers=2 batch_size=64 steps=390 seconds=6.83 steps/s=57.10 ...

``steps`` are applied updates of the shared model. Only time within epochs counts, without the warm-up that compiles
the step, and without saving and evaluation. In a job the summary also has ``bytes/step``: the bytes that this host's
interface received within the epochs (see ``traffic``). Needs only the standard library.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Callable

import traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

SUMMARY = "summary:"
_EVALUATION = re.compile(r"evaluation \d+: accuracy=(\S+) seconds=(\S+)")


@dataclass
class Progress:
    """Clock and printer of a training: measures and prints each epoch and the summary."""

    layout: str
    trainers: int
    batch_size: int
    #: Images in one step: batch_size, multiplied by the number of trainers if they make every step together.
    step_images: int
    clock: Callable[[], float] = time.monotonic
    write: Callable[[str], None] = field(default=lambda line: print(line, flush=True))
    received: Callable[[], int | None] = traffic.received
    steps: int = 0
    seconds: float = 0.0
    moved: int = 0
    #: Completed epochs; a resumed training starts with more than 0.
    epochs: int = 0
    _began: float = 0.0
    _received: int | None = None

    def begin_epoch(self) -> None:
        """Start the clock of the next epoch."""
        self._received = self.received()
        self._began = self.clock()

    def end_epoch(self, steps: int, *, loss: float, accuracy: float, ended: float | None = None) -> None:
        """Stop the clock, or use `ended` as the end time, and print the epoch's line.

        Loss and accuracy are means over the epoch's training batches.
        """
        seconds = (self.clock() if ended is None else ended) - self._began
        self.moved += (self.received() or 0) - (self._received or 0)
        self.epochs += 1
        self.steps += steps
        self.seconds += seconds
        rate = steps / max(seconds, 1e-9)
        figures = _render({"loss": f"{loss:.4f}", "accuracy": f"{accuracy:.4f}", **self._rates(rate)})
        self.write(f"epoch {self.epochs}: {figures}")

    def evaluated(self, accuracy: float) -> None:
        """Print the accuracy on the eval channel, with the training time in seconds."""
        self.write(f"evaluation {self.epochs}: accuracy={accuracy:.4f} seconds={self.seconds:.2f}")

    def summarize(self, accuracy: float | None = None) -> None:
        """Print the summary, with the accuracy on the eval channel if it is given."""
        figures = {
            "layout": self.layout,
            "trainers": str(self.trainers),
            "batch_size": str(self.batch_size),
            "steps": str(self.steps),
            "seconds": f"{self.seconds:.2f}",
            **self._rates(self.steps / max(self.seconds, 1e-9)),
        }
        if self._received is not None and self.steps:
            figures["bytes/step"] = f"{self.moved / self.steps:.0f}"
        if accuracy is not None:
            figures["accuracy"] = f"{accuracy:.4f}"
        self.write(f"{SUMMARY} {_render(figures)}")

    def _rates(self, rate: float) -> dict[str, str]:
        return {"steps/s": f"{rate:.2f}", "images/s": f"{rate * self.step_images:.0f}"}


def read_summary(log: str) -> dict[str, str]:
    """Parse the last summary line of a log, whatever prefix its lines have.

    Raise ``ValueError`` if the log has no summary.
    """
    lines = [line for line in log.splitlines() if SUMMARY in line]
    if not lines:
        message = f"the log has no line with {SUMMARY!r}: the training did not reach its end"
        raise ValueError(message)
    return dict(re.findall(r"(\S+)=(\S+)", lines[-1].partition(SUMMARY)[2]))


def seconds_to(accuracy: float, log: str) -> float | None:
    """Return the training time in seconds until an evaluation in the log reached `accuracy`; ``None`` if none did."""
    found = ((float(good), float(seconds)) for good, seconds in _EVALUATION.findall(log))
    return next((seconds for good, seconds in found if good >= accuracy), None)


def _render(figures: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in figures.items())
