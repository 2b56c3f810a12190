"""AWS's package ``sagemaker_tensorflow`` for programs that import it: the installed one, else our `PipeModeDataset`.

The directory above is the last one on the ``PYTHONPATH`` of the user's program. Python searches that before its own
packages, so an installed package is looked up here, and takes this module's place.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys


def _load_installed() -> bool:
    """Load the installed package in place of this module; return False where there is none."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    others = [path for path in sys.path if os.path.abspath(path or ".") != own]
    spec = importlib.machinery.PathFinder.find_spec(__name__, others)
    if spec is None or spec.loader is None:
        return False
    sys.modules[__name__] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return True


if not _load_installed():
    # The errors of a channel that cannot be read, which AWS's package raises when the dataset is created.
    from tensorflow.errors import OpError as PipeModeDatasetException

    from scriptmode_runtime.tensorflow.pipe_dataset import PipeModeDataset

    __all__ = ["PipeModeDataset", "PipeModeDatasetException"]
