"""Distributions: how they are given, what is refused, their requests, and the role of each host of a described job."""

import copy
import json

import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform

from scriptmode import MPI, Estimator, InstanceGroup, MultiWorkerMirrored, ParameterServer, SpecError
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.distribution import parse_distribution
from scriptmode._display.follower import find_roles
from scriptmode.planning import host_roles

GROUPS = [
    InstanceGroup("one", "ml.m5.large", 1), InstanceGroup("two", "ml.p3.2xlarge", 2),
    InstanceGroup("memory", "ml.r5.large", 1), InstanceGroup("other", "ml.m5.large", 1),
]  # fmt: skip
IN_GROUPS = {"instance_count": None, "instance_type": None, "instance_groups": GROUPS}
DEDICATED = {"chief": ("one",), "worker": ("two",), "ps": ("memory",), "evaluator": ("other",)}


SPELLINGS = {
    "nothing": ({}, None),
    "a value": (MPI(2), MPI(2)),
    "between-graph": ({"parameter_server": {"enabled": True}}, ParameterServer()),
    "coordinator": ({"parameter_server": {"enabled": True, "coordinator": True}}, ParameterServer(coordinator=True)),
    "mirrored": ({"multi_worker_mirrored_strategy": {"enabled": True}}, MultiWorkerMirrored()),
    "MPI": ({"mpi": {"enabled": True, "processes_per_host": 4, "custom_mpi_options": "-x A=b"}}, MPI(4, "-x A=b")),
    "GPUs": ({"mpi": {"enabled": True, "bind_gpus": True}}, MPI(bind_gpus=True)),
    "chief": ({"parameter_server": {"enabled": True, "chief": True}}, ParameterServer(chief=True)),
    "one of two is off": ({"mpi": {"enabled": False}, "parameter_server": {"enabled": True}}, ParameterServer()),
    "evaluator": ({"parameter_server": {"enabled": True, "evaluator": True}}, ParameterServer(evaluator=True)),
    "roles": (
        {"parameter_server": {"enabled": True, "roles": {"ps": ["b", "c"], "master": "a"}}},
        ParameterServer(roles={"master": ("a",), "ps": ("b", "c")}),
    ),
    "mirrored roles": (
        {"multi_worker_mirrored_strategy": {"enabled": True, "roles": {"evaluator": "b", "worker": "a"}}},
        MultiWorkerMirrored(roles={"worker": ["a"], "evaluator": "b"}),
    ),
    "groups": ({"mpi": {"enabled": True}, "instance_groups": ["a", "b"]}, MPI(instance_groups=("a", "b"))),
    "AWS's own, off": ({"smdistributed": {"dataparallel": {"enabled": False}}}, None),
    "AWS's own, off, beside another": ({"torch_distributed": {"enabled": False}, "mpi": {"enabled": True}}, MPI()),
}  # fmt: skip


@pytest.mark.parametrize(("spelling", "value"), SPELLINGS.values(), ids=SPELLINGS)
def test_the_dict_spelling_gives_the_value_and_is_left_as_it_was(spelling, value):
    before = copy.deepcopy(spelling)
    assert parse_distribution(spelling) == value
    assert spelling == before


def mpi(**options):
    return {"mpi": {"enabled": True, **options}}


def servers(**options):
    return {"parameter_server": {"enabled": True, **options}}


AWSS_OWN = {"smdistributed": {"dataparallel": {"enabled": False}, "modelparallel": {"enabled": True}}}
WRONG_SPELLINGS = {
    "a library": ({"horovod": {"enabled": True}}, "distribution has no key 'horovod'; write {'mpi': {'enabled': True}}"),
    "unknown option": (mpi(process_per_host=4), "distribution['mpi'] has no key 'process_per_host'; did you mean 'processes_per_host'?"),
    "nothing near": ({"ring": 1}, "has no key 'ring'; use one of "),
    "a bool": (mpi(processes_per_host=True), "processes_per_host is True"),
    "a list of options": (mpi(custom_mpi_options=["-x"]), "one string"),
    "two kinds": (mpi() | servers(), "'mpi' and 'parameter_server'"),
    "no switch": ({"mpi": {"processes_per_host": 2}}, "distribution['mpi'] has no 'enabled'; give it True or False"),
    "a word for a switch": ({"mpi": {"enabled": "yes"}}, "['enabled'] is 'yes'"),
    "no dict": ({"mpi": True}, "distribution['mpi'] is True"),
    "a word": ("mpi", "distribution is 'mpi'"),
    "AWS's own without a switch": ({"smdistributed": {}}, "needs AWS's own library"),
    "one of AWS's own": (AWSS_OWN, "needs AWS's own library"),
    "torchrun": ({"torch_distributed": {"enabled": True}}, "torchrun on each host, which is not supported; use {'mpi'"),
    "groups alone": ({"instance_groups": ["a"]}, "enables nothing"),
    "coordinator": (servers(coordinator="no"), "coordinator is 'no'"),
    "chief of a coordinator": (servers(chief=True, coordinator=True), "a coordinator is always the chief; leave chief out"),
    "not of MPI": (mpi(evaluator=True), "['mpi'] has no key 'evaluator'"),
}  # fmt: skip


@pytest.mark.parametrize(("spelling", "message"), WRONG_SPELLINGS.values(), ids=WRONG_SPELLINGS)
def test_a_wrong_spelling_is_named(spelling, message):
    with pytest.raises(SpecError) as caught:
        parse_distribution(spelling)
    assert message in str(caught.value)


def test_a_role_is_given_to_groups_or_their_names():
    given = ParameterServer(roles={"ps": (GROUPS[2], "b"), "chief": GROUPS[0], "worker": iter(["c"])})
    assert given.roles == {"chief": ("one",), "worker": ("c",), "ps": ("memory", "b")}
    assert list(given.roles) == ["chief", "worker", "ps"]
    assert hash(given) == hash(ParameterServer(roles={}))


LED = {"chief": "a", "ps": "b"}
WRONG_ROLES = {
    "unknown role": ({"roles": {"workers": "a"}}, "roles has no role 'workers'; did you mean 'worker'?"),
    "group twice": ({"roles": {"chief": "a", "ps": "a"}}, "names 'a' twice, for 'chief' and 'ps'"),
    "chief too": ({"roles": LED, "chief": True}, "both say what the first trainer is"),
    "nobody leads": ({"roles": {"ps": "a"}}, "names no chief or master; give it a group"),
    "two lead": ({"roles": {"chief": "a", "master": "b", "ps": "c"}}, "names both 'master' and 'chief'"),
    "no ps": ({"roles": {"chief": "a", "worker": "b"}}, "names no 'ps', which this cluster needs"),
    "no group": ({"roles": {"chief": "a", "ps": ()}}, "roles['ps'] is (); give an instance group"),
    "groups too": ({"roles": LED, "instance_groups": ("a",)}, "roles and instance_groups both"),
    "evaluator too": ({"roles": LED, "evaluator": True}, "both say where the evaluator is"),
    "coordinator's master": ({"coordinator": True, "roles": {"master": "a", "ps": "b"}}, "no role 'master'; use one of chief, evaluator, ps, worker"),
    "mirrored, ps": ({"roles": {"ps": "a"}}, "MultiWorkerMirrored roles has no role 'ps'; use one of chief, evaluator, worker"),
    "mirrored, no worker": ({"roles": {"chief": "a"}}, "MultiWorkerMirrored roles names no 'worker'"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), WRONG_ROLES.values(), ids=WRONG_ROLES)
def test_roles_that_do_not_form_a_cluster_are_errors(arguments, message):
    kind = MultiWorkerMirrored if message.startswith("MultiWorkerMirrored") else ParameterServer
    with pytest.raises(SpecError) as caught:
        kind(**arguments)
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


def test_parameter_servers_leave_a_host_to_train(code):
    for arguments, message in (
        ({"ps": 0}, "ps is 0"),
        ({"ps": 1, "evaluator": True}, "both say what the last hosts are; keep one"),
    ):
        with pytest.raises(SpecError, match=message):
            ParameterServer(**arguments)
    with pytest.raises(SpecError, match="ps is 2 of 2 hosts, and none is left to train; give more hosts"):
        estimator(code, distribution=ParameterServer(ps=2))


TASK = {"TF_CONFIG": "{}"}
ROLES_TOO = r"environment\['TF_CONFIG'\] and the distribution's roles or evaluator"
TASKS = {
    "evaluator": (ParameterServer(evaluator=True), {}, ROLES_TOO),
    "mirrored evaluator": (MultiWorkerMirrored(evaluator=True), {}, ROLES_TOO),
    "roles": (ParameterServer(roles=DEDICATED), IN_GROUPS, ROLES_TOO),
    "servers": (ParameterServer(), {}, r"environment\['TF_CONFIG'\] gives all 2 hosts one task; leave it out"),
    "mirrored": (MultiWorkerMirrored(), {}, "gives all 2 hosts one task"),
    "servers in groups": (ParameterServer(instance_groups=("two", "one")), IN_GROUPS, "gives all 3 hosts one task"),
    "one host": (ParameterServer(), {"instance_count": 1}, None),
    "one host of several": (ParameterServer(instance_groups=("one",)), IN_GROUPS, None),
    "MPI": (MPI(), {}, None),
    "hosts on their own": (None, {}, None),
}


@pytest.mark.parametrize(("distribution", "resources", "message"), TASKS.values(), ids=TASKS)
def test_a_tf_config_of_the_callers_own_is_kept_where_the_runtime_writes_none(code, distribution, resources, message):
    arguments = {"distribution": distribution, "environment": TASK, **resources}
    if message is None:
        assert estimator(code, **arguments).spec.environment == TASK
    else:
        with pytest.raises(SpecError, match=message):
            estimator(code, **arguments)


ROLES_OF_A_REQUEST = [
    (ParameterServer(), {}, {}),
    (ParameterServer(chief=True), {}, {"sagemaker_parameter_server_chief": True}),
    (ParameterServer(ps=1), {}, {"sagemaker_parameter_server_hosts": 1}),
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
IDS = ["none", "chief", "servers alone", "roles", "coordinator's roles", "GPUs", "mirrored roles"]


@pytest.mark.parametrize(("distribution", "resources", "spelled"), ROLES_OF_A_REQUEST, ids=IDS)
def test_the_request_says_who_does_what_and_attach_reads_it_again(code, distribution, resources, spelled):
    platform = RecordingPlatform(["Completed"])
    job = estimator(code, platform=platform, distribution=distribution, **resources).fit(wait=False, job_name="job-1")
    sent = {key: json.loads(text) for key, text in platform.created[0]["HyperParameters"].items()}
    ours = ("_evaluator", "_roles", "_coordinator", "_chief", "_instance_groups", "_bind_gpus", "_hosts")
    assert {key: value for key, value in sent.items() if key.endswith(ours)} == spelled
    attached = Estimator.attach(job.name, platform=platform)
    assert attached.distribution == distribution
    assert attached.request(job_name="job-1") == platform.created[0]


@pytest.mark.parametrize("distribution", [ParameterServer(), MultiWorkerMirrored(), MPI(), {"mpi": {"enabled": True}}])
def test_a_distribution_names_the_groups_that_train_together_if_there_are_several(code, distribution):
    with pytest.raises(SpecError, match=r"which of the job's 4 instance groups .*: \w+\(instance_groups=\['one', "):
        estimator(code, **IN_GROUPS, distribution=distribution)
    estimator(code, **{**IN_GROUPS, "instance_groups": GROUPS[:1]}, distribution=distribution)


SERVERS = {"sagemaker_parameter_server_enabled": "true"}
RANKS = {"sagemaker_mpi_enabled": "true", "sagemaker_mpi_num_of_processes_per_host": "4"}


def description(parameters, count=2, kind="ml.c5.xlarge", **fields):
    return {
        "TrainingJobName": "job-1",
        "TrainingJobStatus": "InProgress",
        "AlgorithmSpecification": {"TrainingImage": "registry/tf:2.15"},
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 30},
        "HyperParameters": {"sagemaker_program": '"train.py"', **parameters},
        **fields,
    }


def test_hosts_have_the_role_of_their_group():
    groups = [
        {"InstanceGroupName": "leader", "InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "memory", "InstanceType": "ml.r5.xlarge", "InstanceCount": 2},
    ]
    roles = '{"master": ["leader"], "ps": ["memory"]}'
    asked = description(
        {**SERVERS, "sagemaker_parameter_server_roles": roles}, ResourceConfig={"InstanceGroups": groups}
    )
    assert list(host_roles(asked).values()) == ["master", "ps", "ps"]


@pytest.mark.parametrize(
    "unknown",
    [
        description({}, HyperParameters={"epochs": "3"}), description({}, ResourceConfig={}),
        description({**SERVERS, **RANKS}), {"TrainingJobName": "job-1"},
    ],
    ids=["an image's own program", "no hosts", "what the runtime refuses", "nothing"],
)  # fmt: skip
def test_unknown_roles_are_empty(unknown):
    assert host_roles(unknown) == find_roles(parse_request(unknown)) == {}
