"""A namespace is entered with every step, or not at all."""

import errno
import os
import subprocess
import sys

import pytest

from scriptmode_runtime._processes import namespace

#: Enters a namespace, of which one step is refused, always or only after the trial, and prints where it is then.
PROGRAM = """
import errno, os, sys
from scriptmode_runtime._processes import namespace

step, when, base = sys.argv[1:]
first, real = os.getpid(), namespace._step

def refusing(name):
    if name.startswith(step) and (when == "always" or os.getpid() == first):
        raise namespace.NamespaceError(namespace.Refusal(name, errno.EACCES, "no"))
    return real(name)

namespace._step = refusing
before = [os.readlink("/proc/self/ns/" + kind) for kind in ("user", "mnt")]
try:
    found = namespace.enter(base, "/etc/hosts")
except namespace.NamespaceError as error:
    found = error.refusal
changed = before != [os.readlink("/proc/self/ns/" + kind) for kind in ("user", "mnt")]
print(found, changed, os.geteuid(), namespace.is_base_dir(base))
"""
STEPS = ["unshare", "changing the propagation", "mounting /opt/ml"]


def entered(tmp_path, step, when):
    base = tmp_path / "base"
    base.mkdir()
    argv = (sys.executable, "-c", PROGRAM, step, when, base)
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("step", "when"), [*((step, "always") for step in STEPS), (STEPS[0], "later")])
def test_where_a_step_is_refused_the_process_stays_where_it_was(tmp_path, step, when):
    done = entered(tmp_path, step, when)
    assert done.stdout.startswith(f"EACCES at {step}"), done.stderr
    assert done.stdout.endswith(f" False {os.geteuid()} False\n")


@pytest.mark.root
@pytest.mark.parametrize("step", STEPS[1:])
def test_a_process_in_half_a_namespace_ends(tmp_path, step):
    done = entered(tmp_path, step, "later")
    assert (done.returncode, done.stdout) == (71, "")
    assert f"a namespace was refused after it was tried: EACCES at {step}" in done.stderr


@pytest.mark.root
def test_a_hosts_file_that_is_refused_does_not_prevent_its_opt_ml(tmp_path):
    done = entered(tmp_path, "mounting /etc/hosts", "always")
    assert done.stdout == f"EACCES at mounting /etc/hosts True {os.geteuid()} True\n", done.stderr


def test_a_refusal_without_a_number_has_its_reason():
    assert str(namespace.Refusal("unshare", 0, "this system is not Linux")) == "this system is not Linux at unshare"
    assert str(namespace.Refusal("unshare", errno.EPERM, "no")) == "EPERM at unshare"
