"""Jobs of `scriptmode serve` whose hosts are nodes of a Slurm cluster, by a fake cluster."""

import pytest
from fakes.slurm import FakeSlurm
from serve.conftest import TENSORFLOW, serving


@pytest.mark.slow
def test_an_instance_type_stands_for_nodes_of_slurm(tmp_path):
    fake = FakeSlurm(tmp_path / "slurm")
    environment = {"PATH": fake.environment["PATH"], "XDG_CONFIG_HOME": str(tmp_path / "config")}
    try:
        with serving(tmp_path, "--s3", "memory", "--hosts", "slurm", environment=environment) as api:
            fake.play({"state": "PENDING", "reason": "Priority"})
            name = api.start("print('on a node')")
            assert (tmp_path / "data" / "jobs" / name / "job.sh").read_text().startswith("#!/bin/bash\n")
            found = api.sagemaker.describe_training_job(TrainingJobName=name)
            assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("InProgress", "Pending")
            assert found["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
            assert found["AlgorithmSpecification"]["TrainingImage"] == TENSORFLOW
            api.sagemaker.stop_training_job(TrainingJobName=name)
            assert api.wait(name)["TrainingJobStatus"] == "Stopped"
    finally:
        fake.close()
