"""Directories of another user, which this one may not search: where programs look, nothing is there."""

import json

from fakes import plain_user

PROGRAM = """
import json, os, sys
from types import SimpleNamespace
from scriptmode._core.aws.signed_requests import environment_settings
from scriptmode._core.handle.log_lines import describe_model
from scriptmode._core.machine.entry_points import find_entry_point
hidden = sys.argv[1]
sys.path.insert(0, f"{hidden}/lib")
os.environ.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="us-east-1", HOME=hidden)
served = describe_model(SimpleNamespace(artifact_uri=f"file://{hidden}/model.tar.gz"))
known = [environment_settings("bucket").url]
del os.environ["HOME"]
print(json.dumps([*known, environment_settings("bucket").url, find_entry_point("scriptmode.engines", "slurm"), served]))
"""


def test_a_directory_that_cannot_be_searched_has_no_files():
    with plain_user.folder_of_the_user() as home:
        hidden = home / "hidden"
        hidden.mkdir(mode=0)
        url, of_no_home, engine, served = json.loads(plain_user.run(PROGRAM, str(hidden), home=home))
    assert url == of_no_home == "https://bucket.s3.us-east-1.amazonaws.com"
    assert engine == "scriptmode_slurm:SLURM"
    assert served == f"file://{hidden}/model.tar.gz"
