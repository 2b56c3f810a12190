"""``sagemaker_tensorflow`` as programs for AWS's images import it."""

import os
import subprocess
import sys
import textwrap

import pytest
from fakes.host_folders import write_host
from pipe_dataset.framings import tf_record

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._launch import user_code

READS = """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    from sagemaker_tensorflow import PipeModeDataset, PipeModeDatasetException
    try:
        next(iter(PipeModeDataset("absent", record_format="TFRecord")))
    except PipeModeDatasetException as error:
        print(type(error).__name__)
    print(list(PipeModeDataset(channel="train", record_format="TFRecord").repeat(2).as_numpy_iterator()))
"""
INSTALLED = """
    import sagemaker_tensorflow
    from sagemaker_tensorflow.pipemode import PipeModeDataset
    print(PipeModeDataset, sagemaker_tensorflow.PipeModeDataset, sagemaker_tensorflow.__file__)
"""


@pytest.fixture
def run(tmp_path):
    """Run a program with the variables that the launcher gives it, and packages that are installed."""
    here = environment.read(str(write_host(tmp_path / "host", sagemaker_program="train.py")), {})
    site = tmp_path / "site"

    def run(program, **files):
        for name, text in files.items():
            (site / "sagemaker_tensorflow").mkdir(parents=True, exist_ok=True)
            (site / "sagemaker_tensorflow" / f"{name}.py").write_text(text)
        # Behind the PYTHONPATH, as site-packages is.
        installs = f"import sys; sys.path.append({str(site)!r})\n"
        variables = {**os.environ, "PYTHONPATH": user_code.command(here).env["PYTHONPATH"]}
        command = [sys.executable, "-W", "ignore", "-c", installs + textwrap.dedent(program)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=variables, check=False)

    return run


@pytest.mark.tf
def test_it_is_our_dataset_where_none_is_installed(pipe_host, run):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    ran = run(READS)
    assert ran.stdout == "NotFoundError\n[b'0', b'1']\n", ran.stderr


def test_it_is_the_installed_package_where_there_is_one(run, tmp_path):
    ran = run(INSTALLED, __init__="from .pipemode import PipeModeDataset", pipemode="PipeModeDataset = 'the real one'")
    real = tmp_path / "site" / "sagemaker_tensorflow" / "__init__.py"
    assert ran.stdout == f"the real one the real one {real}\n", ran.stderr


def test_an_installed_package_that_is_broken_says_so_itself(run):
    ran = run(INSTALLED, __init__="raise ImportError('libPipeModeOp.so: undefined symbol')")
    assert ran.stderr.endswith("ImportError: libPipeModeOp.so: undefined symbol\n")
