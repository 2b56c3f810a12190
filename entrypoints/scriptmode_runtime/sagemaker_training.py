"""Our launcher in AWS's own images: ``SAGEMAKER_TRAINING_MODULE=scriptmode_runtime.sagemaker_training:main``.

There ``train`` is that of the installed ``sagemaker-training``. It reads the host's files and calls the function that
this variable names. What that returns or raises becomes an exit code and a failure file of the toolkit's making,
``SystemExit`` even a success. So `main` never returns: the process turns into our launcher, with the same interpreter
and the same number. Signals then reach the script, exit code and failure file are ours, and nothing stands twice in
the log.

This package must be importable in a new process of the interpreter: installed, or on ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

from scriptmode_runtime.processes.loop import STOPPING

if TYPE_CHECKING:
    from typing import NoReturn

#: Without the working folder on the path: that may be the source's, whose modules stand in for no one's.
_LAUNCH = """\
import sys
sys.path = [place for place in sys.path if place]
from scriptmode_runtime.__main__ import main
sys.exit(main([]))
"""


def main() -> NoReturn:
    """Become the launcher; raises ``OSError`` where that cannot be, which the toolkit reports."""
    # Until the launcher listens they wait: process 1 would lose them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    _stop_uploads()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, (sys.executable, "-c", _LAUNCH))  # noqa: S606 - never a shell


def _stop_uploads() -> None:
    """End the toolkit's process that copies ``output/intermediate`` to S3, which it has where no platform does that.

    It would wait for the toolkit's success file, which nobody writes any more.
    """
    from multiprocessing import active_children

    for copying in active_children():
        copying.terminate()
        copying.join()
        sys.stderr.write("scriptmode: output/intermediate is not copied to S3 while the job runs\n")
