"""What `scriptmode serve` refuses: unsigned and expired requests, other sites' pages, paths of this machine."""

import hashlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, timezone
from urllib.parse import urlsplit

import boto3
import pytest
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from serve.conftest import serving

from scriptmode.errors import SpecError
from scriptmode_serve._http.access_keys import AccessKeys
from scriptmode_serve._http.configuration import parse_configuration
from scriptmode_serve._http.guard import Guard
from scriptmode_serve._http.server import parse_address
from scriptmode_serve._http.signatures import check_signature
from scriptmode_serve._operations.allowed_paths import check_paths
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.request_mapping import HostTable


@pytest.mark.slow
def test_with_a_key_every_request_is_signed_with_it_and_a_refusal_is_logged_without_secrets(tmp_path, capfd):
    key = AccessKeys(tmp_path / "data").create()
    with serving(tmp_path, "--s3", "memory") as api:
        keys = {"aws_access_key_id": key.identifier, "aws_secret_access_key": key.secret}
        assert api.client("sagemaker", **keys).list_training_jobs()["TrainingJobSummaries"] == []
        s3 = api.client("s3", config=Config(signature_version="s3v4"), **keys)
        s3.create_bucket(Bucket="mine")
        s3.put_object(Bucket="mine", Key="a b/ü+", Body=b"1")
        assert s3.get_object(Bucket="mine", Key="a b/ü+")["Body"].read() == b"1"
        signed = s3.generate_presigned_url("get_object", Params={"Bucket": "mine", "Key": "a b/ü+"})
        with urllib.request.urlopen(signed, timeout=600) as answer:
            assert answer.read() == b"1"
        with pytest.raises(urllib.error.HTTPError, match="403") as raised:
            urllib.request.urlopen(signed.replace("/mine/", "/other/"), timeout=600)
        raised.value.close()
        second = api.client("s3", config=Config(signature_version="s3"), **keys)
        with pytest.raises(urllib.error.HTTPError, match="403") as raised:
            urllib.request.urlopen(second.generate_presigned_url("get_object", Params={"Bucket": "mine", "Key": "a"}))
        assert b"The URL is signed by version 2; version 4 is" in raised.value.read()
        raised.value.close()
        assert api.client("sts", **keys).get_caller_identity()["Account"]
        unknown = {**keys, "aws_access_key_id": "AKIAUNKNOWN"}
        wrong = {**keys, "aws_secret_access_key": "wrong"}
        # Each in the protocol of the service, by AWS's code.
        for service, operation, of_unknown in (
            ("sagemaker", "list_training_jobs", "UnrecognizedClientException"),
            ("sts", "get_caller_identity", "InvalidClientTokenId"),
            ("iam", "list_roles", "InvalidClientTokenId"),
            ("s3", "list_buckets", "InvalidAccessKeyId"),
            ("cloudwatch", "describe_alarms", "UnrecognizedClientException"),
        ):
            of_wrong = "InvalidSignatureException" if "Exception" in of_unknown else "SignatureDoesNotMatch"
            for given, code in ((unknown, of_unknown), (wrong, of_wrong)):
                with pytest.raises(ClientError) as refused:
                    getattr(api.client(service, **given), operation)()
                assert (service, refused.value.response["Error"]["Code"]) == (service, code)
        unchecked = api.client("sagemaker", config=Config(parameter_validation=False), **keys)
        with pytest.raises(ClientError, match="Value at 'hyperParameters' failed"):
            unchecked.create_training_job(TrainingJobName="a 's3cret' b's", HyperParameters={"token": "s3cret" * 999})
        source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://mine/none/"}}
        request = api.request("", InputDataConfig=[{"ChannelName": "s3cret", "DataSource": source}])
        with pytest.raises(ClientError, match="no object's key begins with it"):
            unchecked.create_training_job(**request)
        urllib3.request("POST", api.server.url, headers={"X-Amz-Target": "\x7f" * 50_000})
        logged = capfd.readouterr().err
        assert "s3cret" not in logged
        assert max(map(len, logged.splitlines())) < 3000
        for text in (
            "ListTrainingJobs is refused: UnrecognizedClientException: The security token included in the request is",
            "POST / is refused: SignatureDoesNotMatch: The request signature we calculated does not match",
            "GET / is refused: InvalidAccessKeyId: The security token",
            "CreateTrainingJob is refused: ValidationException: 4 validation errors detected at 'trainingJobName', at 'hyper",
            "CreateTrainingJob is refused: ValidationException: channel ...\n",
        ):
            assert re.search(rf"(?m)^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d 127\.0\.0\.1: {re.escape(text)}", logged), text
        AccessKeys(tmp_path / "data").delete(key.identifier)
        AccessKeys(tmp_path / "data").create()
        with pytest.raises(ClientError, match="UnrecognizedClient"):
            api.client("sagemaker", **keys).list_training_jobs()


def refusal(data_dir, *options):
    """Return why a server does not start."""
    command = (sys.executable, "-m", "scriptmode", "serve", *options)
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(data_dir)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode
    return done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--listen", "0.0.0.0:0"), "create one: scriptmode serve key"),
        (("--allow", "/no/such"), "'--allow': Directory '/no/such' does not exist"),
        (("--s3", "127.0.0.1:1"), "--s3 is '127.0.0.1:1'"),
        (("--s3", "http://127.0.0.1:99999"), "--s3 is 'http://127.0.0.1:99999': Port out of range"),
        (("--s3", "http://user:secret@127.0.0.1:1"), "--s3 has a user or a password, which is not used"),
    ],
    ids=["no key", "allow", "no URL", "no port", "secret"],
)
def test_what_a_server_cannot_use_is_refused_at_its_start(tmp_path, options, text):
    found = refusal(tmp_path, "--listen", "127.0.0.1:0", *options)
    assert text in found
    assert "secret" not in found
    assert "Traceback" not in found


@pytest.mark.slow
def test_a_taken_port_is_refused_at_the_start(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = refusal(tmp_path, "--listen", f"127.0.0.1:{port}")
    assert f"cannot listen at 127.0.0.1:{port}: " in text
    assert "--listen 127.0.0.1:0" in text


@pytest.mark.slow
@pytest.mark.parametrize("host", ["no_such_name", "192.0.2.1", "a..b"])
def test_an_address_that_is_not_one_of_this_machine_is_refused_as_such(tmp_path, host):
    text = f"--listen is {host!r}, which is not an address of this machine; write one, such as 127.0.0.1:4580"
    assert text in refusal(tmp_path, "--listen", f"{host}:80")


@pytest.mark.slow
def test_a_data_directory_has_one_server(tmp_path):
    with serving(tmp_path, "--s3", "memory") as api:
        # Also at the same address, where another one would not help.
        for address in ("127.0.0.1:0", api.server.url.partition("//")[2]):
            found = refusal(tmp_path / "data", "--listen", address, "--s3", "memory")
            assert f"has a server already, process {api.server.process.pid};" in found
    with serving(tmp_path, "--s3", "memory"):
        pass


def signed(**changes):
    """A request for ListTrainingJobs as a client of boto3 signs it, in WSGI's terms, and the time of its signature."""
    sent = []
    client = boto3.Session("AKIATEST", "secret", region_name="us-east-1").client(
        "sagemaker", endpoint_url="http://127.0.0.1:1"
    )
    client.meta.events.register("before-send", lambda request, **_: sent.append(request))
    with pytest.raises(Exception, match="Could not connect"):
        client.list_training_jobs()
    request = sent[0]
    headers = {name: value.decode() if isinstance(value, bytes) else value for name, value in request.headers.items()}
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    environ.update(CONTENT_TYPE=environ.pop("HTTP_CONTENT_TYPE"), CONTENT_LENGTH=environ.pop("HTTP_CONTENT_LENGTH"))
    environ.update({"REQUEST_METHOD": "POST", "REQUEST_URI": "/", "HTTP_HOST": "127.0.0.1:1", "QUERY_STRING": ""})
    environ["wsgi.input"] = io.BytesIO(b"{}")
    environ.update(changes)
    made = datetime.strptime(environ["HTTP_X_AMZ_DATE"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
    return environ, made.timestamp()


@pytest.mark.parametrize(
    ("later", "keys", "changes", "code"),
    [
        (299, {"AKIATEST": "secret"}, {}, None),
        (301, {"AKIATEST": "secret"}, {}, "InvalidSignatureException"),
        (-301, {"AKIATEST": "secret"}, {}, "InvalidSignatureException"),
        (0, {"AKIATEST": "other"}, {}, "InvalidSignatureException"),
        (0, {"AKIAOTHER": "secret"}, {}, "UnrecognizedClientException"),
        (0, {"AKIATEST": "secret"}, {"HTTP_X_AMZ_TARGET": "SageMaker.StopTrainingJob"}, "InvalidSignatureException"),
        (0, {"AKIATEST": "secret"}, {"REQUEST_URI": "/x"}, "InvalidSignatureException"),
        (0, {"AKIATEST": "secret"}, {"wsgi.input": io.BytesIO(b"{ }")}, "InvalidSignatureException"),
        (0, {"AKIATEST": "secret"}, {"HTTP_HOST": "["}, "IncompleteSignatureException"),
        (0, {"AKIATEST": "secret"}, {"HTTP_AUTHORIZATION": ""}, "MissingAuthenticationTokenException"),
        (0, {"AKIATEST": "secret"}, {"HTTP_AUTHORIZATION": "Basic x"}, "MissingAuthenticationTokenException"),
    ],
)
def test_a_signature_is_that_of_the_request_and_of_now(later, keys, changes, code):
    environ, moment = signed(**changes)
    if code is None:
        check_signature(environ, keys, moment + later)
        return
    with pytest.raises(ApiError) as raised:
        check_signature(environ, keys, moment + later)
    assert raised.value.code == code


def presigned_url():
    """The URL of an object as boto3 signs it, as a request in WSGI's terms, and the time of its signature."""
    s3 = boto3.Session("AKIATEST", "secret", region_name="us-east-1").client(
        "s3", endpoint_url="http://127.0.0.1:1", config=Config(signature_version="s3v4")
    )
    url = urlsplit(s3.generate_presigned_url("get_object", Params={"Bucket": "mine", "Key": "data"}))
    environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": f"{url.path}?{url.query}", "HTTP_HOST": url.netloc}
    return {**environ, "PATH_INFO": url.path, "QUERY_STRING": url.query}, time.time()


#: A call of an operation, in each protocol.
CALLS = [
    {"HTTP_X_AMZ_TARGET": "SageMaker.CreateTrainingJob"},
    {"CONTENT_TYPE": "application/x-www-form-urlencoded"},
    {"PATH_INFO": "/service/X/operation/Y"},
]


def test_a_presigned_url_of_an_object_calls_no_operation():
    environ, now = presigned_url()
    check_signature(environ, {"AKIATEST": "secret"}, now)
    for call in CALLS:
        with pytest.raises(ApiError, match="InvalidSignature"):
            check_signature({**environ, **call}, {"AKIATEST": "secret"}, now)


def test_a_presigned_url_of_an_object_is_not_for_another_object():
    environ, now = presigned_url()
    changes = [
        {"REQUEST_URI": environ["REQUEST_URI"].replace("/mine", "//other/mine")},
        {"REQUEST_URI": environ["REQUEST_URI"].replace("/mine", "http://127.0.0.1:1/mine")},
        {"REQUEST_URI": environ["REQUEST_URI"] + "#&acl"},
        {"HTTP_X_AMZ_COPY_SOURCE": "/other/data"},
        {"QUERY_STRING": environ["QUERY_STRING"].replace("X-Amz-Signature=", "X-Amz-Signature=é")},
        {"QUERY_STRING": environ["QUERY_STRING"].replace("X-Amz-Expires=", "X-Amz-Expires=" + "9" * 5000)},
    ]
    for change in changes:
        with pytest.raises(ApiError, match="InvalidSignature|MissingAuthentication"):
            check_signature({**environ, **change}, {"AKIATEST": "secret"}, now)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_claims_to_be_for_s3_is_checked_where_another_server_checks_s3(call):
    claim = "AWS4-HMAC-SHA256 Credential=AKIATEST/20261123/us-east-1/s3/aws4_request, SignedHeaders=host, Signature="
    guard = Guard("127.0.0.1", keys=lambda: {"AKIATEST": "secret"}, s3="http://elsewhere")
    environ = {"HTTP_HOST": "127.0.0.1:4580", "HTTP_AUTHORIZATION": claim + "0" * 64, "PATH_INFO": "/mine/data"}
    guard.check(environ)
    with pytest.raises(ApiError, match="InvalidSignature"):
        guard.check({**environ, **call})


def test_a_target_is_part_of_the_signature():
    environ, moment = signed()
    header = environ["HTTP_AUTHORIZATION"].replace(";x-amz-target", "")
    with pytest.raises(ApiError, match="does not contain the headers x-amz-target"):
        check_signature({**environ, "HTTP_AUTHORIZATION": header}, {"AKIATEST": "secret"}, moment)


@pytest.mark.parametrize("said", [hashlib.sha256(b"{}").hexdigest(), "UNSIGNED-PAYLOAD"])
def test_a_hash_in_a_header_is_that_of_the_body(said):
    """Clients of JavaScript sign the header for every service."""
    environ, now = signed()
    headers = {"X-Amz-Target": environ["HTTP_X_AMZ_TARGET"], "X-Amz-Content-SHA256": said}
    request = AWSRequest("POST", "http://127.0.0.1:1/", headers=headers, data=b"{}")
    SigV4Auth(Credentials("AKIATEST", "secret"), "sagemaker", "us-east-1").add_auth(request)
    environ.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()})
    changed = {**environ, "wsgi.input": io.BytesIO(b"[]")}
    with pytest.raises(ApiError, match="InvalidSignature"):
        check_signature(changed, {"AKIATEST": "secret"}, now)
    if said != "UNSIGNED-PAYLOAD":
        check_signature(environ, {"AKIATEST": "secret"}, now)


def test_only_allowed_directories_are_named(tmp_path):
    (tmp_path / "in" / "data").mkdir(parents=True)
    (tmp_path / "in" / "link").symlink_to("/etc")
    allowed = [str(tmp_path / "in")]

    def request(uri):
        return {
            "InputDataConfig": [{"DataSource": {"S3DataSource": {"S3Uri": uri}}}],
            "Environment": {"A": "file:///x"},
        }

    check_paths(request(f"file://{tmp_path}/in/data"), allowed)
    check_paths(request("s3://bucket/etc"), allowed)
    for uri in ("file:///etc", f"file://{tmp_path}/in/../x", f"file://{tmp_path}/in/link/passwd", f"file://{tmp_path}/in2",
                f"file://localhost{tmp_path}/x", "file://relative", f"file://{tmp_path}/in/%2e%2e/%2e%2e"):  # fmt: skip
        with pytest.raises(ApiError, match="ValidationException"):
            check_paths(request(uri), allowed)
    for text in (json.dumps("file:///etc/x"), ' "file:///etc/x" ', r'"\u0066ile:///etc/x"'):
        with pytest.raises(ApiError, match="--allow"):
            check_paths({"HyperParameters": {"sagemaker_submit_directory": text}}, allowed)


@pytest.mark.parametrize("uri", ["s3://b/a//b", "s3://b//a", "s3://b/a/../b", "s3://b/a\\b"])
def test_a_job_names_no_key_that_the_s3_server_would_change(uri):
    job = {"OutputDataConfig": {"S3OutputPath": uri}}
    for request in (job, {"CheckpointConfig": {"S3Uri": uri}}, {"TrainingJobDefinitions": [job]}):
        check_paths(request)
        with pytest.raises(ApiError, match="a key that the S3 of this server would change"):
            check_paths(request, has_all_keys=False)
    check_paths({"CheckpointConfig": {"S3Uri": "s3://b/a/"}, "HyperParameters": {"of": uri}}, has_all_keys=False)


PLACES = {
    "hyperparameter": lambda path: {"HyperParameters": {"sagemaker_submit_directory": path}},
    "in JSON": lambda path: {"HyperParameters": {"sagemaker_submit_directory": json.dumps(path)}},
    "variable": lambda path: {"Environment": {"SAGEMAKER_SUBMIT_DIRECTORY": path}},
    "variable of a definition": lambda path: {
        "TrainingJobDefinition": {"Environment": {"SAGEMAKER_SUBMIT_DIRECTORY": path}}
    },
    "static": lambda path: {
        "TrainingJobDefinitions": [{"StaticHyperParameters": {"sagemaker_submit_directory": path}}]
    },
    "range": lambda path: {
        "HyperParameterTuningJobConfig": {
            "ParameterRanges": {
                "CategoricalParameterRanges": [{"Name": "sagemaker_submit_directory", "Values": ["s3://b/k", path]}]
            }
        }
    },
}


@pytest.mark.parametrize("place", PLACES)
def test_a_source_without_a_scheme_is_of_an_allowed_directory(tmp_path, place):
    request, allowed = PLACES[place], [str(tmp_path / "in")]
    for path in (f"{tmp_path}/in", f"{tmp_path}/in/source.tar.gz", "/opt/ml/code", "/opt/ml/input/data/code/x.tar.gz",
                 "s3://bucket/source.tar.gz", ""):  # fmt: skip
        check_paths(request(path), allowed)
    for path in ("/etc", f"{tmp_path}/in2", f"{tmp_path}/in/../x", "/opt/ml/../../etc", "/opt/ml", "etc", "../etc",
                 "x://etc", "/etc\0"):  # fmt: skip
        with pytest.raises(ApiError, match="ValidationException"):
            check_paths(request(path), allowed)


def test_other_values_that_look_like_paths_are_for_the_script(tmp_path):
    job = {"HyperParameters": {"data": "/data"}, "Environment": {"DATA": "/data", "A": "file:///x"}}
    for request in (job, {"TrainingJobDefinition": job}, {"TrainingJobDefinitions": [job]}):
        check_paths(request, [])


def environ(**headers):
    return {"HTTP_HOST": "127.0.0.1:4580", "REMOTE_ADDR": "127.0.0.1", **headers}


@pytest.mark.parametrize("host", ["127.0.0.1:4580", "localhost", "[::1]:4580", "bucket.localhost:4580"])
def test_this_machine_has_several_names(host):
    Guard("127.0.0.1").check(environ(HTTP_HOST=host))


@pytest.mark.parametrize(
    "headers",
    [
        {"HTTP_HOST": "evil.example"}, {"HTTP_HOST": "127.0.0.1.evil.example:4580"}, {"HTTP_HOST": ""},
        {"HTTP_ORIGIN": "http://evil.example"}, {"HTTP_ORIGIN": "null"}, {"HTTP_ORIGIN": "http://["},
    ],
)  # fmt: skip
def test_pages_of_other_sites_are_refused(headers):
    with pytest.raises(ApiError, match="AccessDenied"):
        Guard("127.0.0.1").check(environ(**headers))


def test_a_server_that_other_machines_reach_answers_nothing_once_its_last_key_is_deleted():
    keys = {"AKIATEST": "secret"}
    guard = Guard("0.0.0.0", keys=lambda: keys)
    keys.clear()
    with pytest.raises(ApiError, match="MissingAuthenticationToken"):
        guard.check(environ())


def test_a_configuration_names_hosts_and_images():
    content = {"hosts": "local", "instance_types": {"ml.p3.*": "local_gpu"}, "images": {"a/*": "b"}}
    assert parse_configuration(content, "x.toml") == HostTable("local", {"ml.p3.*": "local_gpu"}, {"a/*": "b"})
    assert parse_configuration({}, "x.toml") == HostTable()
    assert parse_configuration({"instance_types": {"*": "slurm:gpu"}}, "x").hosts_for("ml.p3.2xlarge") == "slurm:gpu"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"host": "local"}, "x.toml has no key 'host'; did you mean 'hosts'"),
        ({"hosts": "cloud"}, "give one of local_process, local, local_gpu, kubernetes, kubernetes:gpu=N, slurm"),
        ({"instance_types": {"ml.p3.*": "gpu"}}, "ml.p3.* is 'gpu'"),
        ({"images": ["a"]}, "images is ['a']"),
    ],
)
def test_a_wrong_configuration_is_refused(content, text):
    with pytest.raises(SpecError) as raised:
        parse_configuration(content, "x.toml")
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)), ("localhost", ("localhost", 4580)), ("[::1]:0", ("::1", 0)),
        ("::1", ("::1", 4580)),
    ],
)  # fmt: skip
def test_an_address_has_a_port(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "x:y", ":80", "80", "x:70000", "x/y:80"])
def test_a_wrong_address_is_refused(text):
    with pytest.raises(SpecError) as raised:
        parse_address(text)
    step = "write an address and a port of at most 65535, such as 127.0.0.1:4580"
    assert str(raised.value) == f"--listen is {text!r}; {step}"
