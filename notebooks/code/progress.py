"""The lines by which a training program tells how far and how fast it is, and how to read them.

    epoch 1: loss=0.6231 accuracy=0.7742 steps/s=57.10 images/s=3654
    evaluation 1: accuracy=0.7810 seconds=1.37
    summary: layout=horovod trainers=2 batch_size=64 steps=390 seconds=6.83 steps/s=57.10 ...

``steps`` are applied updates of the shared model. Only time within epochs counts: neither the
warm-up that compiles the step, nor saving and scoring. In a job the summary has ``bytes/step`` too: what
this host's interface received within the epochs (see ``traffic``). Needs the standard library only.
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
    """Clock and voice of a training: announce each epoch, then the whole."""

    layout: str
    trainers: int
    batch_size: int
    #: Images that one step takes: batch_size, times the trainers where they step together.
    step_images: int
    clock: Callable[[], float] = time.monotonic
    write: Callable[[str], None] = field(default=lambda line: print(line, flush=True))
    received: Callable[[], int | None] = traffic.received
    steps: int = 0
    seconds: float = 0.0
    moved: int = 0
    #: Epochs that ended so far; a resumed training starts from more than 0.
    epochs: int = 0
    _began: float = 0.0
    _received: int | None = None

    def begin_epoch(self) -> None:
        """Start the clock of the next epoch."""
        self._received = self.received()
        self._began = self.clock()

    def end_epoch(self, steps: int, *, loss: float, accuracy: float, ended: float | None = None) -> None:
        """Stop the clock, or take `ended` from it, and write the epoch's line.

        Loss and accuracy are means over the epoch's training batches.
        """
        seconds = (self.clock() if ended is None else ended) - self._began
        self.moved += (self.received() or 0) - (self._received or 0)
        self.epochs += 1
        self.steps += steps
        self.seconds += seconds
        rate = steps / max(seconds, 1e-9)
        figures = _spell({"loss": f"{loss:.4f}", "accuracy": f"{accuracy:.4f}", **self._rates(rate)})
        self.write(f"epoch {self.epochs}: {figures}")

    def evaluated(self, accuracy: float) -> None:
        """Write the accuracy on the eval channel, with the seconds of training that it took."""
        self.write(f"evaluation {self.epochs}: accuracy={accuracy:.4f} seconds={self.seconds:.2f}")

    def summarize(self, accuracy: float | None = None) -> None:
        """Write the last line, with the accuracy on the eval channel when there was one."""
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
        self.write(f"{SUMMARY} {_spell(figures)}")

    def _rates(self, rate: float) -> dict[str, str]:
        return {"steps/s": f"{rate:.2f}", "images/s": f"{rate * self.step_images:.0f}"}


def read_summary(log: str) -> dict[str, str]:
    """Give the figures of the last summary line in a log, whatever its lines are prefixed with.

    Raises ``ValueError`` when the log has none.
    """
    lines = [line for line in log.splitlines() if SUMMARY in line]
    if not lines:
        message = f"the log has no line with {SUMMARY!r}: the training did not reach its end"
        raise ValueError(message)
    return dict(re.findall(r"(\S+)=(\S+)", lines[-1].partition(SUMMARY)[2]))


def seconds_to(accuracy: float, log: str) -> float | None:
    """Give the seconds of training after which an evaluation in the log was at least so good; ``None``: none was."""
    found = ((float(good), float(seconds)) for good, seconds in _EVALUATION.findall(log))
    return next((seconds for good, seconds in found if good >= accuracy), None)


def _spell(figures: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in figures.items())
