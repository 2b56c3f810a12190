"""A namespace is entered with every step, or not at all."""

import errno
import os
import subprocess
import sys

import pytest
from fakes import plain_user

from scriptmode_runtime.processes import namespace

#: Enters a namespace, of which one step is refused, always or only after the trial, and prints where it is then.
PROGRAM = """
import errno, os, sys
from scriptmode_runtime.processes import namespace

step, when, base, read_only = sys.argv[1:]
first, real = os.getpid(), namespace._step

def refusing(name):
    if name.startswith(step) and (when == "always" or os.getpid() == first):
        raise namespace.NamespaceError(namespace.Refusal(name, errno.EACCES, "no"))
    return real(name)

namespace._step = refusing
before = [os.readlink("/proc/self/ns/" + kind) for kind in ("user", "mnt")]
try:
    found = namespace.enter(base, "/etc/hosts", (read_only,))
except namespace.NamespaceError as error:
    found = error.refusal
changed = before != [os.readlink("/proc/self/ns/" + kind) for kind in ("user", "mnt")]
print(found, changed, os.geteuid(), namespace.is_base_dir(base))
"""
STEPS = ["unshare", "changing the propagation", "mounting /opt/ml"]


def entered(tmp_path, step, when):
    base, read_only = tmp_path / "base", tmp_path / "read only"
    for folder in (base, read_only):
        folder.mkdir()
    argv = (sys.executable, "-c", PROGRAM, step, when, base, read_only)
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
@pytest.mark.parametrize(
    ("step", "found"), [("mounting /etc/hosts", "EACCES at mounting /etc/hosts"), ("write-protecting", "None")]
)
def test_what_a_host_can_do_without_does_not_prevent_its_opt_ml(tmp_path, step, found):
    done = entered(tmp_path, step, "always")
    assert done.stdout == f"{found} True {os.geteuid()} True\n", done.stderr


WITH_A_THREAD = """
import os, sys, threading
from scriptmode_runtime.processes import namespace

threading.Thread(target=threading.Event().wait, daemon=True).start()
before = os.readlink("/proc/self/ns/user")
print(namespace.make_read_only(sys.argv[1]), os.readlink("/proc/self/ns/user") == before)
"""


def test_a_plain_users_process_with_threads_cannot_make_a_directory_read_only_and_goes_on():
    with plain_user.folder_of_the_user() as home:
        assert plain_user.run(WITH_A_THREAD, str(home), home=home) == "False True\n"


def test_a_refusal_without_a_number_has_its_reason():
    assert str(namespace.Refusal("unshare", 0, "this system is not Linux")) == "this system is not Linux at unshare"
    assert str(namespace.Refusal("unshare", errno.EPERM, "no")) == "EPERM at unshare"
