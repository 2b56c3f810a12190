"""The table of AWS's TensorFlow images: the one that sagemaker-core has, and the URIs that v2 and v3 retrieve."""

import json
import re
import subprocess
import sys
import textwrap
from itertools import product
from pathlib import Path

import pytest

from scriptmode._core.aws import image_table
from scriptmode._core.aws.images import look_up_image
from scriptmode.errors import SpecError

ROOT = Path(__file__).parents[2]
TABLE = Path(image_table.__file__).with_name("tensorflow_images.json")
#: Prints the versions that the SDK knows, and for each row of its input the URI, or null.
THEIRS = """
    import functools, json, sys
    try:
        from sagemaker import image_uris
    except ImportError:
        from sagemaker.core import image_uris
    image_uris.config_for_framework = functools.lru_cache(None)(image_uris.config_for_framework)
    image_uris.utils._botocore_resolver = functools.lru_cache(None)(image_uris.utils._botocore_resolver)
    def retrieve(version, python, type, region):
        try:
            return image_uris.retrieve(
                "tensorflow", region, version=version, py_version=python, instance_type=type, image_scope="training"
            )
        except ValueError:
            return None
    training = image_uris.config_for_framework("tensorflow")["training"]
    known = [*training["versions"], *training["version_aliases"]]
    print(json.dumps([known, [retrieve(*row) for row in json.load(sys.stdin)]]))
"""


def ours(version, python, instance_type, region):
    """Return the URI, which for a version with legacy mode alone is in the advice, as in v2; None for no image."""
    try:
        return look_up_image(
            framework_version=version, py_version=python, region=region, instance_types=[instance_type]
        )
    except SpecError as error:
        named = re.search(r"image_uri='(\d[^']+)'", error.advice)
        return named and named[1]


@pytest.mark.slow
@pytest.mark.parametrize("sdk", ["v2", "v3"])
def test_every_image_of_the_table_is_the_one_that_the_sagemaker_sdk_retrieves(sdk, request, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sagemaker", None)
    releases = image_table.read_releases()
    images = [each for release in releases.values() for each in release.values()]
    regions = sorted({region for each in images for region in each.registries})
    types = ("ml.m5.large", "ml.p3.2xlarge")
    # Without a version of Python, these SDKs refuse what version 1 ran with Python 2.
    rows = [
        (version, *row)
        for version, pythons in releases.items()
        for row in product((*pythons, "py35", *(() if "py2" in pythons else (None,))), types, regions)
    ]
    program = textwrap.dedent(THEIRS)
    known, theirs = request.getfixturevalue(sdk).run(tmp_path, "-c", program, text=json.dumps(rows))
    compared = [(row, ours(*row), uri) for row, uri in zip(rows, theirs) if row[0] in known]
    assert [each for each in compared if each[1] != each[2]] == []
    assert sum(uri is not None for _, _, uri in compared) > 5_000


@pytest.mark.slow
def test_the_table_is_regenerated_from_the_version_that_it_names(tmp_path):
    table = json.loads(TABLE.read_text())
    package, version = table["source"].split()
    assert package == "sagemaker-core"
    command = (sys.executable, ROOT / ".ci/image_table.py", version, "--output", tmp_path / "table.json")
    subprocess.run(command, check=True, timeout=300)
    again = json.loads((tmp_path / "table.json").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", again.pop("date"))
    del table["date"]
    assert again == table
