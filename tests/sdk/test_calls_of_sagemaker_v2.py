"""Calls as users of the SageMaker SDK v2 write them: the same meaning here, or an error with the next step."""

import warnings

import pytest
from fakes.estimators import estimator


@pytest.mark.parametrize(
    ("name", "value", "category"),
    [
        ("script_mode", True, DeprecationWarning),
        ("script_mode", False, UserWarning),
        ("training_steps", 1000, UserWarning),
        ("evaluation_steps", 100, UserWarning),
        ("requirements_file", "requirements.txt", UserWarning),
        ("checkpoint_path", "s3://bucket/checkpoints", UserWarning),
        ("run_tensorboard_locally", True, UserWarning),
    ],
)
def test_an_argument_that_v2_ignores_is_warned_of_and_ignored(code, name, value, category):
    with pytest.warns(
        category, match=f"^{name}={value!r} is an argument of SageMaker SDK v1 and has no effect"
    ) as seen:
        made = estimator(code, **{name: value})
    assert [each.filename for each in seen] == [estimator.__code__.co_filename]
    assert made.request(job_name="job-1") == estimator(code).request(job_name="job-1")
    # Neither copied nor warned of again by what sets another argument.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.instance_count = 3


@pytest.mark.parametrize("name", ["training_steps", "evaluation_steps", "compiler_config"])
def test_an_argument_without_effect_may_be_none(code, name):
    assert estimator(code, **{name: None}).request(job_name="job-1") == estimator(code).request(job_name="job-1")


def test_the_training_compiler_is_refused(code):
    with pytest.raises(TypeError, match="no argument 'compiler_config' any more: AWS makes no images"):
        estimator(code, compiler_config=object())
