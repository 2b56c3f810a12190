"""The real sessions of an installed sagemaker, v2 and v3, each in an environment of its own."""

import pytest

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
import boto3
import scriptmode
from scriptmode import Estimator, SpecError
if sys.argv[1] == "v2":
    from sagemaker import Session
    from sagemaker.local import LocalSession
else:
    from sagemaker.core.helper.session_helper import Session
    from sagemaker.core.local.local_session import LocalSession

boto_session = boto3.session.Session("key", "secret", region_name="ap-south-1")
arguments = dict(image_uri="img", role="arn:aws:iam::123456789012:role/r", instance_type="ml.m5.large")

def output(**settings):
    session = Session(boto_session=boto_session, **settings)
    made = Estimator(sagemaker_session=session, **arguments)
    assert made.platform.connection.client("sagemaker") is session.sagemaker_client
    assert isinstance(made.sagemaker_session, scriptmode.Session)
    assert made.sagemaker_session == session
    assert made.sagemaker_session.sagemaker_client is session.sagemaker_client
    assert made.sagemaker_session.boto_session is boto_session
    assert made.sagemaker_session.s3_resource is session.s3_resource
    return made.request()

config = {"SchemaVersion": "1.0", "SageMaker": {"TrainingJob": {"Tags": [{"Key": "from", "Value": "session"}]}}}
found = {
    "plain": output()["OutputDataConfig"]["S3OutputPath"],
    "bucket": output(default_bucket="mine", default_bucket_prefix="a/b")["OutputDataConfig"]["S3OutputPath"],
    "tags": output(sagemaker_config=config)["Tags"],
}
try:
    Estimator(sagemaker_session=LocalSession(boto_session), **arguments).request()
except SpecError as error:
    found["local"] = str(error)

# Uploads of both: the package's go to the fake account's objects by a resource of boto3's shape.
from pathlib import Path

from scriptmode.aws import S3Downloader, S3Uploader
from scriptmode.testing import FakeSageMaker

class Resource:
    def __init__(self, fake):
        self.fake = fake

    def Object(self, bucket, key):
        self.place = (bucket, key)
        return self

    def upload_file(self, path, ExtraArgs=None, Callback=None):
        self.fake.client("s3").upload_file(path, *self.place, ExtraArgs=ExtraArgs)

Path("data/a").mkdir(parents=True)
Path("data/a/one").write_text("1")
Path("data/two").write_text("2")
uploads = [
    ("data", {"bucket": "mine", "key_prefix": "p/q"}),
    ("data/two", {"bucket": "mine", "key_prefix": "p/file"}),
    ("data", {"bucket": "mine"}),
    ("data", {}),
    ("data/a", {"key_prefix": "x", "extra_args": {"ContentType": "text/plain"}}),
]
results = {"theirs": [], "ours": []}
for which in results:
    fake = FakeSageMaker(region_name="ap-south-1", account="123456789012")
    fake.buckets["mine"] = fake.account
    if which == "ours":
        session = scriptmode.Session(fake)
    else:
        session = Session(boto_session=boto_session, default_bucket=f"sagemaker-ap-south-1-{fake.account}")
        session.s3_resource, session._default_bucket = Resource(fake), session._default_bucket_name_override
    for path, options in uploads:
        results[which].append(session.upload_data(path, **options))
    results[which].append(sorted(fake.objects))
found["uploads"] = results

# Sessions of the package, also of local mode, where ours are taken.
theirs = LocalSession(boto_session)
theirs.boto_session = fake
assert Estimator(sagemaker_session=theirs, **arguments).sagemaker_session.local_mode
assert S3Uploader.upload("data/two", "s3://mine/up", sagemaker_session=theirs) == "s3://mine/up/two"
assert S3Downloader.read_file("s3://mine/up/two", sagemaker_session=theirs) == "2"
assert list(scriptmode.TrainingJob.list(sagemaker_session=theirs)) == []

print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first time it installs them
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_a_session_brings_region_clients_bucket_and_config(version, tmp_path, request):
    found = request.getfixturevalue(version).run(tmp_path, "-c", PROGRAM, version)
    assert found["plain"] == "s3://sagemaker-ap-south-1-123456789012"
    assert found["bucket"] == "s3://mine/a/b"
    assert found["tags"] == [{"Key": "from", "Value": "session"}]
    assert "a session of local mode" in found["local"]
    assert found["uploads"]["ours"] == found["uploads"]["theirs"]
