"""The package's public names, which are loaded when they are asked for."""

import importlib
import subprocess
import sys

import pytest

import scriptmode
from scriptmode.platforms.base import DeprecatedMethods, JobFilter
from scriptmode.spec.training_job import Resources, TrainingJobSpec


def loaded(statement):
    """The modules of the package that a statement loads, in a Python of its own."""
    code = f"import sys\n{statement}\nprint(*sorted(name for name in sys.modules if name.startswith('scriptmode')))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split()


def test_the_package_alone_loads_its_errors_and_nothing_else():
    assert loaded("import scriptmode") == ["scriptmode", "scriptmode.errors"]


def test_a_name_loads_what_it_needs():
    of_mpi = loaded("from scriptmode import MPI")
    assert set(of_mpi) > {"scriptmode", "scriptmode.errors", "scriptmode.spec", "scriptmode.spec.distribution"}
    assert "scriptmode.estimator" not in of_mpi
    assert "scriptmode.estimator" in loaded("from scriptmode import Estimator")


def test_every_name_is_the_one_of_its_home():
    for name in scriptmode.__all__:
        assert getattr(scriptmode, name).__name__ == name
        assert getattr(sys.modules[getattr(scriptmode, name).__module__], name) is getattr(scriptmode, name)
    assert set(scriptmode.__all__) <= set(dir(scriptmode))


def test_all_of_them_are_there_after_a_star():
    names = {}
    exec("from scriptmode import *", names)
    assert set(scriptmode.__all__) <= set(names)


@pytest.mark.parametrize(
    ("module", "own"), [("inputs", "TrainingInput"), ("tensorflow", "TensorFlow"), ("s3", "aws.S3Uploader")]
)
def test_a_module_of_sagemaker_leads_to_its_names_here(module, own):
    with pytest.raises(
        AttributeError,
        match=f"'{module}', a module of sagemaker; use its names in scriptmode, such as scriptmode.{own}$",
    ):
        getattr(scriptmode, module)
    package, _, name = f"scriptmode.{own}".rpartition(".")
    assert hasattr(importlib.import_module(package), name)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("LocalSession", r"Session\(local_mode=True\)"),
        ("TrainingJobAnalytics", r"TrainingJob\.attach\(name\)\.analytics\(\)"),
        ("image_uris", "framework_version="),
        ("s3_input", r"scriptmode\.TrainingInput"),
    ],
)
def test_a_name_of_sagemaker_that_is_not_here_leads_to_another(name, instead):
    with pytest.raises(AttributeError, match=f"module 'scriptmode' has no attribute '{name}'; .*{instead}"):
        getattr(scriptmode, name)


def test_another_name_is_none():
    with pytest.raises(AttributeError, match="module 'scriptmode' has no attribute 'Estimater'"):
        scriptmode.Estimater  # noqa: B018 - to look is what is tested
    with pytest.raises(ImportError, match="cannot import name 'Estimater'"):
        exec("from scriptmode import Estimater")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scriptmode.platforms.LogEvent", "scriptmode.platforms.base.LogEvent"),
        ("scriptmode.platforms.get_execution_role", "scriptmode.aws.iam_role.get_execution_role"),
        ("scriptmode.spec.TrainingJobSpec", "scriptmode.spec.training_job.TrainingJobSpec"),
    ],
)
def test_a_name_that_moved_still_works_with_a_warning(old, new):
    package, _, name = old.rpartition(".")
    module, _, _ = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"{name} was moved: import it from"):
        found = getattr(importlib.import_module(package), name)
    assert found is getattr(importlib.import_module(module), name)
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'Nothing'"):
        importlib.import_module(package).Nothing  # noqa: B018 - the access is what raises


def test_the_former_name_of_a_platforms_method_still_works_with_a_warning():
    class Platform(DeprecatedMethods):
        def log_locations(self, name):
            return {"algo-1": f"/jobs/{name}/algo-1.log"}

    with pytest.warns(DeprecationWarning, match="log_places was renamed: call log_locations"):
        assert Platform().log_places("job-1") == {"algo-1": "/jobs/job-1/algo-1.log"}


def test_former_names_of_a_filter_and_a_spec_still_work_with_a_warning():
    with pytest.warns(DeprecationWarning, match="takes was renamed: call matches"):
        assert JobFilter(name_contains="b").takes({"TrainingJobName": "abc"})
    spec = TrainingJobSpec("base", Resources(1, "local_process"), ignore_config_defaults=True)
    with pytest.warns(DeprecationWarning, match="is_whole was renamed"):
        assert spec.is_whole
