"""The SageMaker SDK v2's integration tests of training and tuning with TensorFlow, against ``scriptmode serve``.

What is adapted: the version of TensorFlow (its tests skip later ones), and a data set that is downloaded. See
``sagemaker_integ_plugin`` for more.
"""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from tests.foreign_suites import programs, pytest_runs, sources
from tests.foreign_suites.sagemaker_v2_suite import REPOSITORY, VERSION, python

from scriptmode.testing import server

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["REPOSITORY", "VERSION", "run"]
FILES = ("tests/integ/test_tf.py", "tests/integ/test_horovod.py", "tests/integ/test_tuner.py")
FOLDERS = ("tests/integ", "tests/data/tensorflow_mnist", "tests/data/horovod")
#: The last version whose tests of Horovod are not skipped.
TENSORFLOW = "2.12.0"
LATEST = (
    r'latest_version = sorted\(config\["versions"\].*',
    rf'\g<0> if "tensorflow" not in fixture_prefix else "{TENSORFLOW}"',
)
#: The tests of GPUs begin with types that the SDK refuses for this version.
GPU = (r"P2_INSTANCES = .*", 'P2_INSTANCES = ["ml.p3.2xlarge"]')


def run(folder: Path) -> dict[str, str | None]:
    """Run the tests in a directory; return the failure of each, None of one that passed."""
    checkout = sources.repository(REPOSITORY, f"v{VERSION}")
    for name in FOLDERS:
        shutil.copytree(checkout / name, folder / name)
    (folder / "tests" / "__init__.py").touch()
    _adapt(checkout / "tests" / "conftest.py", folder / "tests" / "conftest.py", *LATEST)
    utils = folder / "tests" / "integ" / "utils.py"
    _adapt(utils, utils, *GPU)
    mnist = folder / "tests" / "data" / "tensorflow_mnist"
    _adapt(mnist / "mnist_mwms.py", mnist / "mnist_mwms.py", *programs.KERAS_DATA)
    (mnist / "keras_data.py").write_text(programs.DATA.format(folder=programs.DATA_FOLDER), encoding="utf-8")
    with server() as running:
        variables = {**running.environment, "HOME": str(folder)}
        return pytest_runs.run(
            folder, "sagemaker-integ", *FILES, plugin="sagemaker_integ_plugin", python=python(), **variables
        )


def _adapt(source: Path, target: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, source.read_text(encoding="utf-8"))
    assert count, f"{source.name} does not have {pattern!r}"
    target.write_text(text, encoding="utf-8")
