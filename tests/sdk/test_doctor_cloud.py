"""An account and its settings, and a Slurm cluster as the doctor sees them: other programs answer for them."""

import sys

import pytest
from fakes.answering_server import answering
from fakes.slurm_programs import Programs

from scriptmode.doctor import _aws_checks as aws_checks
from scriptmode.errors import ConfigError, PlatformError
from scriptmode_slurm._engine import checks

IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ada</Arn><UserId>A</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
REFUSAL = """<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>{0}</Code><Message>{1}</Message></Error></ErrorResponse>"""


@pytest.fixture
def account(monkeypatch, no_settings, account_settings):
    """Run a check while a service answers so to STS."""

    def look(status=200, body=IDENTITY, *, check=aws_checks.credentials):
        def answer(headers, _):
            is_sagemakers = "X-Amz-Target" in headers
            return (200, b'{"TrainingJobSummaries": []}') if is_sagemakers else (status, body.encode())

        with answering(answer) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
            return check()

    return look


@pytest.mark.slow
def test_account_region_and_service_are_reported(account):
    assert account() == "arn:aws:iam::123456789012:user/ada, from env"
    assert account(check=aws_checks.region) == "eu-west-1"
    assert account(check=aws_checks.service) == "answers in eu-west-1"


def test_expired_credentials_are_reported_with_their_source(account):
    with pytest.raises(PlatformError) as raised:
        account(403, REFUSAL.format("ExpiredToken", "The security token is expired"))
    assert "from env, but the caller's identity: The security token is expired (Exp" in raised.value.message
    assert raised.value.advice == "check the credentials and their permissions"


def test_an_endpoint_without_a_server_names_its_variable(account):
    account()
    # No server listens any more.
    with pytest.raises(PlatformError, match="AWS could not be reached") as raised:
        aws_checks.credentials()
    assert "nothing listens there" in raised.value.advice
    assert "AWS_ENDPOINT_URL" in raised.value.advice


def test_a_profile_that_there_is_not_is_named(no_settings, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "trianing")
    with pytest.raises(PlatformError, match=r"config profile \(trianing\) could not be found") as raised:
        aws_checks.credentials()
    assert "AWS_PROFILE" in raised.value.advice


def test_a_config_file_is_ok_with_the_role_that_it_names_or_a_problem(no_settings, tmp_path, monkeypatch):
    file = tmp_path / "config.yaml"
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(file))
    file.write_text("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {RoleArn: training}}\n")
    assert aws_checks.config_file() == "role training"
    file.write_text("SchemaVersion: ['1.0'\n")
    with pytest.raises(ConfigError, match=str(file)):
        aws_checks.config_file()


#: Runs the command of a step here, after the options.
RUN = 'while [ "$1" != "$PYTHON" ]; do shift; done; exec "$@"'


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
    return Programs(tmp_path / "bin")


@pytest.mark.parametrize(
    ("own", "where", "option"),
    [("", "the default partition", set()), (",partition=gpu", "partition gpu", {"--partition=gpu"})],
)
def test_a_node_of_the_partition_writes_what_this_machine_reads(programs, tmp_path, monkeypatch, own, where, option):
    monkeypatch.setenv("SCRIPTMODE_SLURM", f"account=vision{own}")
    programs.add("srun", f'echo "$@" >>"{tmp_path}/args"; {RUN}')
    assert checks.share_files() == f"a node of {where} can use {tmp_path}/data and {sys.executable}"
    assert list((tmp_path / "data").iterdir()) == []
    words = {*(tmp_path / "args").read_text().split()}
    assert {word for word in words if word.startswith(("--partition", "--account"))} == {"--account=vision", *option}


SHARED = "name a directory that all nodes share in SCRIPTMODE_DATA_DIR"
#: What srun says before it fails, none if it does not, what the error says, and how its advice begins.
STEPS = {
    "a directory that nodes lack": ("no such file", "the default partition: srun: no such file", SHARED),
    "files that do not reach this machine": (
        None, "this machine does not see what a node of the default partition wrote", SHARED,
    ),
    "a refusal": (
        "srun: error: Unable to allocate resources: Invalid account",
        "srun: Unable to allocate resources: Invalid account", "see whether",
    ),
    "no configuration": (
        "srun: fatal: Could not establish a configuration source", "srun finds no slurm.conf",
        "use a login node, with Slurm's commands on PATH",
    ),
    "no answer": (
        "srun: error: Socket timed out on send/recv operation", "Socket timed out",
        "see whether slurmctld runs: scontrol ping; then try again",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("said", "message", "advice"), STEPS.values(), ids=STEPS)
def test_a_step_that_fails_or_writes_elsewhere_is_a_problem_with_its_next_step(programs, said, message, advice):
    programs.add("srun", f"echo '{said}' >&2; exit 1" if said else "exit 0")
    with pytest.raises(PlatformError, match=message) as raised:
        checks.share_files()
    assert raised.value.advice.startswith(advice)


def test_a_busy_partition_is_not_a_problem(programs):
    programs.add("srun", "echo 'srun: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1")
    assert checks.share_files().endswith("srun: Unable to allocate resources: Requested nodes are busy")
