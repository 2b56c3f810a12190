"""Which requests hosts that are containers can run."""

import pytest
from fakes.local_jobs import channel, request_for

from scriptmode.errors import RequestError
from scriptmode.platforms.local import validation

IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/image:tag"


def request(**algorithm):
    """A good one."""
    made = request_for("job", channels=[channel("train", "file:///data")])
    made["ResourceConfig"]["InstanceType"] = "local"
    made["AlgorithmSpecification"] |= {"TrainingImage": IMAGE, **algorithm}
    return made


def problem(wrong):
    with pytest.raises(RequestError) as caught:
        validation.validate_request(wrong)
    return str(caught.value)


def groups(*types):
    return {
        "InstanceGroups": [
            {"InstanceGroupName": f"group-{number}", "InstanceType": kind, "InstanceCount": 1}
            for number, kind in enumerate(types)
        ],
        "VolumeSizeInGB": 1,
    }


@pytest.mark.parametrize("kind", ["local", "local_gpu"])
def test_hosts_that_are_containers_are_taken(kind):
    made = request()
    made["ResourceConfig"]["InstanceType"] = kind
    validation.validate_request(made)


def test_hosts_with_and_without_gpus_are_taken_together():
    made = request() | {"ResourceConfig": groups("local", "local_gpu")}
    validation.validate_request(made)


def test_entry_point_arguments_and_isolation_are_taken():
    made = request(ContainerEntrypoint=["python", "-c"], ContainerArguments=["pass"]) | {"EnableNetworkIsolation": True}
    validation.validate_request(made)


def test_a_job_without_a_script_is_taken():
    made = request()
    del made["HyperParameters"]
    validation.validate_request(made)


@pytest.mark.parametrize(
    ("algorithm", "told"),
    [
        ({"TrainingImage": None}, "AlgorithmSpecification.TrainingImage is missing; give the image of the hosts"),
        ({"AlgorithmName": "forest"}, "AlgorithmSpecification.AlgorithmName is not supported by the local platform"),
        (
            {"TrainingImageConfig": {"TrainingRepositoryAccessMode": "Vpc"}},
            "AlgorithmSpecification.TrainingImageConfig is not supported by the local platform yet; leave it out",
        ),
        ({"ContainerArguments": "pass"}, "AlgorithmSpecification.ContainerArguments is a str; it must be a list"),
    ],
)
def test_an_algorithm_that_cannot_run_is_told(algorithm, told):
    made = request(**algorithm)
    made["AlgorithmSpecification"] = {
        name: value for name, value in made["AlgorithmSpecification"].items() if value is not None
    }
    assert told in problem(made)


@pytest.mark.parametrize("types", [("local", "local_process"), ("local_process", "local_gpu")])
def test_processes_do_not_go_with_containers(types):
    made = request() | {"ResourceConfig": groups(*types)}
    assert "'local_process' cannot be combined with others; use one kind" in problem(made)


def test_instance_types_of_the_service_are_refused_with_those_that_run_here():
    made = request()
    made["ResourceConfig"]["InstanceType"] = "ml.p3.2xlarge"
    assert "the local platform runs 'local_process' and 'local' and 'local_gpu'" in problem(made)


def test_checkpoints_lie_below_opt_ml():
    made = request() | {"CheckpointConfig": {"S3Uri": "file:///kept", "LocalPath": "/home/kept"}}
    assert "CheckpointConfig.LocalPath is '/home/kept'; give a path below /opt/ml/" in problem(made)
