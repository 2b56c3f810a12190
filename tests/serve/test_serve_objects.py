"""S3 of `scriptmode serve`: on disk, and that of another server."""

import base64
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import nullcontext, suppress
from pathlib import Path

import boto3
import pytest
import urllib3
from boto3.exceptions import S3UploadFailedError
from botocore.config import Config
from fakes.processes import processes_naming, until
from serve.conftest import serving

from scriptmode_serve._http.access_keys import AccessKeys
from scriptmode_serve._http.seaweedfs import remove_sockets

pytestmark = pytest.mark.slow


def test_objects_are_on_disk_and_a_job_reads_and_writes_them_without_the_server(tmp_path):
    large = os.urandom(9 * 1024 * 1024)
    with serving(tmp_path) as api:
        s3 = api.client("s3")
        s3.create_bucket(Bucket="data")
        s3.put_object(Bucket="data", Key="in/a b ü.txt", Body=b"hello", Metadata={"who": "me"})
        s3.upload_fileobj(io.BytesIO(large), "data", "large")
        signed = s3.generate_presigned_url("get_object", Params={"Bucket": "data", "Key": "large"})
        with urllib.request.urlopen(signed, timeout=600) as answer:
            assert answer.read() == large
        channel = {
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://data/in/"}},
        }
        script = f"""
            import os, pathlib, time
            while not pathlib.Path({str(tmp_path / "go")!r}).exists():
                time.sleep(0.05)
            found = [path.read_text() for path in pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()]
            pathlib.Path(os.environ["SM_MODEL_DIR"], "found").write_text(str(found))
        """
        output = {"S3OutputPath": "s3://data/out", "KmsKeyId": "alias/a-key-that-is-left-out"}
        with pytest.raises(s3.exceptions.ClientError, match="'s3://data//out' has a key that the S3"):
            api.start("pass", OutputDataConfig={"S3OutputPath": "s3://data//out"})
        name = api.start(script, InputDataConfig=[channel], OutputDataConfig=output)
        until(lambda: api.sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatus"] == "Training")
        api.server.process.send_signal(signal.SIGTERM)
        api.server.process.wait()
        api.names.clear()
    assert processes_naming(f"{tmp_path}/data/objects")
    (tmp_path / "go").touch()
    with serving(tmp_path) as api:
        assert api.wait(name)["TrainingJobStatus"] == "Completed"
        s3 = api.client("s3")
        found = s3.get_object(Bucket="data", Key="in/a b ü.txt")
        assert (found["Body"].read(), found["Metadata"]) == (b"hello", {"who": "me"})
        assert s3.get_object(Bucket="data", Key=f"out/{name}/output/model.tar.gz")["ContentLength"] > 0
        ended = api.run("print(1)", OutputDataConfig={"S3OutputPath": "s3://data/out", "KmsKeyId": ""})
        assert (ended["TrainingJobStatus"], ended["OutputDataConfig"]["KmsKeyId"]) == ("Completed", "")
    until(lambda: not processes_naming(f"{tmp_path}/data/objects"))
    with serving(tmp_path) as api:
        assert api.client("s3").get_object(Bucket="data", Key="large")["Body"].read() == large


@pytest.mark.parametrize("uses_s3", [False, True])
def test_the_s3_server_outlives_the_server_for_jobs_whose_requests_name_s3(tmp_path, uses_s3):
    fields = {"Environment": {"PLACE": "s3://data/of the script alone"}} if uses_s3 else {}
    with serving(tmp_path) as api:
        name = api.start("import time; time.sleep(600)", **fields)
        until(lambda: api.sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatus"] == "Training")
        api.server.process.send_signal(signal.SIGTERM)
        api.server.process.wait()
        api.names.clear()
    assert bool(processes_naming(f"{tmp_path}/data/objects")) == uses_s3
    with serving(tmp_path) as api:
        assert api.sagemaker.describe_training_job(TrainingJobName=name)["SecondaryStatus"] == "Training"
        api.names.append(name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, None])
def test_the_s3_server_ends_with_a_server_that_gets_a_signal_at_its_url_or_whose_terminal_closes(tmp_path, number):
    command = ("setsid", "--ctty", sys.executable, "-m", "scriptmode", "serve", "--listen", "127.0.0.1:0")
    own = {**os.environ, "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    codes = {signal.SIGINT: (0, 130), signal.SIGTERM: (0,)}.get(number, (-signal.SIGHUP,))
    for is_serving in (False, False, True):
        ours, theirs = os.openpty()
        options = {"env": own, **dict.fromkeys(("stdin", "stdout", "stderr"), theirs)}
        with os.fdopen(ours, "rb", 0) as terminal, subprocess.Popen(command, **options) as server:
            os.close(theirs)
            url = terminal.readline().decode().split("=")[1].split()[0]
            if is_serving:
                urllib3.request("GET", url)
            server.send_signal(number) if number else terminal.close()
            assert server.wait() in codes
        assert not processes_naming(f"{tmp_path}/objects")


def test_jobs_that_lose_objects_in_memory_are_named_when_the_server_ends(tmp_path, capfd):
    uses_s3 = {"Environment": {"PLACE": "s3://data/of the script alone"}}
    with serving(tmp_path, "--s3", "memory") as api:
        names = [api.start("import time; time.sleep(600)", **fields) for fields in ({}, uses_s3)]
        api.names.clear()
    told = capfd.readouterr().err
    assert f"are gone; jobs in progress have lost them, and fail when they deliver: {names[1]}\n" in told
    with serving(tmp_path, "--s3", "memory") as api:
        api.names.extend(names)


def sockets_of(folder):
    """Return the sockets that SeaweedFS opens at fixed paths."""
    ports = json.loads((folder / "data" / "objects" / "process.json").read_text())["ports"][1::2]
    # Of other servers, which may use the same port for another service, files can be there too.
    names = zip(("master", "volume", "filer", "s3"), ports)
    return [Path(f"/tmp/seaweedfs-{service}-grpc-{port}.sock") for service, port in names]


def test_after_a_power_cut_jobs_start_again_when_s3_answers_and_no_temporary_file_is_left(tmp_path):
    folder, temporary = tmp_path / ("longer than the path of a socket may be " * 3), tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    script = """
        import os, pathlib, time
        step = pathlib.Path("/opt/ml/checkpoints/step")
        found = int(step.read_text()) if step.exists() else 0
        print("from", found, list(pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()), flush=True)
        # The first run ends with the power.
        for number in range(found + 1, found + 5 if found else 10_000):
            draft = step.with_name("draft")
            draft.write_text(str(number))
            draft.rename(step)
            time.sleep(1.5)  # a checkpoint that changes meanwhile is not uploaded
    """
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://data/in/"}
    with serving(folder, environment={"TMPDIR": str(temporary)}) as api:
        api.client("s3").create_bucket(Bucket="data")
        api.client("s3").put_object(Bucket="data", Key="in/a", Body=b"1")
        name = api.start(
            script,
            InputDataConfig=[{"ChannelName": "train", "DataSource": {"S3DataSource": source}}],
            CheckpointConfig={"S3Uri": "s3://data/checkpoints"},
            RetryStrategy={"MaximumRetryAttempts": 1},
        )
        objects = api.client("s3").list_objects_v2
        until(lambda: objects(Bucket="data", Prefix="checkpoints/")["KeyCount"])
        api.names.clear()
        sockets = sockets_of(folder)
        assert all(path.is_socket() for path in sockets)
        for pid in {api.server.process.pid, *processes_naming(f"{folder}/data")}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    with serving(folder, environment={"TMPDIR": str(temporary)}) as api:
        description = api.wait(name)
        assert description["TrainingJobStatus"] == "Completed", description.get("FailureReason")
        log = (folder / "data" / "jobs" / name / "logs" / "algo-1.log").read_text()
        sockets += sockets_of(folder)
    assert len(re.findall("^from [1-9]", log, re.MULTILINE)) == 1, log
    assert not [path for path in (*sockets, *temporary.iterdir()) if path.exists()]


def test_an_object_for_which_a_client_asks_encryption_is_stored_with_metadata_of_any_name(served):
    s3 = served.client("s3")
    s3.create_bucket(Bucket="data")
    encryption = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "alias/mine"}
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    with pytest.raises(s3.exceptions.ClientError, match="NotImplemented"):
        s3.put_bucket_encryption(Bucket="data", ServerSideEncryptionConfiguration={"Rules": [rule]})
    metadata = {"who": "me", "scriptmode-content-length": "1"}
    s3.put_object(Bucket="data", Key="a", Body=b"hello", Metadata=metadata, **encryption)
    s3.upload_fileobj(io.BytesIO(os.urandom(9 * 1024 * 1024)), "data", "large", ExtraArgs=encryption)
    s3.put_object(Bucket="data", Key="empty", Body=b"")
    found = s3.get_object(Bucket="data", Key="a")
    assert (found["Body"].read(), found["Metadata"]) == (b"hello", metadata)
    assert s3.head_object(Bucket="data", Key="large")["ContentLength"] == 9 * 1024 * 1024
    assert s3.get_object(Bucket="data", Key="empty")["Body"].read() == b""


def test_objects_of_names_that_directories_sort_otherwise_are_listed_as_s3_does(served):
    s3, keys = served.client("s3"), ["ckpt", "ckpt-1", "ckpt.index", "ckpt/a", "ckpt/a-b", "ckpt/a/b", "ckpt0", "é"]
    s3.create_bucket(Bucket="names")
    for key in keys:
        s3.put_object(Bucket="names", Key=key, Body=b"1")
    for most in (1, 3, 1000):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="names", PaginationConfig={"PageSize": most})
        assert [item["Key"] for page in pages for item in page["Contents"]] == keys
    assert [item["Key"] for item in s3.list_objects(Bucket="names", Marker="ckpt-1")["Contents"]] == keys[2:]
    shown = s3.list_objects_v2(Bucket="names", Delimiter="/", StartAfter="ckpt-1", FetchOwner=True)
    assert [item["Prefix"] for item in shown["CommonPrefixes"]] == ["ckpt/"]
    assert all(item["Owner"]["ID"] and item["Size"] == 1 for item in shown["Contents"])
    with pytest.raises(s3.exceptions.ClientError, match="BucketNotEmpty"):
        s3.delete_bucket(Bucket="names")
    with pytest.raises(s3.exceptions.NoSuchBucket):
        s3.put_object(Bucket="mistyped", Key="a", Body=b"1")


@pytest.mark.parametrize("key", ["folder/", "a.versions/b", "a.versions/", ".uploads/a", "a/.uploads/b"])
def test_an_object_that_would_lose_its_content_or_be_in_no_list_is_refused(served, key):
    s3 = served.client("s3")
    s3.create_bucket(Bucket="losses")
    s3.put_object(Bucket="losses", Key="one", Body=b"1")
    for store in (
        lambda: s3.put_object(Bucket="losses", Key=key, Body=b"1"),
        lambda: s3.upload_fileobj(io.BytesIO(bytes(9 * 1024 * 1024)), "losses", key),
        lambda: s3.copy_object(Bucket="losses", Key=key, CopySource="losses/one"),
    ):
        with pytest.raises((s3.exceptions.ClientError, S3UploadFailedError), match="of this server keeps no"):
            store()
    s3.put_object(Bucket="losses", Key="marker/", Body=b"")
    assert [item["Key"] for item in s3.list_objects_v2(Bucket="losses")["Contents"]] == ["marker/", "one"]


def test_the_marker_of_a_directory_replaces_no_object(served):
    s3 = served.client("s3")
    s3.create_bucket(Bucket="markers")
    for key, content in (("a b/c", b"1"), ("a b", b"2")):
        s3.put_object(Bucket="markers", Key=key, Body=content)
    with pytest.raises(s3.exceptions.ClientError, match="ExistingObjectIsFile"):
        s3.put_object(Bucket="markers", Key="a b/", Body=b"")
    assert [s3.get_object(Bucket="markers", Key=key)["Body"].read() for key in ("a b", "a b/c")] == [b"2", b"1"]


def test_what_seaweedfs_answers_otherwise_is_as_in_s3(served):
    s3 = served.client("s3")
    for region in ("us-east-1", "us-east-1", "eu-west-1"):
        client = boto3.Session("a", "b", region_name=region).client("s3", endpoint_url=served.server.url)
        with nullcontext() if region == "us-east-1" else pytest.raises(client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket="answers")
    with pytest.raises(s3.exceptions.ClientError, match="BucketAlreadyOwnedByYou"):
        s3.put_bucket_website(Bucket="answers", WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}})
    s3.put_bucket_versioning(Bucket="answers", VersioningConfiguration={"Status": "Enabled"})
    stored = s3.put_object(Bucket="answers", Key="k" * 1000, Body=b"1")
    copied = s3.copy_object(Bucket="answers", Key="copy", CopySource=f"answers/{'k' * 1000}")
    assert copied["CopyObjectResult"]["ETag"] == stored["ETag"]
    assert copied["VersionId"] == s3.head_object(Bucket="answers", Key="copy")["VersionId"]


@pytest.mark.parametrize("s3", ["disk", "memory"])
def test_an_object_is_put_with_the_type_of_a_form_which_curl_and_urllib_send_by_default(tmp_path, s3):
    with serving(tmp_path, "--s3", s3) as api:
        client = api.client("s3")
        client.create_bucket(Bucket="forms")
        signed = client.generate_presigned_url("put_object", Params={"Bucket": "forms", "Key": "form"})
        for body in (b"Action=CreateUser&Version=2010-05-08&UserName=mallory", bytes(range(256))):
            urllib.request.urlopen(urllib.request.Request(signed, body, method="PUT"), timeout=600).close()
            assert client.get_object(Bucket="forms", Key="form")["Body"].read() == body
        assert not api.client("iam").list_users()["Users"]


@pytest.mark.parametrize(("has_keys", "s3"), [(True, "disk"), (False, "disk"), (True, "memory")])
def test_a_form_stores_what_its_policy_allows(tmp_path, has_keys, s3):
    key = AccessKeys(tmp_path / "data").create() if has_keys else ("test", "test")
    with serving(tmp_path, "--s3", s3) as api:
        settings = {"endpoint_url": api.server.url, "config": Config(signature_version="s3v4")}
        client = boto3.Session(*key, region_name="us-east-1").client("s3", **settings)
        client.create_bucket(Bucket="forms")
        fields = {"x-amz-meta-a": "b", "success_action_status": "201"}
        conditions = [["content-length-range", 2, 9], *({name: value} for name, value in fields.items())]

        def post(content=b"hello", *, seconds=600, signer=client, file="file", query="", headers=None, **changes):
            form = signer.generate_presigned_post("forms", "up/${filename}", fields, conditions, ExpiresIn=seconds)
            parts = [item for item in {**form["fields"], **changes}.items() if item[1] is not None]
            # A browser sends its button, too; what follows the file is no part of a form.
            parts += [(file, ("C:\\f.txt", content)), ("submit", "Upload"), ("acl", "private")]
            return urllib3.request("POST", form["url"] + query, fields=parts, headers=headers).status

        if s3 == "memory":
            assert post() == 501
            return
        assert post() == 201
        found = client.get_object(Bucket="forms", Key="up/f.txt")
        assert (found["Body"].read(), found["Metadata"]) == (b"hello", {"a": "b"})
        undated = base64.b64encode(b'{"EXPIRATION": "2099-01-01T00:00:00Z", "conditions": [{}]}')
        nested = base64.b64encode(b"[" * 40_000)
        for status, *cases in (
            (403, {"seconds": -1}, {"key": "down"}, {"x-amz-meta-a": "c"}, {"x-amz-meta-b": "c"}, {"acl": "private"}),
            (400, {"content": b"h"}, {"content": bytes(10)}, {"file": "other"}, {"key": None}, {"key": "up//x"}),
            (403 if has_keys else 201, {"x-amz-signature": "0"}, {"signer": api.client("s3")}),
            (403 if has_keys else 201, {"headers": {"x-amz-meta-b": "c"}}),
            (403 if has_keys else 400, {"policy": None, "key": None}, {"policy": undated}, {"query": "?delete"}),
            (403 if has_keys else 400, {"policy": nested}),
        ):
            assert [post(**changes) for changes in cases] == [status] * len(cases)
        # urllib sends all of it before it reads.
        body, kind = urllib3.encode_multipart_formdata({"file": bytes(17 * 1024**2)})
        large = urllib.request.Request(f"{api.server.url}/forms", body, {"Content-Type": kind})
        with pytest.raises(urllib.error.HTTPError, match="413"):
            urllib.request.urlopen(large, timeout=600)
        assert client.get_object(Bucket="forms", Key="up/f.txt")["Metadata"] == {"a": "b"}
        assert [item["Key"] for item in client.list_objects_v2(Bucket="forms")["Contents"]] == ["up/f.txt"]


def test_only_sockets_that_no_server_uses_are_removed():
    with socket.socket() as reserved, socket.socket(socket.AF_UNIX) as server:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        path = Path(f"/tmp/seaweedfs-master-grpc-{port}.sock")
        server.bind(str(path))
        server.listen()
        remove_sockets([port])
        assert path.is_socket()
        server.close()
        remove_sockets([port])
        assert not path.exists()


def test_another_s3_server_checks_the_signatures_of_the_clients(tmp_path, s3_server):
    with serving(tmp_path, "--s3", s3_server.endpoint) as api:
        keys = {
            "aws_access_key_id": s3_server.environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": s3_server.environment["AWS_SECRET_ACCESS_KEY"],
        }
        client = api.client("s3", **keys)
        client.create_bucket(Bucket="forwarded")
        client.put_object(Bucket="forwarded", Key="a b+c/ü", Body=b"1")
        assert s3_server.client.get_object(Bucket="forwarded", Key="a b+c/ü")["Body"].read() == b"1"
        own = {"scriptmode-x-amz-server-side-encryption": "mine"}
        client.put_object(Bucket="forwarded", Key="own", Body=b"1", Metadata=own)
        assert client.head_object(Bucket="forwarded", Key="own")["Metadata"] == own
        with pytest.raises(client.exceptions.ClientError, match="403|InvalidAccessKeyId"):
            api.client("s3").list_objects_v2(Bucket="forwarded")
