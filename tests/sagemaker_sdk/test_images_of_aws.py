"""The URIs that scriptmode looks up beside an installed SageMaker SDK, v2 and v3, against v2's own."""

import json
import textwrap
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]

#: Every row: framework version, Python, Region, instance types.
MATRIX = [
    *product(
        (*(f"2.{minor}" for minor in range(10, 21)), "2.12.0", "2.14.1"),
        ("py39", "py310", "py312"),
        ("eu-west-1", "cn-north-1", "nowhere-1"),
        (["ml.m5.large"], ["ml.p4d.24xlarge"], ["ml.m5.large", "ml.g5.xlarge"], ["ml.p2.xlarge"]),
    ),
    # Without a version of Python, v2 refuses what v1 ran with Python 2.
    *product(
        ("1.12", "1.13", "1.15", "1.15.4", "2.0.1"),
        ("py2", "py3", "py37"),
        ("us-west-2",),
        (["ml.c5.large"], ["ml.p4d.24xlarge"]),
    ),
    *product(
        ("2.3", "2.3.0", "2.3.1", "2.4.3"),
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
    from scriptmode.core.aws.images import look_up_image
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


@pytest.mark.long
def test_images_are_those_that_the_sagemaker_sdk_chooses(v2, v3, tmp_path):
    def answers(sdk, program):
        return sdk.run(tmp_path, "-c", textwrap.dedent(program) + textwrap.dedent(MAIN), text=json.dumps(MATRIX))

    with ThreadPoolExecutor(2) as pool:
        theirs, by_version_2, by_version_3 = pool.map(answers, (v2, v2, v3), (THEIRS, OURS, OURS))
    assert sum(uri is not None for uri in theirs) > 100
    assert sum(uri is None for uri in theirs) > 100
    assert by_version_2 == theirs
    assert by_version_3 == theirs
