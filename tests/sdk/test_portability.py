"""The SDK half is imported and submits jobs on Linux, macOS and Windows; local jobs say what they need."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What Windows does not have, beside the modules below: parts of os and signal.
POSIX = """
    import importlib.abc, os, signal, sys
    import boto3, botocore.session, click, concurrent.futures, platformdirs, subprocess, tempfile

    MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "spwd", "syslog", "termios", "tty"}

    class NotOnWindows(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name in MODULES:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, NotOnWindows())
    for name in ("fork", "getuid", "geteuid", "getgid", "killpg", "mkfifo", "setsid", "chown", "getpgid"):
        delattr(os, name)
    for name in ("SIGKILL", "SIGHUP", "SIGCHLD", "SIGUSR1", "pthread_sigmask"):
        delattr(signal, name)
    sys.platform = sys.argv[1]
"""
SUBMIT = """
    import scriptmode, scriptmode.cli, scriptmode.testing
    from scriptmode import Estimator, SpecError, TrainingJob

    fake = scriptmode.testing.FakeSageMaker()
    arguments = dict(image_uri="img", role="arn:aws:iam::123456789012:role/r", entry_point="train.py", source_dir="code")
    job = Estimator(instance_type="ml.m5.large", sagemaker_session=fake, **arguments).fit("s3://b/x", logs=False)
    assert job.status == "Completed"
    plan = Estimator(instance_type="ml.m5.large", sagemaker_session=fake, **arguments).plan("s3://b/x", against=job)
    assert plan.hosts["algo-1"].roles == "script", plan
    assert TrainingJob.list(job.platform)[0]["TrainingJobName"] == job.name
    try:
        Estimator(instance_type="local_process", **arguments).fit()
    except SpecError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_a_job_is_submitted_without_anything_of_linux(platform, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").touch()
    program = textwrap.dedent(POSIX) + textwrap.dedent(SUBMIT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, platform],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "jobs on this machine need Linux" in done.stdout
    assert repr(platform) in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_the_types_of_that_platform_hold_outside_the_local_platform(platform, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--platform", platform, "--cache-dir", tmp_path, "-p", "scriptmode"],
        check=False, capture_output=True, text=True, timeout=110, cwd=ROOT,
    )  # fmt: skip
    # The data path serves jobs of this machine: FIFOs and mounts. The same module describes and writes /opt/ml.
    linux_only = (
        str(Path("scriptmode", "platforms", "local")),
        # They run jobs by it.
        str(Path("scriptmode", "platforms", "slurm")),
        str(Path("scriptmode", "serve")),
        str(Path("scriptmode", "platforms", "opt_ml.py")),
        str(Path("scriptmode", "data")),
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    lines = [line for line in errors if not any(package in line for package in linux_only)]
    assert lines == [line for line in lines if "scriptmode_runtime" in line]
    assert "checked" in done.stdout, done.stdout + done.stderr
