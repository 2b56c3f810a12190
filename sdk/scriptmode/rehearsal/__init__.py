"""Rehearsals: what faults do to a training job, found by letting them happen to it on this machine.

`scriptmode.Estimator.rehearse` runs the job once undisturbed and once for each fault, lets it recover, and returns a
`Rehearsal`.
"""

from __future__ import annotations

from scriptmode.rehearsal.faults import (
    BrokenInput,
    Fault,
    Freeze,
    FullDisk,
    Interrupt,
    Kill,
    LoseHost,
    SlowHost,
    SlowInput,
    parse_faults,
    random_faults,
)
from scriptmode.rehearsal.verdict import Rehearsal, Verdict

__all__ = [
    "BrokenInput",
    "Fault",
    "Freeze",
    "FullDisk",
    "Interrupt",
    "Kill",
    "LoseHost",
    "Rehearsal",
    "SlowHost",
    "SlowInput",
    "Verdict",
    "parse_faults",
    "random_faults",
]
