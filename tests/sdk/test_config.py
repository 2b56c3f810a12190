import os
import textwrap

import pytest

from scriptmode._core.aws.sagemaker_config import SageMakerConfig, parse_config, read_config
from scriptmode.errors import ConfigError, CredentialsError, DataError, SpecError

ROLE = "arn:aws:iam::123456789012:role/training"
WHOLE = f"""
    SchemaVersion: '1.0'
    CustomParameters: {{JobName: anything}}
    SageMaker:
      PythonSDK:
        Modules:
          Session: {{DefaultS3Bucket: our-bucket, DefaultS3ObjectKeyPrefix: team/one}}
          Estimator: {{DebugHookConfig: false}}
          RemoteFunction: {{InstanceType: ml.m5.large}}
          ModelTrainer: {{whatever: 1}}
          TelemetryOptOut: true
      ProcessingJob: {{RoleArn: another}}
      EndpointConfig: [of no interest]
      TrainingJob:
        EnableInterContainerTrafficEncryption: true
        EnableNetworkIsolation: false
        Environment: {{MODE: quick, EMPTY: ''}}
        OutputDataConfig: {{KmsKeyId: output-key}}
        ProfilerConfig: {{DisableProfiler: true}}
        ResourceConfig: {{VolumeKmsKeyId: volume-key}}
        RoleArn: {ROLE}
        Tags: [{{Key: team, Value: vision}}, {{Key: cost, Value: ''}}]
        VpcConfig: {{Subnets: [subnet-1, subnet-2], SecurityGroupIds: [sg-1]}}
"""


class Machine:
    """A machine's places for config files, and a bucket."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = {}
        self.objects = {}
        self.fetched = []

    def write(self, path, text):
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    def site(self, text):
        return self.write("site/sagemaker/config.yaml", text)

    def user(self, text):
        return self.write("user/sagemaker/config.yaml", text)

    def fetch(self, uri):
        self.fetched.append(uri)
        if uri not in self.objects:
            raise DataError(f"{uri}: no object")
        return self.objects[uri].encode()

    def read(self):
        return read_config(self.environ, self.fetch)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return Machine(tmp_path)


def job(text):
    """A file whose TrainingJob section is this."""
    return "SchemaVersion: '1.0'\nSageMaker:\n  TrainingJob:\n" + textwrap.indent(textwrap.dedent(text).strip(), "    ")


def test_everything_that_concerns_a_training_job_is_read(machine):
    machine.user(WHOLE)
    assert machine.read() == SageMakerConfig(
        role=ROLE, output_kms_key="output-key", volume_kms_key="volume-key", subnets=("subnet-1", "subnet-2"),
        security_group_ids=("sg-1",), network_isolation=False, encrypt_traffic=True, disable_profiler=True,
        debug_hook=False, environment={"MODE": "quick", "EMPTY": ""}, tags=(("team", "vision"), ("cost", "")),
        default_bucket="our-bucket", default_bucket_prefix="team/one",
    )  # fmt: skip


def test_the_user_s_file_goes_over_the_administrator_s(machine):
    machine.site(
        job("""
            RoleArn: site-role
            EnableNetworkIsolation: true
            Environment: {A: site, B: site}
            Tags: [{Key: owner, Value: site}]
            VpcConfig: {Subnets: [site-1, site-2], SecurityGroupIds: [site-sg]}
        """)
    )
    machine.user(
        job("""
            RoleArn: user-role
            Environment: {B: user, C: user}
            Tags: [{Key: team, Value: user}]
            VpcConfig: {Subnets: [user-1]}
        """)
    )
    assert machine.read() == SageMakerConfig(
        role="user-role", network_isolation=True, environment={"A": "site", "B": "user", "C": "user"},
        tags=(("team", "user"),), subnets=("user-1",), security_group_ids=("site-sg",),
    )  # fmt: skip


@pytest.mark.parametrize("variable", ["SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE"])
def test_a_variable_moves_a_file(machine, variable):
    machine.site(job("RoleArn: site"))
    machine.user(job("OutputDataConfig: {KmsKeyId: user}"))
    machine.write("elsewhere/config.yaml", job("ResourceConfig: {VolumeKmsKeyId: moved}"))
    machine.environ[variable] = ""
    assert machine.read() == SageMakerConfig(role="site", output_kms_key="user")
    machine.environ[variable] = str(machine.folder / "elsewhere")
    kept = {"output_kms_key": "user"} if "ADMIN" in variable else {"role": "site"}
    assert machine.read() == SageMakerConfig(volume_kms_key="moved", **kept)
    machine.environ[variable] = os.devnull
    assert machine.read() == SageMakerConfig(**kept)


@pytest.mark.parametrize(
    ("value", "uri"),
    [
        ("s3://b/team/settings.yaml", "s3://b/team/settings.yaml"),
        ("s3://b/team/", "s3://b/team/config.yaml"),
        ("s3://b", "s3://b/config.yaml"),
    ],
)
def test_a_variable_names_an_object(machine, value, uri):
    machine.objects[uri] = job("RoleArn: r")
    machine.environ["SAGEMAKER_ADMIN_CONFIG_OVERRIDE"] = value
    assert machine.read().role == "r"
    assert machine.fetched == [uri]


def test_a_named_place_without_a_file_is_an_error(machine):
    machine.environ["SAGEMAKER_USER_CONFIG_OVERRIDE"] = str(machine.folder / "nowhere.yaml")
    with pytest.raises(ConfigError, match="USER_CONFIG_OVERRIDE is '.*nowhere.yaml', which does not exist; name"):
        machine.read()
    machine.environ["SAGEMAKER_USER_CONFIG_OVERRIDE"] = str(machine.folder)
    with pytest.raises(ConfigError, match="which is a directory without a config.yaml; name the config file, or unset"):
        machine.read()


def test_a_named_object_that_is_not_there_is_an_error(machine):
    machine.environ["SAGEMAKER_ADMIN_CONFIG_OVERRIDE"] = "s3://b/team"
    with pytest.raises(ConfigError, match="OVERRIDE is 's3://b/team', but .*: s3://b/team/config.yaml: no o") as caught:
        machine.read()
    assert isinstance(caught.value.__cause__, DataError)


def test_missing_credentials_keep_their_own_error(machine):
    def fetch(uri):
        raise CredentialsError(f"{uri}: there are no AWS credentials")

    with pytest.raises(CredentialsError):
        read_config({"SAGEMAKER_ADMIN_CONFIG_OVERRIDE": "s3://b/team"}, fetch)


def test_a_file_that_is_a_folder_is_an_error(machine):
    (machine.folder / "user" / "sagemaker" / "config.yaml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="config.yaml' cannot be read: Is a directory; make it readable"):
        machine.read()


#: Of the section TrainingJob.
WRONG_SECTIONS = [
    ("RolArn: x", "SageMaker.TrainingJob has no key 'RolArn'; did you mean 'RoleArn'?"),
    ("VpcConfig: {Subnet: [a]}", "SageMaker.TrainingJob.VpcConfig has no key 'Subnet'; did you mean 'Subnets'?"),
    ("Tags: [{Key: a, Value: b}, {Key: a}]", "SageMaker.TrainingJob.Tags is [{'Key': 'a', 'Value': 'b'}, {'Key': 'a'}]; write a list of tags, each with a Key and a Value"),
    ("Tags: [a]", "SageMaker.TrainingJob.Tags is ['a']; write a list of tags"),
    ("RoleArn: ''", "SageMaker.TrainingJob.RoleArn is ''; write a string that is not empty"),
    ("RoleArn:", "SageMaker.TrainingJob.RoleArn is None; write a value, or leave the key out"),
    ("EnableNetworkIsolation: 'true'", "SageMaker.TrainingJob.EnableNetworkIsolation is 'true'; write true or false, without quotes"),
    ("Environment: {A: 1}", "SageMaker.TrainingJob.Environment is of type dict; write the names and the values as strings, in quotes"),
    ("VpcConfig: {Subnets: subnet-1}", "SageMaker.TrainingJob.VpcConfig.Subnets is 'subnet-1'; write a list of strings"),
    ("VpcConfig: {Subnets: []}", "SageMaker.TrainingJob.VpcConfig.Subnets is []; write a list of strings, or leave the key out"),
]  # fmt: skip
WRONG_FILES = [
    *((job(text), message) for text, message in WRONG_SECTIONS),
    ("SageMaker: {}", "SchemaVersion is missing; begin the file with SchemaVersion: '1.0'"),
    ("SchemaVersion: 1.0", "SchemaVersion is 1.0; begin the file with SchemaVersion: '1.0', in quotes"),
    ("SchemaVersion: '1.0'\nSageMaker: {TrainingJobs: {RoleArn: a}}", "SageMaker has no key 'TrainingJobs'; did you mean 'TrainingJob'?"),
    ("SchemaVersion: '1.0'\nSagemaker: {}", "the file has no key 'Sagemaker'; did you mean 'SageMaker'?"),
    ("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: [x]}", "SageMaker.TrainingJob is ['x']; write keys and values"),
    ("SchemaVersion: '1.0'\nSageMaker: {PythonSDK: {Modules: {Session: {DefaultS3Bucket: 1}}}}", "SageMaker.PythonSDK.Modules.Session.DefaultS3Bucket is 1; write a string"),
    ("- a list", "the file is ['a list']; write keys and values"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG_FILES)
def test_a_wrong_file_is_named_with_its_key_and_value(machine, text, message):
    file = machine.user(text)
    with pytest.raises(ConfigError) as caught:
        machine.read()
    assert isinstance(caught.value, SpecError)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


BROKEN = {
    "two colons": (b"a: b: c", "line 1, column 5: mapping values are not allowed here"),
    "a Python object": (b"a: !!python/object:os.system x", "line 1, column 4: could not determine a constructor"),
    "an impossible date": (b"a: 2020-13-45", "month must be in 1..12"),
    "bytes that are no text": (b"a: \xff\xfe\xff", ""),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_broken_yaml_is_an_error_that_names_file_and_place(machine, content, message):
    file = machine.user("")
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        machine.read()
    assert str(caught.value).startswith(f"{file} is not valid YAML: {message}")
    assert str(caught.value).endswith("; correct the file")


def test_a_session_s_mapping_is_named_as_the_caller_says():
    with pytest.raises(ConfigError, match="^sagemaker_session's config: SageMaker.TrainingJob has no key 'Role';"):
        parse_config(
            {"SchemaVersion": "1.0", "SageMaker": {"TrainingJob": {"Role": "x"}}}, "sagemaker_session's config"
        )
    assert parse_config(None, "sagemaker_session's config") == SageMakerConfig()
