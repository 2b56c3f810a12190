"""What a machine may lack: programs of Debian packages, mounts by this user."""

import os
import shutil

import pytest

from scriptmode_local._data import mounts


def require(program):
    """Return the path of a program; where it is not installed, skip the test and name the program."""
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed; as root, .ci/packages installs it")
    return path


def require_mounts():
    """Skip the test where this user cannot mount FastFile channels: in many containers /dev/fuse is root's alone."""
    if problem := mounts.mount_obstacle():
        pytest.skip(str(problem))
