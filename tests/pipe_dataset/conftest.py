"""A host whose channels are pipes."""

import os
import warnings

import pytest
from pipe_dataset.pipe_host import PipeHost


@pytest.fixture
def pipe_host(tmp_path, monkeypatch):
    """The training host that this process runs on."""

    host = PipeHost(tmp_path / "opt ml")
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(host.base))
    yield host
    host.close()


@pytest.fixture(scope="session")
def tf():
    """TensorFlow, imported once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf
    return tf
