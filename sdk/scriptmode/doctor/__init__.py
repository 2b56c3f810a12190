"""Checks of this machine for training jobs: what is installed, what is missing, and what to do about it.

Public are the names in ``__all__``; ``import scriptmode`` does not import this package.

* ``check_runner``: the table of all checks. `examine` runs its rows at the same time, each until its deadline.
* ``check``: `Check`, the result of one check, and `text`, a report.
* ``program_checks``, ``machine_checks``, ``aws_checks``: the checks by subject.
* ``program_runner``: runs a program with a deadline, so that a broken one does not end this process.
* ``import_probe``: imports TensorFlow, Keras and Horovod in a process of its own.
"""

from scriptmode.doctor.check import Check, text
from scriptmode.doctor.check_runner import examine

__all__ = ["Check", "examine", "text"]
