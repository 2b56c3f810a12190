"""A host whose channels are pipes."""

import os
import warnings
from functools import cache

import pytest
from pipe_dataset.pipe_host import PipeHost


@pytest.fixture
def pipe_host(tmp_path, monkeypatch, closed_after):
    """The training host that this process runs on."""
    host = closed_after(PipeHost(tmp_path / "opt ml"))
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", str(host.base))
    return host


@pytest.fixture(scope="session")
def tf():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        import tensorflow as tf
    return tf


@pytest.fixture
def dataset_of(pipe_host, tf):
    """Write an epoch into the pipe; return the dataset that reads it, which is made once for its options."""
    from scriptmode_runtime.tensorflow import PipeModeDataset

    epoch = iter(range(10_000))

    @cache
    def dataset(record_format, **options):
        return PipeModeDataset("train", record_format, timeout=60, **options)

    def write(written, record_format, **options):
        pipe_host.feed(written, first=next(epoch))
        return dataset(record_format, **options)

    return write
