"""Rehearsals: what faults do to a training job, found by letting them happen to it on this machine.

`scriptmode.Estimator.rehearse` runs the job once undisturbed and once for each fault, lets it recover, and returns a
`Rehearsal`.
"""

from __future__ import annotations

from scriptmode.rehearsal._faults import Fault, Interrupt, Kill, LoseHost, parse_fault
from scriptmode.rehearsal._verdict import Rehearsal, Verdict

__all__ = ["Fault", "Interrupt", "Kill", "LoseHost", "Rehearsal", "Verdict", "parse_fault"]
