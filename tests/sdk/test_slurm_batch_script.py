"""The batch script of a job on Slurm, and its settings: arguments, SCRIPTMODE_SLURM and the config files."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from scriptmode import PlatformError, SpecError
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.training_job import InstanceGroup, Limits, Resources
from scriptmode.errors import ConfigError
from scriptmode_local._store.job_record import Job
from scriptmode_slurm._engine.batch_script import components, render_batch_script, submission_environment, time_limit
from scriptmode_slurm._engine.partitions import Partition
from scriptmode_slurm._engine.settings import SlurmSettings, parse_settings

LOG = "/shared/jobs/mnist 1%j/agent.log"
AGENT = ("/env/bin/python", "-m", "agent", "/shared/jobs/mnist 1%j")
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


def test_a_script_has_the_jobs_options_the_setup_and_the_agent():
    settings = SlurmSettings({"account": "vision", "gres": "gpu:4", "exclusive": True}, ("module load cuda",))
    assert render_batch_script(job(), settings, LOG, AGENT) == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=mnist-1\n"
        '#SBATCH --output="/shared/jobs/mnist 1%%j/agent.log"\n'
        '#SBATCH --error="/shared/jobs/mnist 1%%j/agent.log"\n'
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
        "exec 9>&2 2>'/shared/jobs/mnist 1%j/setup.log'\n"
        """trap 'cat '"'"'/shared/jobs/mnist 1%j/setup.log'"'"' >&9' EXIT\n"""
        "trap 'echo setup: exit code $? in line $LINENO >&2' ERR\n"
        "module load cuda\n"
        "trap - ERR EXIT\n"
        "exec 2>&9 9>&-\n"
        "exec /env/bin/python -m agent '/shared/jobs/mnist 1%j'\n"
    )


def test_groups_of_several_partitions_are_components_with_options_of_their_own():
    kinds = ("slurm:gpu", "slurm:cpu", "slurm:cpu")
    resources = Resources(None, None, tuple(InstanceGroup(f"g{n}", kind, n + 1) for n, kind in enumerate(kinds)))
    settings = SlurmSettings({"gres": "gpu:4", "mem": "8G"}, partitions={"cpu": {"gres": False, "mem": "64G"}})
    assert [(each.partition, each.hosts) for each in components(resources, settings)] == [
        ("gpu", ("algo-1",)),
        ("cpu", ("algo-2", "algo-3", "algo-4", "algo-5", "algo-6")),
    ]
    first, second = render_batch_script(job(resources=resources), settings, LOG, AGENT).split("#SBATCH hetjob\n")
    assert "--gres=gpu:4" in first
    assert "--mem=8G" in first
    assert second.startswith("#SBATCH --partition=cpu\n#SBATCH --nodes=5\n")
    assert "--gres" not in second
    assert "--mem=64G" in second
    assert "--job-name" not in second


@pytest.mark.parametrize(
    ("least", "line"), [(1, "--nodes=1-4\n"), (4, "--nodes=4\n"), (9, "--nodes=4\n")], ids=["fewer", "all", "more"]
)
def test_a_job_that_may_have_fewer_nodes_has_no_number_of_tasks(least, line):
    script = render_batch_script(job(), SlurmSettings(min_nodes=least), LOG, AGENT)
    assert line in script
    assert ("--ntasks" in script) == (least > 1)


def test_the_partition_of_the_settings_is_that_of_hosts_that_name_none():
    settings = SlurmSettings({"partition": "long"}, partitions={"long": {"mem": "8G"}})
    script = render_batch_script(job(resources=Resources(1, "slurm")), settings, LOG, AGENT)
    assert script.count("--partition") == 1
    assert "--partition=long\n" in script
    assert "--mem=8G\n" in script


@pytest.mark.parametrize(
    ("max_run", "options", "maximum", "expected"),
    [
        (Limits.max_run, {}, None, ""), (Limits.max_run, {"time": "30"}, None, "30"), (3600, {}, None, "75"),
        (3600, {}, 4000, "67"), (3600, {}, 3600, "60"), (3600, {"time": "2:00:00"}, None, "2:00:00"),
    ],
    ids=["default", "option", "rounded up", "below the maximum", "the maximum", "both"],
)  # fmt: skip
def test_a_time_limit_is_set_where_max_run_or_time_was_given(max_run, options, maximum, expected):
    assert time_limit(Limits(max_run), SlurmSettings(options), maximum) == expected


@pytest.mark.parametrize("limits", [Limits(max_retry_attempts=2), Limits(3600, 7200, use_spot_instances=True)])
def test_a_job_with_retries_or_spot_training_is_requeued(limits):
    script = render_batch_script(job(limits=limits), SlurmSettings({"signal": "B:USR1@300"}), LOG, AGENT)
    assert "#SBATCH --requeue\n" in script
    assert "#SBATCH --signal=B:USR1@300\n" in script
    assert script.count("--signal") == 1


@pytest.mark.parametrize(
    ("max_run", "options", "maximum", "default", "notice"),
    [
        (86400, {"time": "1"}, None, None, 6), (86400, {"time": "10:30"}, None, None, 63),
        (86400, {"time": "UNLIMITED"}, 300, None, 120), (300, {}, 300, None, 30), (86400, {}, 3600, 600, 60),
        (86400, {}, None, None, 120),
    ],
)  # fmt: skip
def test_the_notice_takes_a_tenth_of_the_time_limit_at_most(max_run, options, maximum, default, notice):
    partitions = [Partition("cpu", 1, 1, 9, is_default=True), Partition("gpu", maximum, default, 9)]
    script = render_batch_script(job(limits=Limits(max_run)), SlurmSettings(options), LOG, AGENT, partitions)
    assert f"#SBATCH --signal=B:USR1@{notice}\n" in script


@pytest.mark.parametrize(
    ("options", "hosts", "least", "expected"),
    [
        ({"nodes": "2", "ntasks_per_node": "4", "cpus_per_task": "4"}, 3, 3, "nodes=3 ntasks-per-node=4"),
        ({"ntasks": "15"}, 1, 1, "nodes=1 ntasks=15 ntasks-per-node=15"),
        ({"ntasks": "15"}, 2, 2, "nodes=2 ntasks=15 ntasks-per-node=8"),
        ({"ntasks": "1", "cpus_per_task": "8"}, 2, 2, "nodes=2 ntasks=2 ntasks-per-node=1"),
        ({"ntasks": "8", "nodes": "2-4"}, 4, 4, "nodes=4 ntasks=16 ntasks-per-node=4"),
        ({"ntasks": "8", "ntasks_per_node": "4"}, 1, 1, "nodes=1 ntasks=4 ntasks-per-node=4"),
        ({"ntasks": "1"}, 2, 1, "nodes=1-2 ntasks=2"),
        ({"gpus": "2", "ntasks_per_gpu": "3"}, 2, 2, "nodes=2"),
    ],
)
def test_a_host_has_the_tasks_of_a_node_of_the_header(options, hosts, least, expected):
    header = {"lines": ["#SBATCH -n 1", "#SBATCH -J x"], "options": options}
    asked = job(resources=Resources(hosts, "slurm"))
    script = render_batch_script(asked, SlurmSettings(min_nodes=least, header=header), LOG, AGENT)
    assert script.startswith("#!/bin/bash\n#SBATCH -n 1\n#SBATCH -J x\n#SBATCH --job-name=mnist-1\n")
    lines = [line.removeprefix("#SBATCH --") for line in script.splitlines()]
    assert [line for line in lines if line.startswith(("nodes", "ntasks"))] == expected.split()


def test_a_header_precedes_the_variable_and_the_files_and_arguments_precede_it(config_file):
    config_file.write_text("slurm: {account: user, qos: user, mem: 1G}")
    header = {"lines": ["#SBATCH -A a"], "options": {"account": "a", "qos": "a", "partition": "a", "error": "x"}}
    environ = {"SCRIPTMODE_SLURM": "account=variable"}
    found = parse_settings({"header": header, "partition": "argument"}, environ)
    assert (found.options, found.header) == ({"mem": "1G", "partition": "argument"}, header)
    with pytest.warns(UserWarning, match="account=variable, which replaces the job's account=a"):
        assert parse_settings({}, environ, found).options == {**found.options, "account": "variable"}
    script = render_batch_script(job(resources=Resources(1, "slurm")), found, LOG, AGENT)
    assert "#SBATCH --partition=argument\n" in script
    kept = submission_environment(script, {"SBATCH_QOS": "x", "SBATCH_WCKEY": "x"}, header["options"])
    assert kept == {"SBATCH_WCKEY": "x"}
    for wrong, message in (
        ({"header": header, "qos": False}, "qos is False; leave it out"),
        ({"header": 1}, "from_sb"),
    ):
        with pytest.raises(SpecError, match=message):
            parse_settings(wrong, {})


@pytest.mark.parametrize(
    ("partition", "least", "fits"),
    [("gpu", 4, True), ("big", 4, False), ("big", 3, True), ("big,gpu", 4, True), ("", 4, True), ("unknown", 4, True)],
)
def test_a_job_is_refused_if_no_partition_that_it_may_have_ever_has_enough_nodes(partition, least, fits):
    partitions = [Partition("gpu", None, None, 4), Partition("big", None, None, 3, is_default=True)]
    asked = job(resources=Resources(4, f"slurm:{partition}".rstrip(":")))
    with nullcontext() if fits else pytest.raises(PlatformError, match="4 hosts need as many nodes, .* big has 3; use"):
        render_batch_script(asked, SlurmSettings(min_nodes=least), LOG, AGENT, partitions)


def test_a_value_is_quoted_where_sbatch_would_split_it():
    options = {"comment": "a \"b\" 'c' \\d $HOME #x", "constraint": "[a*2&b*4]", "mail_user": "a@b.c"}
    script = render_batch_script(job(), SlurmSettings(options), LOG, AGENT)
    assert '--comment="a \\"b\\" \'c\' \\\\d $HOME #x"\n' in script
    assert "--constraint=[a*2&b*4]\n" in script
    assert "--mail-user=a@b.c\n" in script


def test_variables_of_sbatch_do_not_override_the_script():
    script = "#SBATCH --partition=gpu\n#SBATCH --mem=8G\n#SBATCH --time=5\n"
    environ = {
        "SBATCH_PARTITION": "x", "SBATCH_MEM_PER_NODE": "x", "SBATCH_TIMELIMIT": "x", "SBATCH_ARRAY_INX": "1-9",
        "SBATCH_WAIT": "1", "SBATCH_ACCOUNT": "kept", "PATH": "kept", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    assert submission_environment(script, environ) == {"SBATCH_ACCOUNT": "kept", "PATH": "kept"}


@pytest.fixture(autouse=True)
def config_file(monkeypatch, tmp_path):
    """The user's config file, which does not exist yet; there is no administrator's file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "site"))
    (tmp_path / "user" / "scriptmode").mkdir(parents=True)
    return tmp_path / "user" / "scriptmode" / "config.yaml"


@pytest.mark.parametrize(
    ("variable", "options"),
    [
        ("partition=gpu,account=vision", {"partition": "gpu", "account": "vision"}),
        ("gres=gpu:2,nic:1,exclusive=true", {"gres": "gpu:2,nic:1", "exclusive": True}),
        ("tres-per-task=cpu:1,gres/gpu=2,mem=8G", {"tres_per_task": "cpu:1,gres/gpu=2", "mem": "8G"}),
        ('{"partition": "gpu", "nice": 5}', {"partition": "gpu", "nice": "5"}),
    ],
)
def test_the_variable_holds_options_of_sbatch(variable, options):
    assert parse_settings({}, {"SCRIPTMODE_SLURM": variable}).options == options


def test_an_argument_precedes_the_variable_and_that_the_files(config_file, tmp_path):
    site = tmp_path / "site" / "scriptmode" / "config.yaml"
    site.parent.mkdir(parents=True)
    site.write_text("slurm: {partition: site, account: site, qos: site, wckey: site, setup: [module load site]}")
    config_file.write_text("slurm:\n  partition: user\n  account: user\n  qos: user\n  exclusive: true\n")
    variable = {"SCRIPTMODE_SLURM": "partition=variable,account=variable"}
    found = parse_settings({"partition": "argument", "account": None, "exclusive": False}, variable)
    expected = {"partition": "argument", "account": "variable", "qos": "user", "wckey": "site"}
    assert found == SlurmSettings(expected, ("module load site",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": 2}, "nodes is 2; give an option of sbatch by its long name; one that the job sets by itself is an"),
        ({"partition": "a\nb"}, "partition is 'a\\nb'; give the value of sbatch's --partition as one line of text"),
        ({"setup": 5}, "setup is 5; give lines of a shell script"),
        (
            {"setup": ["#SBATCH --array=1-3"]},
            "give lines of a shell script, ('module load cuda',), and options of sbatch",
        ),
        ({"min_nodes": "0"}, "min_nodes is '0'; give a whole number of at least 1"),
        ({"interface": 5}, "interface is 5; give the name of a network interface"),
        ({"partitions": {"gpu": "gres=1"}}, "partitions is {'gpu': 'gres=1'}; give options by partition"),
        ({"partitions": {"gpu": {"time": 1}}}, "partitions['gpu']: time is 1; give one for the whole job: Slurm(time="),
    ],
)
def test_a_wrong_setting_is_named_with_the_next_step(given, message):
    with pytest.raises(SpecError) as caught:
        parse_settings(given, {})
    assert message in str(caught.value)
    assert caught.value.argument in (next(iter(given)), "time")


@pytest.mark.parametrize("variable", ["gpu", '{"partition"'])
def test_a_wrong_variable_is_named(variable):
    with pytest.raises(SpecError) as caught:
        parse_settings({}, {"SCRIPTMODE_SLURM": variable})
    assert str(caught.value).startswith(
        f"SCRIPTMODE_SLURM is {variable!r}; write partition=gpu,exclusive=true, or a JSON"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("slurm: gpu", "holds {'slurm': 'gpu'}; write for example\nslurm:\n  partition: gpu"),
        ("slurmm: {partition: gpu}", "holds {'slurmm': {'partition': 'gpu'}}; write for example"),
        ("slurm: {a: b: c}", "is not valid YAML: line 1"),
        ("slurm: {min_nodes: many}", "slurm.min_nodes is 'many'; give a whole number"),
    ],
)
def test_a_wrong_config_file_is_named(config_file, content, message):
    config_file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        parse_settings({}, {})
    assert str(config_file) in str(caught.value)
    assert message in str(caught.value)


def test_an_empty_config_file_holds_no_settings(config_file):
    for content in ("", "slurm:\n", "# none\n"):
        config_file.write_text(content)
        assert parse_settings({}, {}) == SlurmSettings()


@pytest.mark.parametrize("value", [True, "true", "True"])
def test_every_option_goes_to_sbatch_as_it_is(value):
    given = {"lustre_quota": 5, "hold": value, "nice": 1, "exclusive": False, "gres": ["gpu:2", "nic"]}
    found = parse_settings(given, {})
    assert found.options == {"lustre_quota": "5", "hold": True, "nice": "1", "gres": "gpu:2,nic"}
    script = render_batch_script(job(), found, LOG, AGENT)
    assert [f"#SBATCH --{each}\n" in script for each in ("lustre-quota=5", "hold", "nice=1")] == [True] * 3


@pytest.mark.parametrize(("given", "used"), [("SIGUSR1@90", "B:USR1@90"), ("B:TERM@60", "B:USR1@60"), ("2", "B:USR1")])
def test_a_notice_by_any_signal_is_one_that_the_agent_takes(given, used):
    assert parse_settings({"signal": given}, {}).options == {"signal": used}
