"""An estimator on a recording platform, with overridable arguments."""

from fakes.platforms import RecordingPlatform

from scriptmode import Estimator

ROLE = "arn:aws:iam::123456789012:role/training"


def estimator(code, **arguments):
    defaults = {
        "entry_point": "train.py", "source_dir": code, "role": ROLE, "instance_count": 2,
        "instance_type": "ml.p3.2xlarge", "image_uri": "registry/team/tf:2.15", "platform": RecordingPlatform(),
    }  # fmt: skip
    return Estimator(**{**defaults, **arguments})
