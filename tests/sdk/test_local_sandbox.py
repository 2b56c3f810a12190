"""One host's /opt/ml as the service writes it."""

import json

import pytest
from fakes.local_jobs import channel, request_for

from scriptmode.data import file_uris
from scriptmode.platforms.local.hosts.container_fleet import ContainerFleet, requirements_settings
from scriptmode.platforms.local.hosts.process_fleet import ProcessFleet
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobFolder
from scriptmode.platforms.local.system.forked_tasks import Tasks
from scriptmode.platforms.opt_ml import Sandbox
from scriptmode.request.parse import parse_request

GROUPS = [
    {"InstanceGroupName": "gpus", "InstanceType": "local_process", "InstanceCount": 2},
    {"InstanceGroupName": "cpus", "InstanceType": "local_process", "InstanceCount": 1},
]


def prepared(folder, request, host="algo-1", scriptmode=None):
    sandbox = Sandbox(host, folder / host)
    sandbox.prepare(parse_request(request), scriptmode or {})
    return {file.stem: json.loads(file.read_text()) for file in (folder / host / "input" / "config").iterdir()}


def test_the_folders_of_the_contract_are_there(tmp_path):
    prepared(tmp_path, request_for("job"))
    found = {str(path.relative_to(tmp_path / "algo-1")) for path in (tmp_path / "algo-1").rglob("*") if path.is_dir()}
    assert found == {
        "input",
        "input/config",
        "input/data",
        "code",
        "model",
        "checkpoints",
        "output",
        "output/data",
        "output/intermediate",
    }


def test_resourceconfig_of_a_homogeneous_cluster(tmp_path):
    config = prepared(tmp_path, request_for("job", hosts=2), "algo-2")["resourceconfig"]
    assert config == {
        "current_host": "algo-2",
        "current_instance_type": "local_process",
        "current_group_name": "homogeneousCluster",
        "hosts": ["algo-1", "algo-2"],
        "instance_groups": [
            {
                "instance_group_name": "homogeneousCluster",
                "instance_type": "local_process",
                "hosts": ["algo-1", "algo-2"],
            }
        ],
        "network_interface_name": "lo",
    }


def test_resourceconfig_of_instance_groups_numbers_hosts_through_them(tmp_path):
    request = request_for("job")
    request["ResourceConfig"] = {"InstanceGroups": GROUPS}
    config = prepared(tmp_path, request, "algo-3")["resourceconfig"]
    assert config["current_group_name"] == "cpus"
    assert config["hosts"] == ["algo-1", "algo-2", "algo-3"]
    assert [group["hosts"] for group in config["instance_groups"]] == [["algo-1", "algo-2"], ["algo-3"]]


def test_inputdataconfig_has_the_services_keys(tmp_path):
    channels = [
        channel("train", "file:///a", "ShardedByS3Key", ContentType="text/csv"),
        channel("eval", "file:///b"),
    ]
    config = prepared(tmp_path, request_for("job", channels=channels))["inputdataconfig"]
    assert config == {
        "train": {
            "ContentType": "text/csv",
            "TrainingInputMode": "File",
            "S3DistributionType": "ShardedByS3Key",
            "RecordWrapperType": "None",
        },
        "eval": {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated", "RecordWrapperType": "None"},
    }


def test_a_file_system_is_read_as_files_also_where_other_channels_are_piped(tmp_path):
    system = {"FileSystemId": "fs-1", "FileSystemType": "EFS", "DirectoryPath": "/"}
    mounted = {"ChannelName": "mounted", "DataSource": {"FileSystemDataSource": system}, "InputMode": "File"}
    request = request_for("job", channels=[channel("train", "file:///a"), mounted])
    request["AlgorithmSpecification"]["TrainingInputMode"] = "Pipe"
    config = prepared(tmp_path, request)["inputdataconfig"]
    assert {name: each["TrainingInputMode"] for name, each in config.items()} == {"train": "Pipe", "mounted": "File"}


def test_a_channel_of_one_group_is_unknown_to_the_other(tmp_path):
    request = request_for("job", channels=[channel("train", "file:///a")])
    request["ResourceConfig"] = {"InstanceGroups": GROUPS}
    request["InputDataConfig"][0]["DataSource"]["S3DataSource"]["InstanceGroupNames"] = ["cpus"]
    assert prepared(tmp_path, request, "algo-1")["inputdataconfig"] == {}
    assert list(prepared(tmp_path, request, "algo-3")["inputdataconfig"]) == ["train"]


@pytest.mark.parametrize(
    ("text", "on_the_host"),
    [
        ('"/opt/ml"', '"{base}"'),
        ('"/opt/ml/input/data/code/sourcedir.tar.gz"', '"{base}/input/data/code/sourcedir.tar.gz"'),
        ("/opt/ml/model", "{base}/model"),
        ('"/opt/mlops"', '"/opt/mlops"'),
        ('"see /opt/ml/model"', '"see /opt/ml/model"'),
        ('["/opt/ml/model"]', '["/opt/ml/model"]'),
        ("0.10", "0.10"),
        ("not json", "not json"),
    ],
)
def test_hyperparameters_that_name_opt_ml_name_the_sandbox(tmp_path, text, on_the_host):
    request = request_for("job")
    request["HyperParameters"]["x"] = text
    base = str(tmp_path / "algo-1")
    assert prepared(tmp_path, request)["hyperparameters"]["x"] == on_the_host.replace("{base}", base)


def test_environment_is_what_is_inherited_less_other_jobs_and_then_the_requests(tmp_path):
    request = request_for("job")
    request["Environment"] = {"OUT": "/opt/ml/output", "HOME": "/elsewhere", "SM_ASKED": "1"}
    inherited = {"HOME": "/root", "PATH": "/bin", "SM_X": "1", "SAGEMAKER_X": "1", "TF_CONFIG": "{}", "OMPI_X": "1"}
    fleet = ProcessFleet(JobFolder(tmp_path / "jobs" / "job"), job_of(request), Tasks(), inherited)
    base = tmp_path / "jobs" / "job" / "hosts" / "algo-1"
    assert fleet.environment(fleet.sandboxes["algo-1"]) == {
        "HOME": "/elsewhere",
        "PATH": "/bin",
        "OUT": f"{base}/output",
        "SM_ASKED": "1",
        "SAGEMAKER_BASE_DIR": str(base),
    }


def test_the_environment_of_a_container_is_the_requests_and_the_callers_credentials(tmp_path):
    request = request_for("job")
    request["AlgorithmSpecification"]["TrainingImage"] = "mine:1"
    request["Environment"] = {"OUT": "/opt/ml/output", "AWS_SESSION_TOKEN": "asked"}
    inherited = {
        "HOME": "/root",
        "PATH": "/bin",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SESSION_TOKEN": "t",
        "AWS_PROFILE": "p",
    }
    fleet = ContainerFleet(JobFolder(tmp_path / "jobs" / "job"), job_of(request), Tasks(-1), inherited)
    assert fleet.environment(fleet.sandboxes["algo-1"]) == {
        "OUT": "/opt/ml/output",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SESSION_TOKEN": "asked",
    }


@pytest.mark.parametrize(
    ("fields", "shared"),
    [
        ({}, True),
        ({"Environment": {"SCRIPTMODE_REQUIREMENTS_CACHE": "refresh"}}, True),
        ({"Environment": {"SCRIPTMODE_REQUIREMENTS_CACHE": "0"}}, False),
        ({"EnableNetworkIsolation": True}, False),
        ({"HyperParameters": {}}, False),
    ],
    ids=["by default", "refresh", "refused", "without a network", "without a script"],
)
def test_containers_write_environments_of_other_jobs_only_where_they_may(fields, shared):
    settings = requirements_settings(parse_request({**request_for("job"), **fields}))
    assert settings["isolate_requirements"] is True
    assert ("environments" in settings) == shared


def job_of(request):
    return Job(parse_request(request), "arn", "us-east-1", "python", 120.0)


def test_a_checkpoint_folder_of_ones_own_is_made(tmp_path):
    request = request_for("job")
    request["CheckpointConfig"] = {"S3Uri": "file:///kept", "LocalPath": "/opt/ml/deep/checkpoints"}
    prepared(tmp_path, request)
    assert (tmp_path / "algo-1" / "deep" / "checkpoints").is_dir()


def test_a_file_uri_is_the_path_as_it_is_written(tmp_path, hostile_name):
    place = tmp_path / hostile_name
    place.mkdir()
    assert file_uris.file_path(f"file://{place}") == place
    assert file_uris.file_path(place.as_uri()) == place
    assert file_uris.file_path(f"file://localhost{place}/new file") == place / "new file"


def test_percent_signs_are_decoded_only_where_that_leads_to_something(tmp_path):
    (tmp_path / "a b").mkdir()
    (tmp_path / "a%20b").mkdir()
    assert file_uris.file_path(f"file://{tmp_path}/a%20b").name == "a%20b"
    assert file_uris.file_path(f"file://{tmp_path}/new%20file").name == "new%20file"
