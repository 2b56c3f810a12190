"""Checks of this machine for training jobs: what is installed, what is missing, and what to do about it.

Public are the names in ``__all__``; ``import scriptmode`` does not import this package.

* ``check_runner``: the table of all checks. `examine` runs them, each until its deadline.
* ``check``: `Check`, the result of one check, and `text`, a report of a `line` for each and a `summary`.
* ``program_checks``, ``machine_checks``, ``aws_checks``: the checks by subject.
* ``import_probe``: imports TensorFlow, Keras and Horovod in a process of its own.
"""

from scriptmode.doctor.check import Check, line, summary, text
from scriptmode.doctor.check_runner import examine, examine_each

__all__ = ["Check", "examine", "examine_each", "line", "summary", "text"]
