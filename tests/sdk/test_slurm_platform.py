"""`Slurm`: what its jobs are before their hosts run, by a fake cluster."""

import json
from contextlib import nullcontext

import pytest
from fakes import slurm_programs
from fakes.command_line import invoke
from fakes.processes import until
from fakes.slurm import FakeSlurm

from scriptmode import (
    ContinuousParameter,
    Estimator,
    InstanceGroup,
    PlatformError,
    RequestError,
    Slurm,
    SpecError,
    TrainingJob,
    Tuner,
)
from scriptmode._core.request.parse import parse_request
from scriptmode.planning._host_plans import job_roles
from scriptmode_local import LocalPlatform
from scriptmode_slurm._engine import addresses, commands
from scriptmode_slurm._engine.engine import SlurmEngine

PENDING = {"state": "PENDING", "reason": "Priority"}


@pytest.fixture
def cluster(data_dir, tmp_path, monkeypatch, closed_after):
    fake = closed_after(FakeSlurm(tmp_path / "slurm"))
    fake.use(monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SCRIPTMODE_SLURM", raising=False)
    (tmp_path / "train.py").write_text("print('hello')\n")
    return fake


@pytest.fixture
def estimator(cluster, tmp_path):
    def create(**arguments):
        return Estimator(**{"entry_point": str(tmp_path / "train.py"), "instance_type": "slurm", **arguments})

    return create


def test_a_plan_has_the_nodes_the_gpus_and_the_batch_script(estimator, monkeypatch):
    asked, ask = [], SlurmEngine.plan
    monkeypatch.setattr(SlurmEngine, "plan", lambda *given: asked.append(given) or ask(*given))
    plan = estimator(instance_count=2, distribution={"mpi": {"enabled": True}}, platform=Slurm(gres="gpu:2")).plan()
    assert [host.roles for host in plan.hosts.values()] == ["mpirun, ranks 0-1", "ranks 2-3"]
    assert "hosts    nodes of a Slurm cluster" in str(plan)
    assert "at most 1 d of training, and the time limit of the Slurm job" in str(plan)
    assert "\nWhat the scheduler gets\n  #!/bin/bash\n  #SBATCH --job-name=" in str(plan)
    assert "  #SBATCH --gres=gpu:2\n" in plan.text()
    assert plan.to_dict()["script"] == plan.script
    assert plan.script.startswith("#!/bin/bash\n")
    assert len(asked) == 1
    local = estimator(instance_type="local_process").plan()
    assert "script" not in local.to_dict()
    assert "Batch script" not in str(local)


def test_a_job_is_submitted_with_its_script_and_its_number_is_kept(cluster, estimator, tmp_path, monkeypatch):
    cluster.play(PENDING)
    monkeypatch.setenv("SBATCH_PARTITION", "of the user")
    monkeypatch.setenv("SCRIPTMODE_SLURM", "partition=batch,comment=a b")
    find, waits = commands.find_config, []
    monkeypatch.setattr(commands, "STATES", commands.StatusCache())
    monkeypatch.setattr(commands, "find_config", lambda *, wait: waits.append(wait) or find(wait=wait))
    job = estimator(instance_count=2, max_run=600).fit(wait=False, job_name="first-1")
    estimator().fit(wait=False)
    assert waits == [commands.RETRY_SECONDS] * 2
    folder = tmp_path / "data" / "jobs" / job.name
    number = json.loads((folder / "engine.json").read_text())["job"]
    script = (folder / "job.sh").read_text()
    assert "#SBATCH --partition=batch\n" in script
    assert "#SBATCH --time=25\n" in script
    assert "#SBATCH --job-name=first-1\n" in script
    found = cluster.job(number)
    assert (found["state"], found["options"]["comment"]) == ("PENDING", "a b")
    assert json.loads((folder / "engine.json").read_text())["cluster"]
    options = json.loads((folder / "job.json").read_text())["engine"]["options"]
    assert options == {"partition": "batch", "comment": "a b"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"instance_type": "slurm:btach"}, "sbatch: invalid partition specified: btach: Batch job submission failed: "),
        ({"instance_count": 3}, "3 hosts need as many nodes, and partition batch has 2; use fewer hosts"),
        ({"platform": {"account": "nobody"}}, "sbatch: Batch job submission failed: Invalid account or acc"),
    ],
)
def test_a_job_that_slurm_refuses_leaves_no_job_but_the_words_of_slurm(cluster, estimator, arguments, words):
    with pytest.raises(PlatformError) as caught:
        estimator(**{**arguments, "platform": Slurm(**arguments.get("platform", {}))}).fit(wait=False)
    assert words in str(caught.value)
    assert LocalPlatform().list() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"instance_type": "slurmm"}, "did you mean 'slurm'?"),
        ({"instance_type": "local_process", "platform": {}}, "is not a node of a Slurm cluster; use 'slurm'"),
        (
            {
                "instance_type": None,
                "instance_groups": [InstanceGroup("a", "slurm", 1), InstanceGroup("b", "local", 1)],
            },
            "instance types 'slurm', 'local' need different kinds of hosts",
        ),
    ],
    ids=["type", "kind", "kinds"],
)
def test_a_job_that_the_cluster_cannot_run_is_refused_before_it_is_stored(estimator, tmp_path, arguments, message):
    if "platform" in arguments:
        arguments = {**arguments, "platform": Slurm(**arguments["platform"])}
    with pytest.raises(SpecError) as caught:
        estimator(**arguments).plan()
    assert message in str(caught.value)
    assert not (tmp_path / "data" / "jobs").exists()


def test_a_config_file_may_have_partitions_of_another_cluster(estimator, tmp_path):
    file = tmp_path / "config" / "scriptmode" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("slurm:\n  partitions: {batch: {mem: 1G}, elsewhere: {mem: 2G}}\n")
    script = estimator(instance_type="slurm:batch").plan().script
    assert "--mem=1G\n" in script
    assert "2G" not in script


def test_a_type_without_a_name_of_a_partition_is_refused(estimator):
    for instance_type in ("slurm:", "slurm:a\nb"):
        with pytest.raises((RequestError, SpecError)) as caught:
            estimator(instance_type=instance_type).plan()
        assert "partition" in str(caught.value).lower()


def test_a_wrong_argument_is_refused_where_it_stands(cluster):
    with pytest.raises(SpecError, match="stop_grace is -1; give the seconds from SIGTERM to SIGKILL, 0 or more"):
        Slurm(stop_grace=-1)


@pytest.mark.slow
def test_the_training_jobs_of_a_tuning_job_are_submitted(cluster, estimator, tmp_path):
    cluster.play(PENDING)
    tuner = Tuner(
        estimator(platform=Slurm(comment="tuned"), metric_definitions=[{"Name": "loss", "Regex": "loss=(.*)"}]),
        "loss",
        {"rate": ContinuousParameter(0.1, 1.0)},
        objective_type="Minimize",
        max_jobs=1,
    )
    tuning_job = tuner.fit(wait=False)
    until(cluster.jobs)
    (number,) = cluster.jobs()
    tuning_job.stop()
    assert cluster.job(number)["options"]["comment"] == "tuned"
    until(lambda: tuning_job.describe()["HyperParameterTuningJobStatus"] == "Stopped")


@pytest.mark.parametrize(
    ("mpi", "roles"), [({}, {}), ({"processes_per_host": 2}, {"algo-1": "mpirun, ranks 0-1", "algo-2": "ranks 2-3"})]
)
def test_ranks_whose_number_only_the_nodes_know_have_no_roles(estimator, mpi, roles):
    request = estimator(instance_count=2, distribution={"mpi": {"enabled": True, **mpi}}).request()
    assert job_roles(parse_request(request)) == roles


@pytest.mark.slow
def test_setup_that_ends_the_batch_script_is_told_from_an_agent_that_crashed(cluster, estimator, monkeypatch):
    monkeypatch.setattr(commands, "STATES", commands.StatusCache())
    job = estimator(platform=Slurm(setup=("exit 3",))).fit(wait=False)
    cluster.reaches(1, "FAILED")
    commands.STATES.forget(1)
    reason = job.describe()["FailureReason"]
    assert "the batch script of Slurm job 1 ended with exit code 3 before the job's agent began; see the" in reason


def test_a_job_and_its_copy_begin_with_the_header_of_a_batch_script(cluster, estimator, tmp_path):
    site = tmp_path / "site.sh"
    site.write_text(
        "#!/bin/sh\n#SBATCH --mem=1G --signal=B:TERM@300\n  # of the site\n#SBATCH --time=10\necho\n#SBATCH -n 5\n"
    )
    cluster.play(PENDING)
    job = estimator(platform=Slurm.from_sbatch(site, comment="a")).fit(wait=False, job_name="first-1")
    site.unlink()
    cluster.play(PENDING)
    for name in (job.name, job.rerun().name):
        script = (tmp_path / "data" / "jobs" / name / "job.sh").read_text()
        header = "#!/bin/bash\n#SBATCH --mem=1G --signal=B:TERM@300\n#SBATCH --time=10\n#SBATCH --job-name="
        assert script.startswith(header)
        assert "#SBATCH --signal=B:USR1@300\n#SBATCH --comment=a\n#SBATCH --time=10\n\nexec" in script


@pytest.mark.parametrize(
    ("header", "options", "nodes"),
    [
        ("--nodes=2 --ntasks-per-node=4", [], 2),
        ("--ntasks=8 --ntasks-per-node=4", [], 2),
        ("--nodes=2", ["--instance-count", "1", "--instance-type", "slurm:short"], 1),
    ],
)
def test_the_command_line_takes_the_header_and_its_nodes(cluster, tmp_path, header, options, nodes):
    (tmp_path / "site.sh").write_text(f"#!/bin/sh\n#SBATCH {header}\nsrun hostname\n")
    words = ("plan", str(tmp_path / "train.py"), "--sbatch", str(tmp_path / "site.sh"), *options, "--json")
    with pytest.warns(UserWarning, match="nodes=1, which replaces nodes=2 of") if options else nullcontext():
        script = json.loads(invoke(*words).output)["script"]
    assert script.startswith(f"#!/bin/bash\n#SBATCH {header}\n#SBATCH --job-name=")
    assert f"\n#SBATCH --nodes={nodes}\n" in script
    assert ("--partition=short" in script) == bool(options)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["sight.sh"], "script is 'sight.sh': No such file or directory; did you mean 'site.sh'? (--sbatch)"),
        (["train.py"], "which has no line #SBATCH before a command; give the batch script of one job (--sbatch)"),
        (["site.sh", "--force"], "--force is for jobs of this"),
        (["site.sh", "--instance-type", "local_process"], "not for 'local_process'; leave one of them out"),
    ],
)
def test_a_header_on_the_command_line_that_no_job_can_have_is_refused(cluster, tmp_path, monkeypatch, words, error):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.sh").write_text("#!/bin/sh\n#SBATCH --mem=1G\n")
    done = invoke("run", "train.py", "--sbatch", *words)
    assert (done.exit_code, error in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [("site.sh", "which has 'array'; give the batch"), ("none.sh", "No such f"), ("n" * 300, "File name too long")],
)
def test_a_batch_script_that_is_none_of_one_job_is_refused(cluster, tmp_path, name, words):
    (tmp_path / "site.sh").write_text("#!/bin/sh\n#SBATCH --array=1-3\n")
    with pytest.raises(SpecError, match=words):
        Slurm.from_sbatch(tmp_path / name)


def test_the_batch_script_of_a_job_trains_on_a_node(cluster, estimator):
    slurm_programs.Programs(cluster.programs).add("srun", 'while [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"')
    job = estimator(platform=Slurm(interface=addresses.list_interfaces()[0].name)).fit(wait=False)
    assert cluster.reaches(1, "COMPLETED", "FAILED")["state"] == "COMPLETED"
    assert "hello" in [event.message for event in job.logs()]


@pytest.mark.parametrize("again", [lambda job: job.rerun(), lambda job: Estimator.attach(job.name).fit(wait=False)])
def test_a_copy_of_a_job_has_its_slurm_settings(cluster, estimator, tmp_path, monkeypatch, again):
    cluster.play(PENDING)
    monkeypatch.setenv("SCRIPTMODE_SLURM", "comment=first")
    first = Slurm(account="vision", gres="gpu:1", setup=("module load cuda",), stop_grace=300)
    job = estimator(platform=first).fit(wait=False, job_name="first-1")
    monkeypatch.delenv("SCRIPTMODE_SLURM")
    cluster.play(PENDING)
    copy = again(TrainingJob.attach(job.name))
    script = (tmp_path / "data" / "jobs" / copy.name / "job.sh").read_text()
    assert "#SBATCH --account=vision\n" in script
    assert "#SBATCH --gres=gpu:1\n" in script
    assert "#SBATCH --comment=first\n" in script
    assert "#SBATCH --signal=B:USR1@300\n" in script
    assert "\nmodule load cuda\n" in script


def test_settings_that_are_given_for_a_rerun_replace_those_of_the_job(cluster, estimator, tmp_path, monkeypatch):
    cluster.play(PENDING)
    job = estimator(platform=Slurm(account="vision", mem="1G", comment="a")).fit(wait=False, job_name="first-1")
    monkeypatch.setenv("SCRIPTMODE_SLURM", "mem=2G,comment=b")
    cluster.play(PENDING)
    with pytest.warns(UserWarning, match="SCRIPTMODE_SLURM has mem=2G, which replaces the job's mem=1G; .* unset"):
        copy = TrainingJob.attach(job.name, platform=Slurm(comment="c")).rerun()
    script = (tmp_path / "data" / "jobs" / copy.name / "job.sh").read_text()
    assert [line for line in script.splitlines() if line.endswith(("vision", "2G", "c"))] == [
        "#SBATCH --account=vision",
        "#SBATCH --mem=2G",
        "#SBATCH --comment=c",
    ]
