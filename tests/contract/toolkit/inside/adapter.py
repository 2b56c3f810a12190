"""AWS's TensorFlow adapter as a framework module, on a machine without TensorFlow.

The adapter imports it at the top, and uses it for parameter servers alone, which need several hosts.
"""

import sys
from types import ModuleType


def main():
    sys.modules["tensorflow"] = ModuleType("tensorflow")
    from sagemaker_tensorflow_container import training

    training.main()
