import json
import logging
import os
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scriptmode.aws.images import debugger_rule_image, look_up_image
from scriptmode.errors import SpecError
from scriptmode.installation import install_command

ROOT = Path(__file__).parents[2]
#: Answers with what it was asked, as a URI; knows one version and one Region.
IMAGE_URIS = """
    def retrieve(framework, *, region, version, py_version, instance_type, image_scope):
        if version != "2.13":
            raise ValueError(f"Unsupported tensorflow version: {version}. Supported tensorflow version(s): 2.13.")
        if region == "nowhere-1":
            raise TypeError("'NoneType' object is not subscriptable")
        return f"{region}/{framework}-{image_scope}:{version}-{instance_type}-{py_version}"
"""
#: As version 2 does it: it announces itself, and takes the exception hook.
TALKATIVE = """
    import logging, sys, warnings
    warnings.warn("the old version", DeprecationWarning)
    warnings.warn("pydantic's field shadows another", UserWarning)
    logging.getLogger("sagemaker.deprecations").warning("the old version")
    logging.getLogger("sagemaker.config").setLevel(logging.INFO)
    logging.getLogger("sagemaker.config").info("no config file")
    sys.excepthook = lambda *_: None
"""


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


VERSION_2 = {"__init__.py": "", "image_uris.py": IMAGE_URIS}
VERSION_3 = {"__init__.py": "", "core/__init__.py": "", "core/image_uris.py": IMAGE_URIS}


@pytest.mark.parametrize("files", [VERSION_2, VERSION_3], ids=["version 2", "version 3"])
def test_the_installed_sagemaker_is_asked(installed, files):
    installed(files)
    assert ask() == "eu-west-1/tensorflow-training:2.13-ml.m5.large-py310"
    assert ask(py_version=None) == "eu-west-1/tensorflow-training:2.13-ml.m5.large-None"


@pytest.mark.parametrize(
    ("types", "deciding"),
    [
        (["ml.m5.large"], "ml.m5.large"),
        (["local_gpu"], "local_gpu"),
        (["ml.m5.large", "ml.c5.large"], "ml.m5.large"),
        (["ml.m5.large", "ml.p3.2xlarge"], "ml.p3.2xlarge"),
        (["ml.m5.large", "ml.g5.2xlarge", "ml.p3.2xlarge"], "ml.g5.2xlarge"),
        (["ml.c5.large", "ml_p4d"], "ml_p4d"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else "",
)
def test_a_gpu_among_the_instance_types_decides(installed, types, deciding):
    installed(VERSION_2)
    assert f"-{deciding}-" in ask(instance_types=types)


def test_what_sagemaker_does_not_know_is_an_error_with_its_words(installed):
    installed(VERSION_2)
    with pytest.raises(SpecError) as caught:
        ask(framework_version="2.99")
    assert str(caught.value) == (
        "no image is known for framework_version '2.99', py_version 'py310', instance type 'ml.m5.large' in Region "
        "'eu-west-1': Unsupported tensorflow version: 2.99. Supported tensorflow version(s): 2.13; correct them, or give "
        "image_uri="
    )
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_look_up_that_breaks_is_an_error_of_ours(installed):
    installed(VERSION_2)
    with pytest.raises(SpecError, match="in Region 'nowhere-1': TypeError: 'NoneType' object") as caught:
        ask(region="nowhere-1")
    assert isinstance(caught.value.__cause__, TypeError)


def test_without_sagemaker_both_ways_out_are_named(installed, monkeypatch):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    with pytest.raises(SpecError) as caught:
        ask()
    assert str(caught.value) == (
        "framework_version '2.13' needs the sagemaker package, which knows AWS's images; give image_uri=, or "
        + install_command("sagemaker")
    )


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {**VERSION_2, "__init__.py": "import no_such_module"},
            "ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ({**VERSION_2, "image_uris.py": "from sagemaker import gone"}, "ImportError: cannot import name 'gone'"),
        ({**VERSION_2, "__init__.py": "None.attribute"}, "AttributeError: 'NoneType' object"),
        ({**VERSION_3, "core/__init__.py": "import no_such_module"}, "ModuleNotFoundError: No module named 'no_such_"),
    ],
    ids=["a part is missing", "a name is missing", "it breaks", "version 3"],
)
def test_a_broken_sagemaker_differs_from_a_missing_one(installed, files, message):
    installed(files)
    with pytest.raises(SpecError, match="which is installed but cannot be imported: ") as caught:
        ask()
    assert message in str(caught.value)
    assert "give image_uri=, or repair it" in str(caught.value)


def test_another_package_of_that_name_is_named_by_its_place(installed, tmp_path):
    installed({"train.py": ""})
    with pytest.raises(SpecError, match="in version 2 or 3, but 'sagemaker' is .*, which is neither; give image_uri="):
        ask()


def test_the_import_disturbs_nothing(installed, caplog, monkeypatch):
    installed({**VERSION_2, "__init__.py": TALKATIVE})
    caplog.set_level(logging.INFO)
    before = sys.excepthook
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    assert (caught, caplog.records) == ([], [])
    assert sys.excepthook is before
    logging.getLogger("sagemaker.config").info("read s3://b/config.yaml")
    assert caplog.messages == ["read s3://b/config.yaml"]


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
    installed({**VERSION_2, "debugger.py": DEBUGGER})
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
    (version, python, region, types)
    for version in (*(f"2.{minor}" for minor in range(10, 21)), "2.12.0", "2.14.1")
    for python in ("py39", "py310", "py312")
    for region in ("eu-west-1", "cn-north-1", "us-gov-west-1", "ap-east-2", "nowhere-1")
    for types in (["ml.m5.large"], ["ml.p4d.24xlarge"], ["ml.m5.large", "ml.g5.xlarge"], ["ml.p2.xlarge"])
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
    from sagemaker.instance_group import InstanceGroup
    from sagemaker.tensorflow import TensorFlow
    logging.disable(logging.CRITICAL)
    class Session:
        local_mode, sagemaker_config, settings, default_bucket_prefix = False, {}, None, None
        def __init__(self, region):
            self.boto_region_name = region
    def answer(version, python, region, types):
        one = {"instance_type": types[0], "instance_count": 1}
        groups = {"instance_groups": [InstanceGroup(str(i), each, 1) for i, each in enumerate(types)]}
        estimator = TensorFlow(
            entry_point="x.py", framework_version=version, py_version=python, role="arn:aws:iam::123456789012:role/r",
            sagemaker_session=Session(region), **(groups if len(types) > 1 else one)
        )
        try:
            return estimator.training_image_uri()
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
