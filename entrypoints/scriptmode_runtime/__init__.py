"""The runtime on each training host: reads the platform's files, runs the user's script, reports the outcome.

Public to users are the command ``train``, ``sagemaker_training:main`` and the package `tensorflow`. The contract
"primitives" of import-linter lists what the SDK uses.

PYTEST_DONT_REWRITE: a program may import this package before it runs pytest, which would warn of that otherwise.
"""

import sys

# Here, because older interpreters cannot compile the other modules. Python 2 can read this one.
if sys.version_info < (3, 9):  # noqa: UP036
    _ERROR = ImportError(
        "scriptmode needs Python 3.9 or later, and %s is Python %d.%d"  # noqa: UP031
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )
    # With its name `python -m scriptmode_runtime` ends with this line, without a traceback.
    _ERROR.name = __name__
    raise _ERROR
