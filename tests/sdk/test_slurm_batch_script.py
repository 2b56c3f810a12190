"""The batch script of a job on Slurm."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.slurm.batch_script import (
    components,
    format_time_limit,
    render_batch_script,
    submission_environment,
    time_limit,
)
from scriptmode.platforms.slurm.settings import SlurmSettings
from scriptmode.request.parse import parse_request
from scriptmode.spec.training_job import InstanceGroup, Limits, Resources

FOLDER = PurePosixPath("/shared/jobs/mnist 1%j")
AGENT = ("/env/bin/python", "-m", "agent", str(FOLDER))
REQUEST = parse_request(
    {
        "TrainingJobName": "mnist-1",
        "RoleArn": "arn",
        "AlgorithmSpecification": {},
        "OutputDataConfig": {"S3OutputPath": "file:///x"},
        "ResourceConfig": {"InstanceType": "slurm:gpu", "InstanceCount": 4, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
    }
)


def job(**changes):
    return Job(replace(REQUEST, **changes), "arn", "us-east-1", "/env/bin/python", 120.0)


def groups(*types):
    return Resources(None, None, tuple(InstanceGroup(f"g{n}", kind, n + 1) for n, kind in enumerate(types)))


def test_a_script_has_the_jobs_options_the_setup_and_the_agent():
    settings = SlurmSettings({"account": "vision", "gres": "gpu:4", "exclusive": True}, ("module load cuda",))
    assert render_batch_script(job(), settings, FOLDER, AGENT) == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=mnist-1\n"
        '#SBATCH --output="/shared/jobs/mnist 1%%j/agent.log"\n'
        "#SBATCH --open-mode=append\n"
        "#SBATCH --partition=gpu\n"
        "#SBATCH --nodes=4\n"
        "#SBATCH --ntasks-per-node=1\n"
        "#SBATCH --no-requeue\n"
        "#SBATCH --signal=B:USR1@120\n"
        "#SBATCH --account=vision\n"
        "#SBATCH --gres=gpu:4\n"
        "#SBATCH --exclusive\n"
        "\n"
        "module load cuda\n"
        "exec /env/bin/python -m agent '/shared/jobs/mnist 1%j'\n"
    )


def test_groups_of_several_partitions_are_components_with_options_of_their_own():
    resources = groups("slurm:gpu", "slurm:cpu", "slurm:cpu")
    settings = SlurmSettings({"gres": "gpu:4", "mem": "8G"}, partitions={"cpu": {"gres": False, "mem": "64G"}})
    assert [(each.partition, each.hosts) for each in components(resources, settings)] == [
        ("gpu", ("algo-1",)),
        ("cpu", ("algo-2", "algo-3", "algo-4", "algo-5", "algo-6")),
    ]
    first, second = render_batch_script(job(resources=resources), settings, FOLDER, AGENT).split("#SBATCH hetjob\n")
    assert "--gres=gpu:4" in first
    assert "--mem=8G" in first
    assert second.startswith("#SBATCH --partition=cpu\n#SBATCH --nodes=5\n")
    assert "--gres" not in second
    assert "--mem=64G" in second
    assert "--job-name" not in second


def test_the_partition_of_the_settings_is_that_of_hosts_that_name_none():
    settings = SlurmSettings({"partition": "long"}, partitions={"long": {"mem": "8G"}})
    script = render_batch_script(job(resources=Resources(1, "slurm")), settings, FOLDER, AGENT)
    assert script.count("--partition") == 1
    assert "--partition=long\n" in script
    assert "--mem=8G\n" in script
    assert "--partition" not in render_batch_script(
        job(resources=Resources(1, "slurm")), SlurmSettings(), FOLDER, AGENT
    )


@pytest.mark.parametrize(
    ("max_run", "options", "maximum", "expected"),
    [
        (Limits.max_run, {}, None, ""),
        (Limits.max_run, {"time": "30"}, None, "30"),
        (3600, {}, None, "0-01:15:00"),
        (3601, {}, None, "0-01:16:00"),
        (3600, {}, 4000, "0-01:07:00"),
        (3600, {}, 3600, "0-01:00:00"),
        (172800, {}, None, "2-00:15:00"),
        (3600, {"time": "2:00:00"}, None, "2:00:00"),
    ],
    ids=["default", "option", "rounded up", "seconds", "below the maximum", "the maximum", "days", "both"],
)
def test_a_time_limit_is_set_where_max_run_or_time_was_given(max_run, options, maximum, expected):
    assert time_limit(Limits(max_run), SlurmSettings(options), maximum) == expected


def test_spot_training_is_requeued():
    script = render_batch_script(
        job(limits=Limits(3600, 7200, use_spot_instances=True)), SlurmSettings({"signal": "B:USR1@300"}), FOLDER, AGENT
    )
    assert "#SBATCH --requeue\n" in script
    assert "#SBATCH --signal=B:USR1@300\n" in script
    assert script.count("--signal") == 1


@pytest.mark.parametrize(
    ("max_run", "options", "maximum", "default", "notice"),
    [
        (86400, {"time": "1"}, None, None, 6),
        (86400, {"time": "0:05:00"}, None, None, 30),
        (86400, {"time": "10:30"}, None, None, 63),
        (86400, {"time": "1-00"}, None, None, 120),
        (86400, {"time": "UNLIMITED"}, 300, 300, 120),
        (300, {}, 300, 300, 30),
        (86400, {}, 3600, 600, 60),
        (86400, {}, None, None, 120),
        (3600, {}, None, 60, 120),
    ],
)
def test_the_notice_takes_a_tenth_of_the_time_limit_at_most(max_run, options, maximum, default, notice):
    script = render_batch_script(job(limits=Limits(max_run)), SlurmSettings(options), FOLDER, AGENT, maximum, default)
    assert f"#SBATCH --signal=B:USR1@{notice}\n" in script


def test_a_value_is_quoted_where_sbatch_would_split_it():
    options = {"comment": "a \"b\" 'c' \\d $HOME #x", "constraint": "[a*2&b*4]", "mail_user": "a@b.c"}
    script = render_batch_script(job(), SlurmSettings(options), FOLDER, AGENT)
    assert '--comment="a \\"b\\" \'c\' \\\\d $HOME #x"\n' in script
    assert "--constraint=[a*2&b*4]\n" in script
    assert "--mail-user=a@b.c\n" in script


def test_variables_of_sbatch_do_not_override_the_script():
    script = "#SBATCH --partition=gpu\n#SBATCH --mem=8G\n#SBATCH --time=5\n"
    environ = {
        "SBATCH_PARTITION": "x",
        "SBATCH_MEM_PER_NODE": "x",
        "SBATCH_TIMELIMIT": "x",
        "SBATCH_ARRAY_INX": "1-9",
        "SBATCH_WAIT": "1",
        "SBATCH_ACCOUNT": "kept",
        "PATH": "kept",
    }
    assert submission_environment(script, environ) == {"SBATCH_ACCOUNT": "kept", "PATH": "kept"}


def test_a_duration_is_in_whole_minutes():
    assert [format_time_limit(each) for each in (1, 60, 3661, 86400 * 3)] == [
        "0-00:01:00",
        "0-00:01:00",
        "0-01:02:00",
        "3-00:00:00",
    ]
