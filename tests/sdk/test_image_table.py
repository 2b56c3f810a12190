"""Where AWS's images are looked up: in this project's table, to which an installed sagemaker package adds its own."""

import importlib
import json
import sys
import types

import pytest

from scriptmode._core.aws.image_table import own_table
from scriptmode._core.aws.images import look_up_image
from scriptmode.errors import SpecError
from scriptmode.v2 import _alias as alias

NEWER = {
    "training": {
        "version_aliases": {"9.1": "9.1.0", "2.13": "2.13.0"},
        "versions": {
            "9.1.0": {
                "py_versions": ["py316"], "registries": {"eu-west-1": "111111111111"}, "repository": "tensorflow-training",
            },
            "2.13.0": {
                "py_versions": ["py310"], "registries": {"eu-west-1": "222222222222"}, "repository": "tensorflow-training",
            },
        },
    }
}  # fmt: skip
TABLE = "core/image_uri_config/tensorflow.json"
OURS = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/tensorflow-training:2.13-cpu-py310"
KNOWN = ", ".join(
    [*(f"2.{minor}" for minor in (21, 19, 18, 16, *range(14, -1, -1))), *(f"1.{minor}" for minor in range(15, 10, -1))]
)
URI = "<account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a ``sagemaker`` package with one file."""

    def install(name, text):
        path = tmp_path / "sagemaker" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        importlib.invalidate_caches()

    monkeypatch.delitem(sys.modules, "sagemaker", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return install


def look_up(version="2.13", python="py310", region="eu-west-1"):
    return look_up_image(framework_version=version, py_version=python, region=region, instance_types=["ml.m5.large"])


@pytest.mark.parametrize("name", ["x.py", "__init__.py"], ids=["a directory", "a package"])
def test_no_sagemaker_package_is_needed(install, name):
    assert look_up() == OURS
    install(name, "")
    assert look_up() == OURS


def test_an_installed_package_adds_its_images_and_prevails(install):
    install(TABLE, json.dumps(NEWER))
    assert look_up("9.1", "py316").startswith("111111111111.")
    assert look_up().startswith("222222222222.")
    assert look_up(region="us-east-1").startswith("763104351884.")
    assert look_up("2.12").startswith("763104351884.")


def test_an_installed_table_is_read_while_another_module_has_the_packages_name(install, monkeypatch):
    install(TABLE, json.dumps(NEWER))
    monkeypatch.setitem(sys.modules, "sagemaker", types.ModuleType("sagemaker"))
    assert look_up("9.1", "py316").startswith("111111111111.")
    monkeypatch.delitem(sys.modules, "sagemaker")
    alias.activate()
    try:
        uri = importlib.import_module("sagemaker.image_uris").retrieve("tensorflow", "eu-west-1", "9.1", "py316")
    finally:
        alias.deactivate()
    assert uri.startswith("111111111111.")


@pytest.mark.parametrize("text", ["", "[]", '{"training": {}}', "null"])
def test_an_installed_table_that_cannot_be_read_is_named_and_not_used(install, text):
    install(TABLE, text)
    with pytest.warns(UserWarning, match=r"tensorflow.json cannot be read \(\w+: .*; this project's own, of 2"):
        assert look_up() == OURS


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            ("2.99",),
            (
                f"'2.99', of which no training image of AWS is known; give one of {KNOWN}; for what AWS added since "
                f"{own_table().date} install sagemaker-core, or upgrade it; or name an image: image_uri={URI!r}"
            ),
        ),
        (
            ("2.13.7",),
            f"'2.13.7', of which no training image of AWS is known; give '2.13' or '2.13.0', or image_uri={URI!r}",
        ),
        (
            ("1.10", "py2"),
            (
                "'1.10', whose image runs scripts in SageMaker's legacy mode alone; give a newer one; or image_uri="
                "'520713654638.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tensorflow:1.10-cpu-py2' and model_dir=False"
            ),
        ),
    ],
    ids=["unknown", "an unknown patch", "legacy mode"],
)
def test_a_version_without_an_image_says_which_have_one_and_how_to_name_another(monkeypatch, asked, message):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    with pytest.raises(SpecError) as caught:
        look_up(*asked)
    assert str(caught.value) == f"framework_version is {message}"
