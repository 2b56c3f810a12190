"""The unit tests of the SageMaker SDK v2's estimators, with this project's estimators in place of its own.

What is adapted: imports, and instance types without their prefix. See ``sagemaker_v2_plugin``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.foreign_suites import pytest_runs, sources
from tests.references import environment

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "2.257.6"
REPOSITORY = "aws/sagemaker-python-sdk"
FILES = (
    "tests/unit/sagemaker/tensorflow/test_estimator_init.py",
    "tests/unit/sagemaker/tensorflow/test_estimator.py",
    "tests/unit/test_estimator.py",
)
#: What these import of the repository.
NEEDED = (
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/unit/__init__.py",
    "tests/unit/test_job.py",
    "tests/integ/__init__.py",
)
ADAPTATIONS = (
    (
        "from sagemaker.estimator import Estimator, EstimatorBase, Framework, _TrainingJob\n",
        "from sagemaker.estimator import EstimatorBase\n",
    ),
    ("from sagemaker.estimator import _TrainingJob\n", ""),
    ("from sagemaker.tensorflow import TensorFlow\n", ""),
    ("from sagemaker.tensorflow.estimator import TensorFlow\n", ""),
    (
        "\nimport pytest\n",
        "\nimport pytest\nfrom sagemaker_v2_plugin import Estimator, Framework, TensorFlow, _TrainingJob\n",
    ),
    ('TIMESTAMP = "2017-11-06-14:14:15.', 'TIMESTAMP = "2017-11-06-14-14-15-'),
    ('INSTANCE_TYPE = "c4.4xlarge"', 'INSTANCE_TYPE = "ml.c4.4xlarge"'),
)
#: Of some 60 versions of TensorFlow by which tests are parametrised, these.
VERSIONS = ("1.10.0", "1.15.2", "2.1.0", "2.11.0", "2.19.0")
FEWER = (
    'versions = list(config["versions"].keys()) + list(config.get("version_aliases", {}).keys())',
    f'versions = [each for each in config["versions"] if each in {VERSIONS}]',
)


def python() -> Path:
    """Return the interpreter of an environment with the SageMaker SDK and its tests' tools."""
    return environment(f"sagemaker=={VERSION}", "pytest>=8,<9", "mock>=4") / "python"


def run(folder: Path) -> dict[str, str | None]:
    """Run the tests in a directory; return the failure of each, None of one that passed."""
    checkout = sources.repository(REPOSITORY, f"v{VERSION}")
    texts = {name: (checkout / name).read_text(encoding="utf-8") for name in (*NEEDED, *FILES)}
    adaptations = [(re.escape(old), new) for old, new in (*ADAPTATIONS, FEWER)]
    for name, text in sources.adapt(texts, adaptations, count=1).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "tests" / "data").symlink_to(checkout / "tests" / "data")
    return pytest_runs.run(
        folder,
        "sagemaker-v2",
        *FILES,
        plugin="sagemaker_v2_plugin",
        python=python(),
        AWS_DEFAULT_REGION="us-west-2",
        HOME=str(folder),
    )
