"""Hosts of this machine with another TensorFlow or Python than a job names: one warning, and the job runs."""

import warnings

import pytest
from fakes.estimators import estimator

from scriptmode import SpecError
from scriptmode.containers import default_image
from scriptmode_local import LocalPlatform

#: An interpreter with TensorFlow 2.15.1, or without one, whose wrapper prints a line of its own.
PYTHON = """#!/bin/sh
echo Loading modules
case "$2" in *version_info*)
    echo scriptmode: python 3 99
    for each in {}; do echo scriptmode: tensorflow $each; done
esac
"""
COMPATIBILITY = ". A script for TensorFlow 1 finds its API in tensorflow.compat.v1: import tensorflow.compat.v1 as tf, "


@pytest.fixture
def request_of(code, tmp_path, monkeypatch):
    """A function that makes a request, on hosts that are processes of a fake interpreter, or on containers."""
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    python = tmp_path / "python9"

    def make(instance_type="local_process", tensorflow="2.15.1", **versions):
        python.write_text(PYTHON.format(tensorflow))
        python.chmod(0o755)
        platform = LocalPlatform(data_dir=tmp_path / "data", python=python)
        made = estimator(code, instance_type=instance_type, image_uri=None, platform=platform, **versions)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            request = made.request()
        return request["AlgorithmSpecification"].get("TrainingImage"), [str(each.message) for each in caught]

    return make


@pytest.mark.parametrize(
    ("versions", "warning"),
    [
        ({"framework_version": "2.15", "py_version": "py399"}, None),
        ({"framework_version": "2.15.1", "py_version": "py3"}, None),
        ({"framework_version": "2.19"}, "framework_version is '2.19', but {}, which has TensorFlow 2.15.1. platform"),
        (
            {"py_version": "py2"},
            "py_version is 'py2', but {}, which has Python 3.99. platform=LocalPlatform(python=...) selects another",
        ),
        (
            {"framework_version": "1.13", "py_version": "py37"},
            "framework_version is '1.13' and py_version is 'py37', but {}, which has TensorFlow 2.15.1 and Python 3.99"
            + COMPATIBILITY,
        ),
        (
            {"framework_version": "1.13", "tensorflow": ""},
            "framework_version is '1.13', but {}, which has no TensorFlow. platform=LocalPlatform(python=...) selects another interpreter",
        ),
    ],
    ids=["the same", "the same with a patch", "another", "another Python", "TensorFlow 1", "no TensorFlow"],
)
def test_hosts_that_are_processes_warn_of_other_versions(request_of, tmp_path, versions, warning):
    _, caught = request_of(**versions)
    expected = [] if warning is None else [warning.format(f"the hosts run with {tmp_path}/python9")]
    assert [text[: len(start)] for text, start in zip(caught, expected)] == expected
    assert len(caught) == len(expected)


@pytest.mark.parametrize(
    ("version", "python", "used"),
    [("1.13", "py2", "2.15.1"), ("2.12", "py39", "2.15.1"), ("2.18", None, "2.21.0"), ("2.15.0", None, "2.15.1"), ("9.1", None, "2.21.0")],
)  # fmt: skip
def test_containers_of_the_nearest_version_warn(request_of, version, python, used):
    image, (warning,) = request_of("local", framework_version=version, py_version=python)
    assert image == default_image(used)
    assert f"is '{version}'" in warning
    assert f"the hosts run this project's image {image}, which has TensorFlow {used}" in warning
    assert (COMPATIBILITY in warning) == version.startswith("1.")
    assert ". For another image (AWS's too) give image_uri=..." in warning


def test_containers_of_the_versions_that_a_job_names_do_not_warn(request_of):
    for versions in ({}, {"framework_version": "2.15", "py_version": "py311"}, {"framework_version": "2.21.0"}):
        assert request_of("local", **versions)[1] == []


def test_hosts_with_gpus_run_awss_image_as_in_the_sdk_v2(request_of):
    image, warned = request_of("local_gpu", framework_version="2.3", py_version="py37")
    assert image.startswith("763104351884.")
    assert image.endswith("/tensorflow-training:2.3-gpu-py37")
    assert warned == []


def test_hosts_with_gpus_for_which_aws_has_no_image_are_refused(request_of):
    with pytest.raises(
        SpecError, match="framework_version is '99', of which no training image of AWS is known; give one"
    ):
        request_of("local_gpu", framework_version="99")


def test_a_warning_is_at_the_line_that_called_the_library(code, tmp_path):
    made = estimator(
        code, instance_type="local_process", image_uri=None, platform=LocalPlatform(data_dir=tmp_path), py_version="py2"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        made.request()
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ({"framework_version": "latest"}, "framework_version is 'latest'; give a version of TensorFlow such as '2.19'"),
        ({"framework_version": ""}, "framework_version is ''; give a version of TensorFlow"),
        ({"py_version": "3.11"}, "py_version is '3.11'; give a version such as 'py311', which is Python 3.11"),
    ],
)
def test_what_is_not_a_version_is_refused(code, versions, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **versions)
