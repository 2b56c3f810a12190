"""The images that the installed SageMaker SDK names, and the command that installs scriptmode."""

import json
import sys
import textwrap
from types import SimpleNamespace

import pytest
from fakes.host_folders import write_files

from scriptmode._core.aws.images import look_up_image, with_rule_images
from scriptmode._core.machine.installation import install_command
from scriptmode._core.spec.training_job import Monitoring, Resources, TrainingJobSpec
from scriptmode.errors import SpecError

#: Of two Regions, one release with one Python and one with an entry for each Python.
TABLE = {
    "training": {
        "processors": ["cpu", "gpu"],
        "version_aliases": {"1.13": "1.13.1", "2.13": "2.13.0"},
        "versions": {
            "1.13.1": {
                "py2": {"registries": {"eu-west-1": "111111111111"}, "repository": "old"},
                "py3": {"registries": {"eu-west-1": "222222222222"}, "repository": "new"},
            },
            "2.13.0": {
                "py_versions": ["py310"],
                "registries": {"eu-west-1": "333333333333", "cn-north-1": "444444444444"},
                "repository": "tensorflow-training",
            },
        },
    }
}
#: A package that must not be imported, with its table.
BREAKS = "raise RuntimeError('imported')"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Give a function that installs a ``sagemaker`` package of these files."""

    def install(files):
        write_files(tmp_path / "sagemaker", {name: textwrap.dedent(text) for name, text in files.items()})

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "sagemaker"]:
            del sys.modules[name]

    forget()
    monkeypatch.syspath_prepend(tmp_path)
    yield install
    forget()


def ask(**changes):
    wanted = {
        "framework_version": "2.13", "py_version": "py310", "region": "eu-west-1",
        "instance_types": ["ml.m5.large"],
    }  # fmt: skip
    return look_up_image(**{**wanted, **changes})


VERSION_2 = {"__init__.py": BREAKS, "image_uri_config/tensorflow.json": json.dumps(TABLE)}
VERSION_3 = {"core/__init__.py": BREAKS, "core/image_uri_config/tensorflow.json": json.dumps(TABLE)}


@pytest.mark.parametrize("files", [VERSION_2, VERSION_3], ids=["version 2", "version 3"])
def test_the_table_of_the_installed_sagemaker_is_read_without_an_import(installed, files):
    installed(files)
    assert ask() == "333333333333.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:2.13-cpu-py310"
    assert ask(py_version=None) == ask()
    assert ask(region="cn-north-1").startswith("444444444444.dkr.ecr.cn-north-1.amazonaws.com.cn/")
    assert "sagemaker" not in sys.modules


WRONG = {
    "a Python": (
        {"py_version": "py27"},
        "py_version is 'py27', but AWS has no image of TensorFlow 2.13 with that Python; give 'py310'",
    ),
    "no Python": (
        {"framework_version": "2.1", "py_version": None},
        "py_version is not given, but AWS has images of TensorFlow 2.1 for several; give 'py3' or 'py36'",
    ),
    "a Region": (
        {"region": "eu-wset-1"},
        ("framework_version is '2.13', whose images AWS does not have in Region 'eu-wset-1'; did you mean 'eu-west-1'? Or "
        "give image_uri="),
    ),
    "an instance type": (
        {"instance_types": ["m5.large"]},
        "instance_type is 'm5.large'; give one such as 'ml.m5.xlarge'",
    ),
    **{
        name: (
            {"instance_types": [name]},
            (f"instance_type is {name!r}, for which AWS has no training image with TensorFlow 2.13; give another type, or "
            "image_uri="),
        )
        for name in ("ml.trn1.2xlarge", "ml.c7gn.xlarge")
    },
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_an_image_that_aws_does_not_have_is_refused_with_its_reason(installed, wrong, message):
    installed(VERSION_2)
    with pytest.raises(SpecError) as caught:
        ask(**wrong)
    assert str(caught.value) == message


def test_a_rule_of_another_class_has_aws_s_image_where_there_is_one():
    rule = {"RuleConfigurationName": "Overfit", "RuleEvaluatorImage": SimpleNamespace(name="Overfit")}
    spec = TrainingJobSpec("job", Resources(1, "ml.m5.large"), monitoring=Monitoring(debug_rules=(rule,)))
    found = with_rule_images(spec, "eu-west-1").monitoring.debug_rules[0]["RuleEvaluatorImage"]
    assert found == "929884845733.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-debugger-rules:latest"
    with pytest.raises(SpecError, match="no image of the debugger's rules in Region 'ap-east-2', and rule 'Overfit'"):
        with_rule_images(spec, "ap-east-2")


def test_the_extra_the_interpreter_and_options_are_in_the_command_that_installs():
    assert install_command("container") == "pip install 'scriptmode[container]'"
    command = install_command(python="/opt/my python/bin/python", options="--force-reinstall --no-deps")
    assert command == "'/opt/my python/bin/python' -m pip install --force-reinstall --no-deps scriptmode"


def test_code_of_the_sdk_v1_without_a_python_gets_its_default_with_a_warning():
    with pytest.warns(UserWarning, match="TensorFlow 1.13 runs with 'py2', the default of SageMaker SDK v1;") as shown:
        assert ask(framework_version="1.13", py_version=None).endswith("/sagemaker-tensorflow-scriptmode:1.13-cpu-py2")
    assert [each.filename for each in shown] == [__file__]
