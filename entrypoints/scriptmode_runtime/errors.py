"""What can go wrong before the script runs.

RuntimeFailure
    ConfigurationError   a file of the platform, a hyperparameter or a combination of them
    UserCodeError        the source, its program or its archive
    ClusterError         mpirun, a port, the other hosts

Each message names the thing, its value and the next step; it becomes the failure file as it is.
"""

from __future__ import annotations


class RuntimeFailure(Exception):  # noqa: N818 - RuntimeError is Python's
    """The root of this tree."""


class ConfigurationError(RuntimeFailure):
    """A file of the platform, a hyperparameter, or a combination of them makes no job."""


class UserCodeError(RuntimeFailure):
    """The user's source cannot be fetched, unpacked or run."""


class ClusterError(RuntimeFailure):
    """What several hosts need to train together is not there."""
