import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import pytest

from scriptmode.aws.images import debugger_rule_image, look_up_image
from scriptmode.errors import SpecError
from scriptmode.installation import install_command

ROOT = Path(__file__).parents[2]
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
        for name, text in files.items():
            path = tmp_path / "sagemaker" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))

    def forget():
        for name in [name for name in sys.modules if name.partition(".")[0] == "sagemaker"]:
            del sys.modules[name]

    forget()
    monkeypatch.syspath_prepend(tmp_path)
    yield install
    forget()


def ask(**changes):
    wanted = {
        "framework_version": "2.13",
        "py_version": "py310",
        "region": "eu-west-1",
        "instance_types": ["ml.m5.large"],
    }
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


def test_each_python_of_a_release_may_have_a_repository_of_its_own(installed):
    installed(VERSION_2)
    asked = {"framework_version": "1.13", "region": "eu-west-1"}
    assert ask(**asked, py_version="py2").endswith("/old:1.13-cpu-py2")
    assert ask(**asked, py_version="py3").startswith("222222222222.")


@pytest.mark.parametrize(
    ("types", "processor"),
    [
        (["ml.m5.large"], "cpu"),
        (["local"], "cpu"),
        (["local_gpu"], "gpu"),
        (["ml.m5.large", "ml.c5.large"], "cpu"),
        (["ml.m5.large", "ml.p3.2xlarge"], "gpu"),
        (["ml.c5.large", "ml_p4d"], "gpu"),
        (["ml.m7i-flex.large"], "cpu"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_a_gpu_among_the_instance_types_decides(installed, types, processor):
    installed(VERSION_2)
    assert f":2.13-{processor}-" in ask(instance_types=types)


WRONG = {
    "a version": (
        {"framework_version": "2.99"},
        ("framework_version is '2.99', which is not among AWS's training images in the installed sagemaker package; give one "
        "of them (2.13, 1.13), upgrade the package, or give image_uri="),
    ),
    "a Python": (
        {"py_version": "py27"},
        "py_version is 'py27', but AWS has no image of TensorFlow 2.13 with that Python; give 'py310'",
    ),
    "no Python": (
        {"framework_version": "1.13", "py_version": None},
        "py_version is not given, but AWS has images of TensorFlow 1.13 for several; give 'py2' or 'py3'",
    ),
    "a Region": (
        {"region": "eu-west-9"},
        ("framework_version is '2.13', whose images AWS does not have in Region 'eu-west-9'; did you mean 'eu-west-1'? Or "
        "give image_uri="),
    ),
    "a Region unlike any": (
        {"region": "nowhere"},
        "framework_version is '2.13', whose images AWS does not have in Region 'nowhere'; give image_uri=",
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
        for name in ("ml.trn1.2xlarge", "ml.inf2.xlarge", "ml.c7gn.xlarge", "ml.p2.xlarge")
    },
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_an_image_that_aws_does_not_have_is_refused_with_its_reason(installed, wrong, message):
    installed(VERSION_2)
    with pytest.raises(SpecError) as caught:
        ask(**wrong)
    assert str(caught.value) == message


def test_without_sagemaker_both_ways_out_are_named(installed, monkeypatch):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    with pytest.raises(SpecError) as caught:
        ask()
    assert str(caught.value) == (
        "framework_version '2.13' needs the sagemaker package, which knows AWS's images; give image_uri=, or "
        + install_command("sagemaker")
    )


@pytest.mark.parametrize("text", ["", "[]", '{"training": {}}', "null"])
def test_a_damaged_table_is_named(installed, text):
    installed({**VERSION_2, "image_uri_config/tensorflow.json": text})
    with pytest.raises(
        SpecError, match="table of AWS's images cannot be read: .*tensorflow.json: .*give image_uri=, or"
    ):
        ask()


@pytest.mark.parametrize("files", [{"train.py": ""}, {"__init__.py": ""}], ids=["a directory", "a package"])
def test_another_package_of_that_name_is_named_by_its_place(installed, files):
    installed(files)
    with pytest.raises(SpecError, match="in version 2 or 3, but 'sagemaker' in .* is neither; give image_uri="):
        ask()


DEBUGGER = """
    def get_rule_container_image_uri(name, region):
        if region == "nowhere-1":
            raise ValueError("Unsupported region: nowhere-1.")
        return f"{region}/rules-for-{name}"

    class RuleBase:
        name = "LossNotDecreasing"
        image_uri = "DEFAULT_RULE_EVALUATOR_IMAGE"
"""


@pytest.fixture
def rule_class(installed):
    installed({"__init__.py": "", "debugger.py": DEBUGGER})
    from sagemaker.debugger import RuleBase

    return RuleBase


def test_a_rule_without_an_image_gets_aws_s(rule_class):
    class MyRule(rule_class):
        pass

    assert debugger_rule_image(rule_class(), "eu-west-1") == "eu-west-1/rules-for-LossNotDecreasing"
    assert debugger_rule_image(MyRule(), "eu-west-1") == "eu-west-1/rules-for-LossNotDecreasing"


def test_a_rule_keeps_an_image_of_its_own(rule_class):
    rule = rule_class()
    rule.image_uri = "mine:1"
    assert debugger_rule_image(rule, "nowhere-1") == "mine:1"


def test_a_region_without_a_rule_image_is_an_error(rule_class):
    with pytest.raises(
        SpecError, match="debugger rule 'LossNotDecreasing' in Region 'nowhere-1': Unsupported region: n"
    ):
        debugger_rule_image(rule_class(), "nowhere-1")


def test_a_rule_of_an_unknown_class_is_an_error():
    class Rule:
        image_uri = "DEFAULT_RULE_EVALUATOR_IMAGE"

    with pytest.raises(
        SpecError, match="names no image, and its class .*Rule is not the SageMaker SDK's; make it with"
    ):
        debugger_rule_image(Rule(), "eu-west-1")


#: Every row: framework version, Python, Region, instance types.
MATRIX = [
    *product(
        (*(f"2.{minor}" for minor in range(10, 21)), "2.12.0", "2.14.1"),
        ("py39", "py310", "py312"),
        ("eu-west-1", "cn-north-1", "nowhere-1"),
        (["ml.m5.large"], ["ml.p4d.24xlarge"], ["ml.m5.large", "ml.g5.xlarge"], ["ml.p2.xlarge"]),
    ),
    *product(
        ("1.5", "1.12", "1.13", "1.15", "1.15.4", "2.0.1", "2.3", "2.3.0", "2.3.1", "2.4.3"),
        ("py2", "py3", "py37", None),
        ("us-west-2",),
        (["ml.c5.large"], ["ml.p4d.24xlarge"]),
    ),
    *product(
        ("2.13",),
        ("py310", None),
        ("ap-east-2", "ca-west-1", "il-central-1", "us-gov-east-1", "us-iso-east-1", "us-isob-east-1"),
        (["ml.m5.large"], ["ml.trn1.2xlarge"], ["ml_p3"], ["local"], ["local_gpu"]),
    ),
]
#: The URI for each row, or None.
OURS = """
    from scriptmode.aws.images import look_up_image
    from scriptmode.errors import SpecError
    def answer(version, python, region, types):
        try:
            return look_up_image(framework_version=version, py_version=python, region=region, instance_types=types)
        except SpecError:
            return None
"""
THEIRS = """
    import logging
    from sagemaker import image_uris
    from sagemaker.instance_group import InstanceGroup
    from sagemaker.tensorflow import TensorFlow
    logging.disable(logging.CRITICAL)
    class Session:
        local_mode, sagemaker_config, settings, default_bucket_prefix = False, {}, None, None
        def __init__(self, region):
            self.boto_region_name = region
    def image(version, python, region, types):
        if len(types) == 1:
            asked = {"version": version, "py_version": python, "instance_type": types[0], "image_scope": "training"}
            return image_uris.retrieve("tensorflow", region, **asked)
        return TensorFlow(
            entry_point="x.py", framework_version=version, py_version=python, role="arn:aws:iam::123456789012:role/r",
            sagemaker_session=Session(region),
            instance_groups=[InstanceGroup(str(i), each, 1) for i, each in enumerate(types)],
        ).training_image_uri()
    def answer(*row):
        try:
            return image(*row)
        except ValueError:
            return None
"""
MAIN = """
    import json, sys
    print(json.dumps([answer(*row) for row in json.load(sys.stdin)]))
"""


def answers(python, program, folder):
    """Ask a program for the whole matrix, in an environment without AWS settings."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "sdk"), str(ROOT / "entrypoints")]),
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAGEMAKER_SUPPRESS_V2_WARNING": "1" if program is THEIRS else "",
    }
    command = [str(python), "-c", textwrap.dedent(program) + textwrap.dedent(MAIN)]
    process = subprocess.run(
        command, input=json.dumps(MATRIX), env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert program is THEIRS or process.stderr == ""
    lines = process.stdout.splitlines()
    assert program is THEIRS or len(lines) == 1
    return json.loads(lines[-1])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_images_are_those_that_the_sagemaker_sdk_chooses(tmp_path):
    from references import environment

    version_2, version_3 = environment("sagemaker<3"), environment("sagemaker-core>=2,<3")
    asked = [(version_2, THEIRS), (version_2, OURS), (version_3, OURS)]
    with ThreadPoolExecutor(2) as pool:
        theirs, by_version_2, by_version_3 = pool.map(lambda one: answers(one[0] / "python", one[1], tmp_path), asked)
    assert sum(uri is not None for uri in theirs) > 100
    assert sum(uri is None for uri in theirs) > 100
    assert by_version_2 == theirs
    assert by_version_3 == theirs
