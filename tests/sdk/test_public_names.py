"""The package as it is imported: its public names, and on Linux, macOS and Windows; local jobs say what they need."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import scriptmode


def loaded(statement):
    """The modules of the package that a statement loads, in a Python of its own."""
    code = f"import sys\n{statement}\nprint(*sorted(name for name in sys.modules if name.startswith('scriptmode')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600)
    return done.stdout.split()


def test_every_name_is_the_one_of_its_home():
    for name in scriptmode.__all__:
        assert getattr(scriptmode, name).__name__ == name
        assert getattr(sys.modules[getattr(scriptmode, name).__module__], name) is getattr(scriptmode, name)
    assert set(scriptmode.__all__) <= set(dir(scriptmode))


def test_another_name_is_none_and_a_module_is_imported():
    with pytest.raises(AttributeError, match="module 'scriptmode' has no attribute 'Frobnicator'$"):
        scriptmode.Frobnicator  # noqa: B018 - to look is what is tested
    with pytest.raises(ImportError, match="cannot import name 'Frobnicator' from 'scriptmode' "):
        exec("from scriptmode import Frobnicator")
    assert set(loaded("from scriptmode._tuning import tuner; from scriptmode import errors")) > {
        "scriptmode._tuning.tuner",
        "scriptmode.errors",
    }


def test_hardly_anything_is_imported_before_the_command_handles_ctrl_c():
    code = "import sys; before = {*sys.modules}; import scriptmode.__main__; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["scriptmode", "scriptmode.__main__"]


ROOT = Path(__file__).parents[2]
#: What Linux alone has of os.
POSIX = """
    import os, sys
    import boto3, botocore.session, click, concurrent.futures, platformdirs, subprocess, tempfile

    for name in ("O_PATH", "unshare", "setns", "pidfd_open", "sched_getaffinity", "prlimit", "memfd_create"):
        if hasattr(os, name):
            delattr(os, name)
    sys.platform = sys.argv[1]
"""
SUBMIT = """
    import scriptmode, scriptmode_cli, scriptmode.testing
    from scriptmode import Estimator, SpecError, TrainingJob

    fake = scriptmode.testing.FakeSageMaker()
    arguments = dict(image_uri="img", role="arn:aws:iam::123456789012:role/r", entry_point="train.py", source_dir="code")
    job = Estimator(instance_type="ml.m5.large", sagemaker_session=fake, **arguments).fit("s3://b/x", logs=False)
    assert job.status == "Completed"
    plan = Estimator(instance_type="ml.m5.large", sagemaker_session=fake, **arguments).plan("s3://b/x")
    assert plan.hosts["algo-1"].roles == "script", plan
    assert TrainingJob.list(job.platform)[0]["TrainingJobName"] == job.name
    try:
        Estimator(instance_type="local_process", **arguments).fit()
    except SpecError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_job_is_submitted_without_anything_of_linux(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").touch()
    program = textwrap.dedent(POSIX) + textwrap.dedent(SUBMIT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, "darwin"],
        check=False, capture_output=True, text=True, timeout=600, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(text in done.stdout for text in ("jobs on this machine need Linux", "'darwin'"))


@pytest.mark.long
def test_the_types_of_macos_hold_outside_the_local_platform(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--platform", "darwin", "--cache-dir", tmp_path, "-p", "scriptmode"],
        check=False, capture_output=True, text=True, timeout=600, cwd=ROOT,
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout + done.stderr
