"""The account, the clock and the settings as the doctor sees them: a server on loopback answers for AWS."""

import email.utils
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scriptmode.doctor import aws_checks
from scriptmode.errors import ConfigError
from scriptmode.platforms.local.store import probe

IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ada</Arn><UserId>A</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{0}</Code><Message>{1}</Message></Error></ErrorResponse>"""


@contextmanager
def answering(status, body, ahead):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            asks_sts = "X-Amz-Target" not in self.headers
            content = (body if asks_sts else '{"TrainingJobSummaries": []}').encode()
            self.send_response_only(status if asks_sts else 200)
            self.send_header("Date", email.utils.formatdate(time.time() + ahead, usegmt=True))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def by_name(findings):
    return dict(zip(("credentials", "Region", "clock", "Amazon SageMaker"), findings))


@pytest.fixture(autouse=True)
def data_dir(monkeypatch, tmp_path):
    """A data directory that exists: the clock check writes to it, and leaves it out where there is none."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))


@pytest.fixture
def account(monkeypatch, no_settings):
    """Look at the account of a server that answers so."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")

    def look(status=200, body=IDENTITY, *, ahead=0.0, asks_service=False):
        with answering(status, body, ahead) as endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
            return by_name(aws_checks.account(asks_service))

    return look


@pytest.mark.slow
def test_account_region_and_clock_are_reported(account):
    found = account(asks_service=True)
    assert [check.outcome for check in found.values()] == ["ok"] * 4
    assert found["credentials"].found == "arn:aws:iam::123456789012:user/ada, from env"
    assert found["Region"].found == "eu-west-1"
    assert found["clock"].found.endswith("UTC, as AWS's and the data directory's")
    assert found["Amazon SageMaker"].found == "answers in eu-west-1"


@pytest.mark.parametrize(("ahead", "words"), [(3600, "behind AWS's clock"), (-3600, "ahead of AWS's clock")])
def test_a_clock_that_is_an_hour_off_is_a_problem_though_the_signature_is_refused(account, ahead, words):
    body = REFUSAL.format("SignatureDoesNotMatch", "Signature expired")
    found = account(403, body, ahead=ahead)
    assert found["clock"].outcome == "problem"
    assert words in found["clock"].found
    assert "3,600 s" in found["clock"].found or "3,599 s" in found["clock"].found or "3,601 s" in found["clock"].found
    assert "timedatectl set-ntp true" in found["clock"].advice
    assert found["credentials"].outcome == "problem"


def test_expired_credentials_are_reported_with_their_source(account):
    found = account(403, REFUSAL.format("ExpiredToken", "The security token is expired"), asks_service=True)
    assert found["credentials"].outcome == "problem"
    assert (
        "from env, but the caller's identity: The security token is expired (ExpiredToken)"
        in found["credentials"].found
    )
    assert found["credentials"].advice == "check the credentials and their permissions"
    assert found["Amazon SageMaker"].advice == "see credentials"


def test_an_endpoint_without_a_server_names_its_variable(account, monkeypatch):
    account()
    # No server listens any more.
    found = by_name(aws_checks.account(asks_service=False))
    assert "AWS could not be reached" in found["credentials"].found
    assert "AWS_ENDPOINT_URL" in found["credentials"].advice


def test_a_profile_that_there_is_not_is_named(no_settings, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "trianing")
    found = by_name(aws_checks.account(asks_service=False))
    assert found["credentials"].found.startswith("the AWS configuration has no profile 'trianing'")
    assert "aws configure --profile trianing" in found["credentials"].advice


def test_without_credentials_it_is_said_what_needs_them(no_settings):
    found = by_name(aws_checks.account(asks_service=False))
    assert "Amazon SageMaker and s3:// URIs need them" in found["credentials"].found
    assert "run 'aws configure'" in found["credentials"].advice
    assert "AWS_DEFAULT_REGION" in found["Region"].advice


def test_a_data_directory_on_a_machine_with_another_time_is_a_warning(no_settings, monkeypatch):
    monkeypatch.setattr(probe, "probe_writable", lambda _: -30.0)
    clock = by_name(aws_checks.account(asks_service=False))["clock"]
    assert clock.outcome == "warning"
    assert "30 s ahead of that of the data directory's file system" in clock.found
    assert clock.advice


def test_a_config_file_that_names_the_role_is_ok(no_settings, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {RoleArn: training}}\n")
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(tmp_path / "config.yaml"))
    (check,) = aws_checks.config_file()
    assert (check.outcome, check.found) == ("ok", "can be read, or does not exist; it has role training")


def test_a_config_file_that_is_not_yaml_is_a_problem_with_the_place(no_settings, tmp_path, monkeypatch):
    (tmp_path / "config.yaml").write_text("SchemaVersion: ['1.0'\n")
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(tmp_path / "config.yaml"))
    with pytest.raises(ConfigError) as raised:
        next(aws_checks.config_file())
    assert str(tmp_path / "config.yaml") in raised.value.message
    assert raised.value.advice == "correct the file"


@pytest.mark.parametrize(
    ("file", "outcome"),
    [("image_uri_config/tensorflow.json", "ok"), ("core/image_uri_config/tensorflow.json", "ok"), ("x.py", "warning")],
    ids=["version 2", "version 3", "another package of that name"],
)
def test_images_are_looked_up_where_the_package_has_its_table(tmp_path, monkeypatch, file, outcome):
    path = tmp_path / "sagemaker" / file
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.delitem(sys.modules, "sagemaker", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (check,) = aws_checks.images()
    found = str(path.parent) if outcome == "ok" else "image_uri needs nothing"
    assert (check.outcome, found in check.found) == (outcome, True)
