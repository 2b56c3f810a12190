"""`scriptmode.Session`: with an account (a fake one), and without one, where its bucket is a directory."""

import os
import stat
import threading
from types import SimpleNamespace

import pytest
from fakes import host_folders
from fakes.processes import until
from fakes.sagemaker_jobs import sagemaker_estimator as estimator

from scriptmode import (
    CredentialsError,
    DataAccessError,
    DataError,
    DataNotFoundError,
    Estimator,
    JobNotFoundError,
    PlatformError,
    Session,
    SpecError,
    TensorFlow,
    TrainingJob,
    TrainingJobStopped,
    get_execution_role,
)
from scriptmode._core.aws.local_bucket import LocalBucket, write_files
from scriptmode._sagemaker_session import wrap_session
from scriptmode.aws import S3Downloader, S3Uploader, determine_bucket_and_prefix, parse_s3_url, s3_path_join
from scriptmode.testing import FakeSageMaker

BUCKET = "s3://scriptmode_local"
LOCAL_ROLE = "arn:aws:iam::000000000000:role/scriptmode-local"


@pytest.fixture
def fake():
    return FakeSageMaker(region_name="ap-south-1")


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """The data directory of a machine without an account."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data dir"))
    return tmp_path / "data dir"


@pytest.fixture
def local(data_dir, no_credentials):
    return Session(local_mode=True)


@pytest.fixture
def folder(tmp_path):
    """A directory of data, with a draft, a link to a second directory, and one from there to the first."""
    files = {"images/one.txt": "1", "more/ü 'two'": "22", "images/.scriptmode-new-x/object": "half"}
    host_folders.write_files(tmp_path, files)
    (tmp_path / "images/a").symlink_to("../more")
    (tmp_path / "more/up").symlink_to("../images")
    return tmp_path / "images"


def test_a_session_names_the_account_the_region_and_a_bucket_that_exists(fake):
    fake.buckets.clear()
    session = Session(fake)
    assert (session.boto_region_name, session.account_id(), session.local_mode) == ("ap-south-1", fake.account, False)
    assert session.boto_session is fake
    assert session.default_bucket() == f"sagemaker-ap-south-1-{fake.account}"
    assert fake.buckets == {session.default_bucket(): fake.account}
    assert session.sagemaker_client.list_training_jobs()["TrainingJobSummaries"] == []


def test_a_session_has_a_client_that_invokes_endpoints(fake):
    assert Session(fake).sagemaker_runtime_client.meta.service_model.service_name == "sagemaker-runtime"
    theirs = SimpleNamespace(boto_session=fake, sagemaker_runtime_client=object())
    assert wrap_session(theirs).sagemaker_runtime_client is theirs.sagemaker_runtime_client
    assert Session(fake, None, "mine").sagemaker_runtime_client == "mine"
    assert Session(fake, None, "mine") != Session(fake)


def test_the_default_bucket_is_the_arguments_else_the_config_files(fake):
    assert Session(fake, default_bucket="mine").default_bucket() == "mine"
    module = {"Session": {"DefaultS3Bucket": "ours", "DefaultS3ObjectKeyPrefix": "team"}}
    fake.sagemaker_config = {"SchemaVersion": "1.0", "SageMaker": {"PythonSDK": {"Modules": module}}}
    assert Session(fake).default_bucket() == "ours"
    assert Session(fake).upload_string("x", "key") == "s3://ours/team/key"
    assert Session(fake, default_bucket_prefix="other").upload_string("x", "key") == "s3://ours/other/key"
    assert {"mine", "ours"} <= set(fake.buckets)


def test_a_default_bucket_of_another_account_is_refused(fake):
    fake.buckets[f"sagemaker-ap-south-1-{fake.account}"] = "999999999999"
    with pytest.raises(DataAccessError, match=r"access denied.*; name a bucket: Session\(default_bucket=\.\.\.\)"):
        Session(fake).default_bucket()


@pytest.fixture(params=["account", "machine"])
def session(request, data_dir, no_credentials):
    """A session of a fake account, and one of this machine: their buckets behave alike."""
    return Session(FakeSageMaker()) if request.param == "account" else Session(local_mode=True)


def test_data_go_to_a_bucket_and_come_back(session, folder, tmp_path):
    bucket = session.default_bucket()
    assert session.upload_data(str(folder)) == f"s3://{bucket}/data"
    assert session.upload_data(folder / "one.txt", bucket=bucket, key_prefix="/p/q/") == f"s3://{bucket}/p/q/one.txt"
    assert session.list_s3_files(bucket, "") == ["data/a/ü 'two'", "data/one.txt", "p/q/one.txt"]
    assert session.list_s3_files(bucket, "data/o") == ["data/one.txt"]
    assert session.list_s3_files(bucket, "data/one.txt/") == session.list_s3_files(bucket, "dat/") == []
    assert session.list_s3_files(bucket, "nothing") == []
    assert S3Downloader.list(f"file://{folder}") == [f"file://{folder}/one.txt"]
    assert session.download_data(tmp_path / "down", bucket, "data") == [
        str(tmp_path / "down/a/ü 'two'"),
        str(tmp_path / "down/one.txt"),
    ]
    assert (tmp_path / "down/a/ü 'two'").read_text() == "22"
    with pytest.warns(UserWarning, match="/nothing: there are no such objects, nothing was downloaded"):
        assert session.download_data(tmp_path / "nothing", bucket, "nothing") == []
    assert session.download_data(str(tmp_path / "one"), bucket, "data/one.txt") == [str(tmp_path / "one/one.txt")]


def test_an_upload_calls_back_with_its_bytes_and_has_the_extra_arguments(fake, folder):
    sizes = []
    Session(fake).upload_data(folder, None, "counted", sizes.append, extra_args={"ContentType": "text/plain"})
    assert sum(sizes) == 3
    assert [call.arguments.get("ContentType") for call in fake.calls if "Body" in call.arguments] == ["text/plain"] * 2


JOINED = {
    ("s3://", "//foo/", "/bar///baz"): "s3://foo/bar/baz", ("/foo", "bar/"): "foo/bar",
    ("foo", "", None, "bar"): "foo/bar", ("s3://b", "k/"): "s3://b/k", (): "",
}  # fmt: skip


def test_paths_are_joined_and_divided_as_in_v2(fake):
    assert {parts: s3_path_join(*parts) for parts in JOINED} == JOINED
    assert s3_path_join("s3://b", "k", with_end_slash=True) == "s3://b/k/"
    assert parse_s3_url("s3://b/k/l") == ("b", "k/l")
    with pytest.raises(DataError, match=r"'b/k' is not an S3 URI; write s3://bucket/key"):
        parse_s3_url("b/k")
    session = Session(fake, default_bucket="mine", default_bucket_prefix="team")
    assert determine_bucket_and_prefix("b", "k", session) == ("b", "k")
    assert determine_bucket_and_prefix(None, "k", session) == ("mine", "team/k")


def test_uploader_and_downloader_do_the_same_by_uri(session, folder, tmp_path):
    prefix = f"s3://{session.default_bucket()}/x"
    own = {"sagemaker_session": session}
    assert S3Uploader.upload(str(folder), f"{prefix}/data/", **own) == f"{prefix}/data"
    assert S3Uploader.upload(str(folder / "one.txt"), f"{prefix}/one", "alias/key", **own) == f"{prefix}/one/one.txt"
    assert S3Uploader.upload_string_as_file_body("ä", f"{prefix}/text", **own) == f"{prefix}/text"
    assert S3Uploader.upload_bytes(b"\xff", f"{prefix}/bytes", **own) == f"{prefix}/bytes"
    assert session.upload_string_as_file_body("ö", session.default_bucket(), "x/more") == f"{prefix}/more"
    assert session.read_s3_file(session.default_bucket(), "x/more") == "ö"
    assert S3Downloader.read_file(f"{prefix}/text", **own) == "ä"
    assert S3Downloader.read_bytes(f"{prefix}/bytes", **own) == b"\xff"
    assert S3Downloader.list(f"{prefix}/data", **own) == [f"{prefix}/data/a/ü 'two'", f"{prefix}/data/one.txt"]
    assert S3Downloader.download(f"{prefix}/text", str(tmp_path / "down"), **own) == [str(tmp_path / "down/text")]
    with pytest.raises(DataError, match=r"/bytes: the object is not UTF-8 text: .*; use S3Downloader\.read_bytes"):
        S3Downloader.read_file(f"{prefix}/bytes", **own)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s, _: s.upload_data("/no/such"), DataNotFoundError, "path '/no/such' does not exist; give a file or"),
        (
            lambda s, f: s.upload_data(f / "one.tx"),
            DataNotFoundError,
            "one.tx' does not exist; did you mean 'one.txt'?",
        ),
        (lambda s, f: s.upload_data(f / "empty"), DataError, "empty' is an empty directory; put files there"),
        (lambda s, f: s.upload_data(f, bucket="s3://b/x"), SpecError, "is 's3://b/x'; give the bucket's name: 'b'"),
        (lambda s, f: s.upload_data(f, key_prefix=None), SpecError, "key_prefix is None; give a string"),
        (lambda s, _: s.upload_string(b"x", "k"), SpecError, "body is bytes; give a string; S3Uploader.upload_bytes"),
        (lambda s, _: S3Downloader.list("b/k", s), DataError, "'b/k' is not an S3 URI; write s3://bucket/key"),
        (
            lambda s, _: S3Downloader.list(None, s),
            SpecError,
            "the URI is None; give a string such as 's3://bucket/key'",
        ),
        (lambda s, _: s.uplaod_data, AttributeError, "'Session' object has no attribute 'uplaod_data'"),
        (lambda s, _: S3Downloader.download("s3://b", ".", "key", s), SpecError, "kms_key is 'key'; leave it out"),
        (
            lambda s, _: S3Uploader.upload_bytes("x", "s3://b/k", None, s),
            SpecError,
            "b is str; give bytes; upload_string",
        ),
        (lambda s, _: s.describe_training_job("nothing"), JobNotFoundError, "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_calls_name_what_is_wrong_and_the_next_step(session, folder, call, error, text):
    (folder / "empty").mkdir()
    with pytest.raises(error) as caught:
        call(session, folder)
    assert text in str(caught.value)


def test_what_is_not_a_file_is_refused_before_anything_is_uploaded(session, folder):
    os.mkfifo(folder / "z-fifo")
    with pytest.raises(DataError, match="z-fifo' is not a regular file; remove it, or name another path"):
        session.upload_data(folder)
    assert session.list_s3_files(session.default_bucket(), "") == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"boto_session": "eu-west-1"}, "boto_session is 'eu-west-1'; give boto3.Session"),
        ({"local_mode": "yes"}, "local_mode is 'yes'; give True or False"),
        ({"local_mode": True, "default_bucket": "b"}, "default_bucket is 'b', but local_mode is True"),
        ({"default_bucket": "s3://b", "local_mode": False}, "default_bucket is 's3://b'; give the bucket's name: 'b'"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(arguments, text):
    with pytest.raises(SpecError) as caught:
        Session(**arguments)
    assert text in str(caught.value)


def test_without_credentials_a_session_is_one_of_this_machine_and_warns(data_dir, no_credentials):
    with pytest.warns(UserWarning, match="no AWS credentials: this session's bucket is a directory of this machine"):
        session = Session()
    assert (session.local_mode, session.default_bucket()) == (True, "scriptmode_local")
    assert (session.boto_region_name, session.account_id()) == ("us-east-1", "000000000000")
    assert session.boto_session.region_name == "us-east-1"
    assert repr(session) == "Session(local_mode=True)"
    with pytest.raises(CredentialsError, match=r"client\.list_apps calls Amazon.*TrainingJob\.attach.*aws conf"):
        session.sagemaker_client.list_apps()


def test_without_credentials_a_bucket_in_s3_is_refused(data_dir, no_credentials, folder):
    with pytest.raises(CredentialsError, match="default_bucket is 'mine', a bucket in S3, but there are no AWS cred"):
        Session(default_bucket="mine")
    with pytest.raises(CredentialsError, match=r"s3://mine/data/.*credentials.*aws configure"):
        Session(local_mode=True).upload_data(folder, bucket="mine")
    with pytest.raises(CredentialsError, match=r"s3://mine: there are no AWS credentials; run 'aws configure'"):
        S3Downloader.list("s3://mine")


def test_credentials_without_a_region_or_of_a_missing_profile_are_refused(account_settings, monkeypatch):
    assert repr(Session()) == "Session(boto_region_name='eu-west-1')"
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(CredentialsError, match="no AWS region is set; set AWS_DEFAULT_REGION"):
        Session()
    monkeypatch.setenv("AWS_PROFILE", "nothing")
    with pytest.raises(PlatformError, match=r"config profile \(nothing\) could not be found; run 'aws configure'"):
        Session()


def test_the_directory_is_of_this_user_alone_and_keeps_keys_inside(local, data_dir, tmp_path):
    local.upload_string("x", "a")
    assert stat.S_IMODE((data_dir / "bucket").stat().st_mode) == 0o700
    assert (data_dir / "bucket/a").read_text() == "x"
    (data_dir / "bucket/link").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("secret")
    with pytest.raises(DataError, match="the key leads out of the bucket's directory"):
        local.upload_string("x", "../../outside")
    with pytest.raises(DataError, match="link/secret"):
        local.read_s3_file("scriptmode_local", "link/secret")
    for outside in ("link/new", "link/new/x"):
        with pytest.raises(DataError, match="cannot be written: .*the link leads out of the directory"):
            local.upload_string("x", outside)
    assert not (tmp_path / "new").exists()
    with pytest.raises(DataError, match="written: .*; use another key: a name cannot be both a file and a directory"):
        local.upload_string("x", "a/b")
    with pytest.raises(DataNotFoundError, match="scriptmode_local/a/b: there is no such object"):
        local.read_s3_file("scriptmode_local", "a/b")
    with pytest.raises(DataNotFoundError, match="scriptmode_local: there is no such object"):
        S3Downloader.read_file(BUCKET)
    with pytest.raises(DataError, match=r"cannot be stored as .*bucket/a': .*; name another directory"):
        local.download_data(data_dir / "bucket/a", "scriptmode_local", "a")
    with pytest.raises(DataError, match="this is not the key of an object"):
        S3Uploader.upload_bytes(b"", f"{BUCKET}/a/")


def test_an_object_appears_when_it_is_complete_and_with_the_rights_of_other_files(local, data_dir, tmp_path):
    local.upload_string("x", "other")
    (tmp_path / "file").touch()
    assert (data_dir / "bucket/other").stat().st_mode == (tmp_path / "file").stat().st_mode
    os.mkfifo(tmp_path / "slow")
    upload = threading.Thread(target=LocalBucket().upload_file, args=(tmp_path / "slow", f"{BUCKET}/big"))
    upload.start()
    with (tmp_path / "slow").open("wb") as slow:
        slow.write(b"half")
        slow.flush()
        until(lambda: list(data_dir.rglob(".scriptmode-new-*")))
        assert local.list_s3_files("scriptmode_local", "") == ["other"]
    upload.join()
    assert local.read_s3_file("scriptmode_local", "big") == "half"
    assert not list(data_dir.rglob(".scriptmode-new-*"))


def test_a_download_that_fails_leaves_the_older_file(tmp_path):
    (tmp_path / "kept").write_text("older")

    def write(_, path):
        path.write_text("half")
        raise OSError

    with pytest.raises(DataError):
        write_files("s3://b/kept", {"s3://b/kept": "kept"}, tmp_path, write)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "older")]


def test_the_execution_role_is_that_of_the_session(fake):
    session = Session(fake)
    fake.caller_arn = "arn:aws:sts::123456789012:assumed-role/notebook/SageMaker"
    fake.roles["notebook"] = "arn:aws:iam::123456789012:role/service-role/notebook"
    assert get_execution_role(session) == session.get_caller_identity_arn() == fake.roles["notebook"]
    assert session.expand_role("notebook") == fake.roles["notebook"]


@pytest.mark.parametrize(
    ("arguments", "inputs", "text"),
    [
        ({}, f"{BUCKET}/train", f"channel 'training' is '{BUCKET}/train', a location on this machine; Amazon Sage"),
        ({"output_path": f"{BUCKET}/out"}, None, f"output_path is '{BUCKET}/out', a location on this machine"),
        ({}, "file:///x", "channel 'training' is 'file:///x'"),
        ({"output_path": "file:///x"}, None, "output_path is 'file:///x'"),
        ({"checkpoint_s3_uri": "file:///x"}, None, "checkpoint_s3_uri is 'file:///x'"),
        ({"source_dir": "file:///x.tar.gz"}, None, "source_dir is 'file:///x.tar.gz'"),
        ({"role": LOCAL_ROLE}, None, f"role is '{LOCAL_ROLE}', which is the role of jobs on this machine"),
    ],
    ids=["input", "output", "file input", "file output", "checkpoints", "source", "role"],
)
def test_amazon_sagemaker_refuses_what_is_on_this_machine(fake, code, arguments, inputs, text):
    made = estimator(code, fake, **arguments)
    with pytest.raises(SpecError) as caught:
        made.request(inputs)
    assert text in str(caught.value)


def test_amazon_sagemaker_refuses_a_session_of_this_machine(local, code):
    made = estimator(code, local, role=None)
    with pytest.raises(SpecError, match="of this machine, as without AWS credentials.*; give a session with credent"):
        made.fit()


def test_jobs_on_this_machine_take_sessions_with_boto3s_own_settings(fake, code, data_dir, account_settings):
    arguments = {"entry_point": "train.py", "source_dir": code, "instance_type": "local_process"}
    assert Estimator(sagemaker_session=Session(), **arguments).request()["ResourceConfig"]["InstanceCount"] == 1
    with pytest.raises(SpecError, match=r"with boto3's own settings for S3; leave sagemaker_session out"):
        Estimator(sagemaker_session=Session(fake), **arguments).request()


def sagemaker_sdk_session(fake):
    """A session with the attributes of the SageMaker SDK's."""
    return SimpleNamespace(
        boto_session=fake,
        boto_region_name=fake.region_name,
        sagemaker_client=fake.client("sagemaker"),
        _default_bucket="theirs",
        default_bucket_prefix=None,
        endpoint_in_service_or_not="its own",
    )


SESSIONS = {
    "a Session": lambda fake: Session(fake, default_bucket="ours"),
    "a boto3 session": lambda fake: fake,
    "a session of the SageMaker SDK": sagemaker_sdk_session,
}


@pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS.keys())
def test_the_session_of_an_estimator_is_a_session_before_and_after_fit(fake, code, make):
    given = make(fake)
    made = estimator(code, given)
    before = made.sagemaker_session
    assert isinstance(before, Session)
    assert before == given
    assert before.boto_session is fake
    assert before.boto_region_name == "ap-south-1"
    bucket = before.default_bucket()
    job = made.fit(wait=False)
    assert made.sagemaker_session is before
    found = before.describe_training_job(job.name)
    assert found["TrainingJobName"] == job.name
    assert before.sagemaker_client.describe_training_job(TrainingJobName=job.name)["TrainingJobArn"] in found.values()
    attached = Estimator.attach(job.name, given)
    others = [job, TrainingJob.attach(job.name, given), attached]
    assert [each.sagemaker_session == before for each in others] == [True] * 3
    # It can be given to another estimator, with all that it has.
    again = estimator(code, attached.sagemaker_session, output_path=None)
    assert again.sagemaker_session is attached.sagemaker_session
    assert again.sagemaker_session.default_bucket() == bucket
    assert again.request()["OutputDataConfig"]["S3OutputPath"] == f"s3://{bucket}"
    made.sagemaker_session = other = FakeSageMaker()
    assert (made.sagemaker_session == other, made.sagemaker_session == before) == (True, False)
    assert made.sagemaker_session.boto_session is other


def test_a_wrapped_session_keeps_its_own_attributes_and_its_hash(fake, code):
    theirs = type("Theirs", (), vars(sagemaker_sdk_session(fake)))()
    made = estimator(code, theirs).sagemaker_session
    assert made.endpoint_in_service_or_not == "its own"
    assert {theirs: "found"}[made] == "found"
    assert estimator(code, fake).sagemaker_session.client("sagemaker").meta.region_name == "ap-south-1"
    assert Session(fake) != Session(fake, default_bucket="ours")
    assert Session(fake) == Session(fake) != Session(FakeSageMaker())


def test_a_session_waits_for_jobs_prints_their_logs_and_stops_them(fake, code, capsys):
    session = Session(fake)
    job = estimator(code, session).fit(wait=False)
    assert session.wait_for_job(job.name)["TrainingJobStatus"] == "Completed"
    session.logs_for_job(job.name, wait=True)
    assert capsys.readouterr().out.count("-- Completed: Training job completed\n") == 2
    other = estimator(code, session).fit(wait=False)
    session.stop_training_job(other.name)
    with pytest.raises(TrainingJobStopped):
        session.wait_for_job(other.name, poll=1)


def test_the_session_of_an_estimator_of_this_machine_needs_no_credentials(code, data_dir, no_credentials):
    made = TensorFlow(entry_point="train.py", source_dir=code, instance_type="local_process")
    session = made.sagemaker_session
    assert isinstance(session, Session)
    assert made.sagemaker_session is session
    assert (session.local_mode, session.boto_region_name, session.default_bucket()) == (
        True, "us-east-1", "scriptmode_local",
    )  # fmt: skip
    assert session.boto_session.region_name == "us-east-1"
    assert session == Session(local_mode=True)
    job = made.fit(wait=False)
    assert session.wait_for_job(job.name, poll=0.1)["TrainingJobStatus"] == "Completed"
    client = session.sagemaker_client
    assert client.describe_training_job(TrainingJobName=job.name) == session.describe_training_job(job.name)
    assert made.sagemaker_session is session
    assert TrainingJob.attach(job.name).sagemaker_session == session
    # Given to another one, it is this machine's there too.
    again = TensorFlow(
        entry_point="train.py", source_dir=code, instance_type="local_process", sagemaker_session=session
    )
    assert again.request()["RoleArn"] == LOCAL_ROLE
    assert again.sagemaker_session is session
