import dataclasses
import json

import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform

import scriptmode
from scriptmode import MPI, Estimator, InstanceGroup, MultiWorkerMirrored, ParameterServer, SpecError
from scriptmode.spec.distribution import parse_distribution

GROUPS = [
    InstanceGroup("one", "ml.m5.large", 1),
    InstanceGroup("two", "ml.p3.2xlarge", 2),
    InstanceGroup("memory", "ml.r5.large", 1),
    InstanceGroup("other", "ml.m5.large", 1),
]
IN_GROUPS = {"instance_count": None, "instance_type": None, "instance_groups": GROUPS}
DEDICATED = {"chief": ("one",), "worker": ("two",), "ps": ("memory",), "evaluator": ("other",)}


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param({}, None, id="empty dict"),
        pytest.param(MPI(2), MPI(2), id="a value stands for itself"),
        pytest.param({"parameter_server": {"enabled": True}}, ParameterServer(), id="between-graph"),
        pytest.param(
            {"parameter_server": {"enabled": True, "coordinator": True}},
            ParameterServer(coordinator=True),
            id="coordinator",
        ),
        pytest.param({"multi_worker_mirrored_strategy": {"enabled": True}}, MultiWorkerMirrored(), id="mirrored"),
        pytest.param(
            {"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "-x A=b"}},
            MPI(4, "-x A=b"),
            id="mpi",
        ),
        pytest.param({"mpi": {"enabled": True, "bind_gpus": True}}, MPI(bind_gpus=True), id="mpi with a GPU a rank"),
        pytest.param({"parameter_server": {"enabled": True, "chief": True}}, ParameterServer(chief=True), id="chief"),
        pytest.param({"mpi": {"enabled": False, "processes_per_host": 4}}, None, id="switched off"),
        pytest.param(
            {"mpi": {"enabled": False}, "parameter_server": {"enabled": True}},
            ParameterServer(),
            id="one of two is off",
        ),
        pytest.param(
            {"parameter_server": {"enabled": True, "evaluator": True}}, ParameterServer(evaluator=True), id="evaluator"
        ),
        pytest.param(
            {"multi_worker_mirrored_strategy": {"enabled": True, "evaluator": True}},
            MultiWorkerMirrored(evaluator=True),
            id="mirrored evaluator",
        ),
        pytest.param(
            {"parameter_server": {"enabled": True, "roles": {"ps": ["b", "c"], "master": "a"}}},
            ParameterServer(roles={"master": ("a",), "ps": ("b", "c")}),
            id="roles",
        ),
        pytest.param(
            {"multi_worker_mirrored_strategy": {"enabled": True, "roles": {"evaluator": "b", "worker": "a"}}},
            MultiWorkerMirrored(roles={"worker": ["a"], "evaluator": "b"}),
            id="mirrored roles",
        ),
        pytest.param(
            {"mpi": {"enabled": True}, "instance_groups": ["a", "b"]}, MPI(instance_groups=("a", "b")), id="groups"
        ),
        pytest.param({"smdistributed": {"dataparallel": {"enabled": False}}}, None, id="AWS's own, disabled"),
        pytest.param(
            {"torch_distributed": {"enabled": False}, "mpi": {"enabled": True}}, MPI(), id="AWS's own beside another"
        ),
    ],
)
def test_the_dict_spelling_gives_the_value(spelling, value):
    assert parse_distribution(spelling) == value


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        pytest.param(
            {"mpi": {"enabled": True, "process_per_host": 4}},
            "distribution['mpi'] has no key 'process_per_host'; did you mean 'processes_per_host'?",
            id="unknown option",
        ),
        pytest.param(
            {"parameter_servers": {"enabled": True}},
            "has no key 'parameter_servers'; did you mean 'parameter_server'?",
            id="unknown kind",
        ),
        pytest.param({"ring": 1}, "has no key 'ring'; use one of ", id="nothing near"),
        pytest.param({"horovod": 1}, "has no key 'horovod'; use 'mpi', which starts", id="a library"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": 0}}, "processes_per_host is 0", id="zero"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": True}}, "processes_per_host is True", id="a bool"),
        pytest.param({"mpi": {"enabled": True, "bind_gpus": 1}}, "bind_gpus is 1; give True or False", id="a number"),
        pytest.param({"mpi": {"enabled": True, "processes_per_host": "4"}}, "processes_per_host is '4'", id="text"),
        pytest.param(
            {"mpi": {"enabled": True, "custom_mpi_options": "-x 'A"}},
            "No closing quotation; close the quote",
            id="open quote",
        ),
        pytest.param({"mpi": {"enabled": True, "custom_mpi_options": ["-x"]}}, "one string", id="a list of options"),
        pytest.param(
            {"mpi": {"enabled": True}, "parameter_server": {"enabled": True}},
            "'mpi' and 'parameter_server'",
            id="two kinds",
        ),
        pytest.param({"mpi": {"processes_per_host": 2}}, "['enabled'] is None; give True or False", id="no switch"),
        pytest.param({"mpi": {"enabled": "yes"}}, "['enabled'] is 'yes'", id="a word for a switch"),
        pytest.param({"mpi": True}, "distribution['mpi'] is True", id="no dict"),
        pytest.param("mpi", "distribution is 'mpi'", id="a word"),
        pytest.param({"smdistributed": {"dataparallel": {"enabled": True}}}, "needs AWS's own library", id="AWS's own"),
        pytest.param({"smdistributed": {}}, "needs AWS's own library", id="AWS's own without a switch"),
        pytest.param(
            {"smdistributed": {"dataparallel": {"enabled": False}, "modelparallel": {"enabled": True}}},
            "needs AWS's own library",
            id="one of AWS's own",
        ),
        pytest.param({"instance_groups": ["a"]}, "enables nothing", id="groups alone"),
        pytest.param({"mpi": {"enabled": True}, "instance_groups": "a"}, "give a list", id="groups as a word"),
        pytest.param(
            {"parameter_server": {"enabled": True, "coordinator": "no"}}, "coordinator is 'no'", id="coordinator"
        ),
        pytest.param(
            {"parameter_server": {"enabled": True, "chief": 1}},
            "chief is 1; give True or False",
            id="chief that is no switch",
        ),
        pytest.param(
            {"parameter_server": {"enabled": True, "chief": True, "coordinator": True}},
            "a coordinator is always the chief; leave chief out",
            id="chief of a coordinator",
        ),
        pytest.param(
            {"parameter_server": {"enabled": True, "evaluater": True}}, "did you mean 'evaluator'?", id="near evaluator"
        ),
        pytest.param({"mpi": {"enabled": True, "evaluator": True}}, "['mpi'] has no key 'evaluator'", id="not of MPI"),
    ],
)
def test_a_wrong_spelling_is_named(spelling, message):
    with pytest.raises(SpecError) as caught:
        parse_distribution(spelling)
    assert message in str(caught.value)


def test_the_callers_dict_is_left_as_it_was():
    spelling = {"mpi": {"enabled": True, "processes_per_host": 4}, "instance_groups": ["a"]}
    before = {"mpi": dict(spelling["mpi"]), "instance_groups": ["a"]}
    parse_distribution(spelling)
    assert spelling == before


def test_a_role_is_given_to_groups_or_their_names():
    given = ParameterServer(roles={"ps": (GROUPS[2], "b"), "chief": GROUPS[0], "worker": iter(["c"])})
    assert given.roles == {"chief": ("one",), "worker": ("c",), "ps": ("memory", "b")}
    assert list(given.roles) == ["chief", "worker", "ps"]
    assert hash(given) == hash(ParameterServer(roles={}))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param({"evaluator": 1}, "ParameterServer evaluator is 1; give True or False", id="a number for a switch"),
        pytest.param({"roles": {"workers": "a"}}, "roles has no role 'workers'; did you mean 'worker'?", id="unknown role"),
        pytest.param({"roles": {"chief": "a", "ps": "a"}}, "names 'a' twice, for 'chief' and 'ps'", id="group twice"),
        pytest.param({"roles": {"chief": "a", "ps": ["b", "b"]}}, "names 'b' twice, for 'ps' and 'ps'", id="twice in a list"),
        pytest.param({"roles": {"chief": "a", "ps": "b"}, "chief": True}, "both say what the first trainer is", id="chief too"),
        pytest.param({"roles": {"ps": "a"}}, "names no chief or master; give it a group", id="nobody leads"),
        pytest.param({"roles": {"chief": "a", "master": "b", "ps": "c"}}, "names both 'master' and 'chief'", id="two lead"),
        pytest.param({"roles": {"chief": "a", "worker": "b"}}, "names no 'ps', which this cluster needs", id="no ps"),
        pytest.param({"roles": {"chief": "a", "ps": ()}}, "roles['ps'] is (); give an instance group", id="no group"),
        pytest.param({"roles": {"chief": 1, "ps": "b"}}, "roles['chief'] is 1; give a list", id="a number"),
        pytest.param({"roles": ["chief"]}, "roles is ['chief']; give a dict", id="a list"),
        pytest.param(
            {"roles": {"chief": "a", "ps": "b"}, "instance_groups": ("a",)}, "roles and instance_groups both", id="groups too"
        ),
        pytest.param(
            {"roles": {"chief": "a", "ps": "b"}, "evaluator": True}, "both say where the evaluator is", id="evaluator too"
        ),
        pytest.param(
            {"coordinator": True, "roles": {"master": "a", "ps": "b"}},
            "no role 'master'; use one of chief, evaluator, ps, worker",
            id="coordinator's master",
        ),
        pytest.param(
            {"coordinator": True, "roles": {"chief": "a", "ps": "b"}}, "names no 'worker'", id="coordinator without workers"
        ),
    ],
)  # fmt: skip
def test_roles_that_do_not_form_a_cluster_are_errors(make, message):
    with pytest.raises(SpecError) as caught:
        ParameterServer(**make)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        ({"evaluator": "yes"}, "MultiWorkerMirrored evaluator is 'yes'"),
        ({"roles": {"ps": "a"}}, "MultiWorkerMirrored roles has no role 'ps'; use one of chief, evaluator, worker"),
        ({"roles": {"chief": "a"}}, "MultiWorkerMirrored roles names no 'worker'"),
    ],
)
def test_a_mirrored_job_has_trainers_and_an_evaluator_only(make, message):
    with pytest.raises(SpecError) as caught:
        MultiWorkerMirrored(**make)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"chief": "one", "ps": "momory"}, "instance group 'momory' is not one of the job's; did you mean 'memory'?"),
        ({"chief": "two", "ps": "memory"}, "give 'chief' the group 'two' of 2 hosts; there is one"),
        ({"master": ["one", "other"], "ps": "memory"}, "give 'master' the group 'one' and 'other' of 2 hosts"),
        ({"chief": "one", "ps": "memory", "evaluator": "two"}, "give 'evaluator' the group 'two' of 2 hosts"),
    ],
)
def test_roles_go_with_the_jobs_groups(code, roles, message):
    with pytest.raises(SpecError) as caught:
        estimator(code, **IN_GROUPS, distribution=ParameterServer(roles=roles))
    assert message in str(caught.value)


def test_roles_without_groups_say_what_is_missing(code):
    with pytest.raises(SpecError, match="'one' is not one of the job's; give instance_groups, the job has none"):
        estimator(code, distribution=ParameterServer(roles={"chief": "one", "ps": "two"}))


@pytest.mark.parametrize(
    ("distribution", "resources"),
    [
        (ParameterServer(evaluator=True), {}),
        (MultiWorkerMirrored(evaluator=True), {}),
        (ParameterServer(roles=DEDICATED), IN_GROUPS),
    ],
    ids=["evaluator", "mirrored evaluator", "roles"],
)
def test_a_tf_config_of_the_callers_own_names_the_tasks_alone(code, distribution, resources):
    task = {"TF_CONFIG": "{}"}
    with pytest.raises(SpecError, match=r"environment\['TF_CONFIG'\] and the distribution's roles or evaluator"):
        estimator(code, distribution=distribution, environment=task, **resources)
    assert estimator(code, distribution=ParameterServer(), environment=task, instance_count=1).spec.environment == task


@pytest.mark.parametrize("distribution", [ParameterServer(), MultiWorkerMirrored()], ids=["servers", "mirrored"])
def test_a_tf_config_of_the_callers_own_is_one_hosts_task(code, distribution):
    task = {"TF_CONFIG": "{}"}
    with pytest.raises(SpecError, match=r"environment\['TF_CONFIG'\] gives all 2 hosts one task; leave it out"):
        estimator(code, distribution=distribution, environment=task, instance_count=2)
    in_groups = dataclasses.replace(distribution, instance_groups=("two", "one"))
    with pytest.raises(SpecError, match="gives all 3 hosts one task"):
        estimator(code, **IN_GROUPS, distribution=in_groups, environment=task)


@pytest.mark.parametrize(
    ("distribution", "resources"),
    [
        (ParameterServer(), {"instance_count": 1}),
        (ParameterServer(instance_groups=("one",)), IN_GROUPS),
        (MPI(), {"instance_count": 2}),
        (None, {"instance_count": 2}),
    ],
    ids=["one host", "one host of several", "MPI", "hosts on their own"],
)
def test_a_tf_config_of_the_callers_own_is_kept_where_the_runtime_writes_none(code, distribution, resources):
    task = {"TF_CONFIG": "{}"}
    assert estimator(code, distribution=distribution, environment=task, **resources).spec.environment == task


ROLES_OF_A_REQUEST = [
    (ParameterServer(evaluator=True), {}, {"sagemaker_parameter_server_evaluator": True}),
    (ParameterServer(chief=True), {}, {"sagemaker_parameter_server_chief": True}),
    (ParameterServer(coordinator=True, evaluator=True), {}, {"sagemaker_parameter_server_coordinator": True, "sagemaker_parameter_server_evaluator": True}),
    (MultiWorkerMirrored(evaluator=True), {}, {"sagemaker_multi_worker_mirrored_strategy_evaluator": True}),
    (
        ParameterServer(roles=DEDICATED),
        IN_GROUPS,
        {
            "sagemaker_parameter_server_roles": {"chief": ["one"], "worker": ["two"], "ps": ["memory"], "evaluator": ["other"]},
            "sagemaker_distribution_instance_groups": ["one", "two", "memory", "other"],
        },
    ),
    (
        ParameterServer(coordinator=True, roles={"chief": "one", "worker": ["two", "other"], "ps": "memory"}),
        IN_GROUPS,
        {
            "sagemaker_parameter_server_coordinator": True,
            "sagemaker_parameter_server_roles": {"chief": ["one"], "worker": ["two", "other"], "ps": ["memory"]},
            "sagemaker_distribution_instance_groups": ["one", "two", "other", "memory"],
        },
    ),
    (MPI(2, bind_gpus=True), {}, {"sagemaker_mpi_bind_gpus": True}),
    (
        MultiWorkerMirrored(roles={"worker": "two", "evaluator": "one"}),
        IN_GROUPS,
        {
            "sagemaker_multi_worker_mirrored_strategy_roles": {"worker": ["two"], "evaluator": ["one"]},
            "sagemaker_distribution_instance_groups": ["two", "one"],
        },
    ),
]  # fmt: skip
IDS = ["evaluator", "chief", "coordinator", "mirrored", "roles", "coordinator's roles", "GPUs", "mirrored roles"]


@pytest.mark.parametrize(("distribution", "resources", "spelled"), ROLES_OF_A_REQUEST, ids=IDS)
def test_the_request_says_who_does_what_and_attach_reads_it_again(code, distribution, resources, spelled):
    platform = RecordingPlatform(["Completed"])
    job = estimator(code, platform=platform, distribution=distribution, **resources).fit(wait=False, job_name="job-1")
    sent = {key: json.loads(text) for key, text in platform.created[0]["HyperParameters"].items()}
    ours = ("_evaluator", "_roles", "_coordinator", "_chief", "_instance_groups", "_bind_gpus")
    assert {key: value for key, value in sent.items() if key.endswith(ours)} == spelled
    attached = Estimator.attach(job.name, platform=platform)
    assert attached.distribution == distribution
    assert attached.request(job_name="job-1") == platform.created[0]


def test_without_an_evaluator_or_roles_nothing_is_said_of_them(code):
    sent = estimator(code, distribution=ParameterServer()).request()["HyperParameters"]
    assert [key for key in sent if "parameter_server" in key or "groups" in key] == [
        "sagemaker_parameter_server_enabled"
    ]


@pytest.mark.parametrize(
    ("kind", "keyword", "field"),
    [
        (ParameterServer, "coordinater", "coordinator"),
        (MPI, "process_per_host", "processes_per_host"),
        (scriptmode.TrainingInput, "s3_dta", "s3_data"),
        (scriptmode.InstanceGroup, "instance_typ", "instance_type"),
    ],
)
def test_a_misspelled_keyword_of_a_value_names_the_field(kind, keyword, field):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no argument '{keyword}'; did you mean '{field}'"):
        kind(**{keyword: 1})


@pytest.mark.parametrize("distribution", [ParameterServer(), MultiWorkerMirrored(), MPI(), {"mpi": {"enabled": True}}])
def test_a_distribution_names_the_groups_that_train_together_if_there_are_several(code, distribution):
    with pytest.raises(
        SpecError, match=r"which of the job's 4 instance groups .*: \w+\(instance_groups=\['one', 'two'"
    ):
        estimator(code, **IN_GROUPS, distribution=distribution)
    estimator(code, **{**IN_GROUPS, "instance_groups": GROUPS[:1]}, distribution=distribution)
