"""The arguments of a `PipeModeDataset`."""

from __future__ import annotations

import re
from dataclasses import dataclass

RECORD_FORMATS = ("RecordIO", "TFRecord", "TextLine")


@dataclass(frozen=True)
class PipeSettings:
    """The arguments; a directory "" is that of the host where the dataset runs, without batches ``batch_size`` is 0."""

    channel: str
    record_format: str
    state_dir: str
    pipe_dir: str
    config_dir: str
    benchmark: bool
    benchmark_records_interval: int
    max_corrupted_records_to_skip: int
    batch_size: int
    timeout: float

    def check(self) -> None:
        """Raise ``ValueError`` for the first invalid argument."""
        # SageMaker's API reference, Channel.
        if not re.fullmatch(r"[A-Za-z0-9.\-_]+", self.channel):
            raise ValueError(
                f"channel {self.channel!r} is not a name of a channel; use letters, digits, '.', '-' and '_'"
            )
        if self.record_format not in RECORD_FORMATS:
            raise ValueError(f"record_format {self.record_format!r} is none of {', '.join(map(repr, RECORD_FORMATS))}")
        for name in ("batch_size", "benchmark_records_interval", "max_corrupted_records_to_skip"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it cannot be negative")
        if not self.timeout > 0:
            raise ValueError(f"timeout is {self.timeout}; it is a number of seconds above 0")
