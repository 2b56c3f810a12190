"""Errors before the script runs.

RuntimeFailure
    ConfigurationError   a file of the platform, a hyperparameter or a combination of them
    UserCodeError        the source, its program or its archive
    ClusterError         mpirun, a port, the other hosts

Each message names the thing, its value and the next step; it becomes the failure file as it is.
"""

from __future__ import annotations


class RuntimeFailure(Exception):  # noqa: N818 - RuntimeError is Python's
    """The base class of the runtime's errors."""


class ConfigurationError(RuntimeFailure):
    """A file of the platform, a hyperparameter, or a combination of them is not valid."""


class UserCodeError(RuntimeFailure):
    """The user's source cannot be downloaded, unpacked or run."""


class ClusterError(RuntimeFailure):
    """Something that several hosts need to train together is missing."""
