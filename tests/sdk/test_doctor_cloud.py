"""An account, its clock and settings, and a Slurm cluster as the doctor sees them: other programs answer for them."""

import email.utils
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from fakes.slurm_programs import Programs

from scriptmode.doctor import aws_checks, slurm_checks
from scriptmode.errors import ConfigError
from scriptmode.platforms.local.store import data_dir_checks

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
    assert "from env, but the caller's identity: The security token is expired (Exp" in found["credentials"].found
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


def test_a_config_file_is_ok_with_the_role_that_it_names_or_a_problem(no_settings, tmp_path, monkeypatch):
    file = tmp_path / "config.yaml"
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(file))
    file.write_text("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {RoleArn: training}}\n")
    (check,) = aws_checks.config_file()
    assert (check.outcome, check.found) == ("ok", "can be read, or does not exist; it has role training")
    file.write_text("SchemaVersion: ['1.0'\n")
    with pytest.raises(ConfigError, match=str(file)) as raised:
        next(aws_checks.config_file())
    assert raised.value.advice == "correct the file"


def test_a_data_directory_on_a_machine_with_another_time_is_a_warning(no_settings, monkeypatch):
    monkeypatch.setattr(data_dir_checks, "probe_writable", lambda _: -30.0)
    clock = by_name(aws_checks.account(asks_service=False))["clock"]
    assert clock.outcome == "warning"
    assert "30 s ahead of that of the data directory's file system" in clock.found
    assert clock.advice


#: Runs the command of a step here, after the options.
RUN = 'while [ "$1" != "$PYTHON" ]; do shift; done; exec "$@"'


STATES = {"batch": "UP", "gpu": "UP", "old": "DOWN"}


@pytest.fixture
def programs(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "data").mkdir()
    for name, value in {
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "PYTHON": sys.executable,
        "SCRIPTMODE_DATA_DIR": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path),
        "SCRIPTMODE_SLURM": "account=vision",
    }.items():
        monkeypatch.setenv(name, value)
    found = Programs(tmp_path / "bin")
    partitions = "".join(f"PartitionName={name} State={state} TotalNodes=1\n" for name, state in STATES.items())
    found.add("scontrol", f"case \"$*\" in *config) echo 'SLURM_VERSION = 22.05.8';; *) printf '{partitions}';; esac")
    return found


def test_a_node_of_each_partition_that_is_up_writes_what_this_machine_reads(programs, tmp_path):
    programs.add("srun", f'echo "$@" >>"{tmp_path}/args"; {RUN}')
    answers, shared = slurm_checks.cluster()
    assert (answers.outcome, answers.found) == ("ok", "22.05.8 answers, with 3 partitions: batch, gpu, old")
    assert shared.outcome == "ok"
    assert shared.found.startswith("batch (")
    assert shared.found.endswith(f"can use {tmp_path}/data and {sys.executable}")
    assert list((tmp_path / "data").iterdir()) == []
    steps = (tmp_path / "args").read_text().splitlines()
    assert sorted(line.split()[0] for line in steps if line.startswith("--partition")) == [
        "--partition=batch",
        "--partition=gpu",
    ]
    assert all("--account=vision" in line for line in steps if line.startswith("--partition"))


def test_a_data_directory_that_nodes_do_not_have_is_a_problem(programs, tmp_path):
    text = "node1 does not have /home/me of this machine"
    programs.add("srun", f"echo '{text}' >&2; echo 'srun: error: node1: task 0: Exited with exit code 1' >&2; exit 1")
    _, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert shared.found == f"jobs of {tmp_path}/data cannot run: srun: {text} (partition batch, gpu)"
    assert "SCRIPTMODE_DATA_DIR" in shared.advice


def test_files_of_nodes_that_do_not_reach_this_machine_are_a_problem(programs, tmp_path):
    programs.add("srun", "exit 0")
    _, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert f"this machine does not see what a node wrote to {tmp_path}/data" in shared.found


def test_a_data_directory_that_cannot_be_written_is_a_problem(programs, tmp_path, monkeypatch):
    programs.add("srun", RUN)
    too_long = tmp_path / ("x" * 300)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(too_long))
    *_, shared = slurm_checks.cluster()
    assert shared.outcome == "problem"
    assert f"{too_long} cannot be used: File name too long" in shared.found
    assert shared.advice.startswith("make it writable")


def test_a_busy_partition_is_a_warning(programs):
    programs.add("srun", "echo 'srun: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1")
    _, shared = slurm_checks.cluster()
    assert (shared.outcome, shared.prevents) == ("warning", False)
    assert "no node of batch, gpu was free within 15 s" in shared.found
