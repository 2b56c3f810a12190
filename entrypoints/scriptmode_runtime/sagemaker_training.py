"""Our launcher in AWS's own images: ``SAGEMAKER_TRAINING_MODULE=scriptmode_runtime.sagemaker_training:main``.

In these images ``train`` is the command of the installed ``sagemaker-training``. It reads the host's files and calls
the function that this variable names. The toolkit turns what the function returns or raises into an exit code and a
failure file of its own, and treats ``SystemExit`` as a success. So `main` never returns: it replaces the process with
our launcher, with the same interpreter and the same process id. Signals then reach the script, exit code and failure
file are ours, and no line is logged twice.

This package must be importable in a new process of the interpreter: installed, or on ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from scriptmode_runtime._processes.loop import HANDLED

#: Without the working directory on the path: it may be the source's, whose modules would hide those of the runtime.
_LAUNCH = """\
import sys
sys.path = [path for path in sys.path if path]
from scriptmode_runtime.__main__ import main
sys.exit(main())
"""


def main() -> NoReturn:
    """Replace this process with the launcher; raises ``OSError`` on failure, which the toolkit reports."""
    # They stay pending until the launcher handles them: process 1 would lose them.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    _stop_uploads()
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, (sys.executable, "-c", _LAUNCH))  # noqa: S606 - never a shell


def _stop_uploads() -> None:
    """Stop the toolkit's process that uploads ``output/intermediate`` to S3; our launcher starts one of its own.

    It would wait for the toolkit's success file, which is not written any more.
    """
    from multiprocessing import active_children

    for upload in active_children():
        upload.terminate()
        upload.join()
