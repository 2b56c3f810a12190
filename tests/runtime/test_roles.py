"""Evaluators, roles of whole instance groups, and tasks that the host was told before."""

import json

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import _environment as environment
from scriptmode_runtime._host.machine import Machine
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime._values.errors import ConfigurationError

BETWEEN_GRAPH = {"sagemaker_parameter_server_enabled": True}
COORDINATOR = {**BETWEEN_GRAPH, "sagemaker_parameter_server_coordinator": True}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
EVALUATED = {"sagemaker_parameter_server_evaluator": True}
MIRRORED_EVALUATED = {**MIRRORED, "sagemaker_multi_worker_mirrored_strategy_evaluator": True}
PS_ROLES, MIRRORED_ROLES = "sagemaker_parameter_server_roles", "sagemaker_multi_worker_mirrored_strategy_roles"
#: Hosts are numbered through the groups: data 1, one 2, two 3-4, memory 5, other 6.
GROUPS = {"data": 1, "one": 1, "two": 2, "memory": 1, "other": 1}
DEDICATED = {"worker": ["two"], "chief": ["one"], "evaluator": ["other"], "ps": ["memory"]}


def read(folder, count=1, this=1, groups=None, environ=None, **hyperparameters):
    groups = groups or {"all": count}
    hosts = [f"algo-{number + 1}" for number in range(sum(groups.values()))]
    base = write_host(folder / "ml", hosts[this - 1], hosts, {"train.py": ""}, sagemaker_program="train.py", **hyperparameters)  # fmt: skip
    of, members = iter(hosts), []
    for name, size in groups.items():
        members.append({"instance_group_name": name, "instance_type": "x", "hosts": [next(of) for _ in range(size)]})
    (group,) = [each["instance_group_name"] for each in members if hosts[this - 1] in each["hosts"]]
    config = {"current_host": hosts[this - 1], "hosts": hosts, "current_group_name": group, "instance_groups": members}
    (base / "input/config/resourceconfig.json").write_text(json.dumps(config))
    return environment.read(str(base), {"PATH": "/bin", **(environ or {})})


def plan(folder, count=1, this=1, *, gpus=0, **given):
    here = read(folder, count, this, **given)._replace(machine=Machine(4, gpus, 0))
    return plan_for(here, user_code.command(here))


def config(spec):
    return json.loads(spec.env["TF_CONFIG"])


def trainers(one):
    return [*([one.main] if one.main else []), *one.side_processes]


def tasks(specs):
    """Role and index of each process, in order; its name is its role."""
    found = [config(spec)["task"] for spec in specs]
    assert [spec.name for spec in specs] == [task["type"] for task in found]
    return [(task["type"], task["index"]) for task in found]


@pytest.mark.parametrize(
    ("count", "this", "ours", "cluster"),
    [
        pytest.param(1, 1, [("chief", 0), ("evaluator", 0)], {"chief": [1]}, id="one host"),
        pytest.param(2, 1, [("chief", 0)], {"chief": [1], "worker": [2], "ps": [1, 2]}, id="first of two"),
        pytest.param(2, 2, [("worker", 0), ("evaluator", 0)], {"chief": [1], "worker": [2], "ps": [1, 2]}, id="last of two"),
        pytest.param(3, 3, [("worker", 1), ("evaluator", 0)], {"chief": [1], "worker": [2, 3], "ps": [1, 2, 3]}, id="last of three"),
    ],
)  # fmt: skip
def test_between_graph_with_an_evaluator_has_a_chief(tmp_path, count, this, ours, cluster):
    one = plan(tmp_path, count, this, **BETWEEN_GRAPH, **EVALUATED)
    assert tasks(trainers(one)) == ours
    assert tasks(one.services) == ([("ps", this - 1)] if count > 1 else [])
    ports = {"chief": 2222, "worker": 2222, "ps": 2223}
    whole = {role: [f"algo-{number}:{ports[role]}" for number in hosts] for role, hosts in cluster.items()}
    for spec in (*trainers(one), *one.services):
        own = {"evaluator": [f"algo-{count}:2225"]} if spec.name == "evaluator" else {}
        assert config(spec)["cluster"] == {**whole, **own}


COORDINATOR_EVALUATED = {**COORDINATOR, **EVALUATED}


@pytest.mark.parametrize(
    ("kind", "count", "this", "ours"),
    [
        (COORDINATOR_EVALUATED, 1, 1, [("chief", 0), ("evaluator", 0)]),
        (COORDINATOR_EVALUATED, 2, 1, [("chief", 0)]),
        (COORDINATOR_EVALUATED, 2, 2, [("evaluator", 0)]),
        (COORDINATOR_EVALUATED, 3, 2, []),
        (MIRRORED_EVALUATED, 1, 1, [("worker", 0), ("evaluator", 0)]),
        (MIRRORED_EVALUATED, 2, 1, [("worker", 0)]),
        (MIRRORED_EVALUATED, 2, 2, [("worker", 1), ("evaluator", 0)]),
    ],
)
def test_the_evaluator_of_a_coordinator_or_of_mirrored_workers_is_on_the_last_host(tmp_path, kind, count, this, ours):
    one = plan(tmp_path, count, this, gpus=4, **kind)
    assert tasks(trainers(one)) == ours
    hidden = {spec.name: spec.env.get("CUDA_VISIBLE_DEVICES") for spec in (*trainers(one), *one.services)}
    assert (hidden.get("evaluator", "-1"), hidden.get("worker")) == ("-1", None)
    assert tasks(one.services) == ([] if kind is MIRRORED_EVALUATED else [("worker", this - 1), ("ps", this - 1)])
    if kind is MIRRORED_EVALUATED:
        assert config(one.main)["cluster"] == {"worker": [f"algo-{number + 1}:8890" for number in range(count)]}


@pytest.mark.parametrize(
    ("this", "runs", "serves"),
    [(2, [("chief", 0)], []), (3, [("worker", 0)], []), (4, [("worker", 1)], []), (5, [], [("ps", 0)]), (6, [("evaluator", 0)], [])],
)  # fmt: skip
def test_between_graph_a_host_has_the_role_of_its_group_alone(tmp_path, this, runs, serves):
    one = plan(tmp_path, this=this, groups=GROUPS, **BETWEEN_GRAPH, **{PS_ROLES: DEDICATED})
    assert (tasks(trainers(one)), tasks(one.services)) == (runs, serves)
    cluster = {"chief": ["algo-2:2222"], "worker": ["algo-3:2222", "algo-4:2222"], "ps": ["algo-5:2223"]}
    for spec in (*trainers(one), *one.services):
        own = {"evaluator": ["algo-6:2225"]} if this == 6 else {}
        assert config(spec)["cluster"] == {**cluster, **own}
    assert [wait.event for wait in one.after] == ["trainers_ended"]


@pytest.mark.parametrize(
    ("this", "runs", "serves"),
    [(2, [("chief", 0)], []), (3, [], [("worker", 0)]), (4, [], [("worker", 1)]), (5, [], [("ps", 0)]), (6, [("evaluator", 0)], [])],
)  # fmt: skip
def test_with_a_coordinator_workers_serve(tmp_path, this, runs, serves):
    one = plan(tmp_path, this=this, groups=GROUPS, gpus=1, **COORDINATOR, **{PS_ROLES: DEDICATED})
    assert (tasks(trainers(one)), tasks(one.services)) == (runs, serves)
    for spec in (*trainers(one), *one.services):
        assert config(spec)["cluster"]["chief"] == ["algo-2:2221"]
        assert "TF_FORCE_GPU_ALLOW_GROWTH" not in spec.env
        assert spec.env.get("CUDA_VISIBLE_DEVICES") == ("-1" if spec.name == "ps" else None)


def test_mirrored_workers_and_their_evaluator_have_hosts_of_their_own(tmp_path):
    roles = {MIRRORED_ROLES: {"worker": ["two", "memory"], "evaluator": "other"}}
    found = [plan(tmp_path / str(this), this=this, groups=GROUPS, **MIRRORED, **roles) for this in (3, 4, 5, 6)]
    assert [tasks(trainers(one)) for one in found] == [[("worker", 0)], [("worker", 1)], [("worker", 2)], [("evaluator", 0)]]  # fmt: skip
    assert config(found[0].main)["cluster"] == {"worker": ["algo-3:8890", "algo-4:8890", "algo-5:8890"]}


@pytest.mark.parametrize("first", ["master", "chief"])
def test_the_role_that_leads_is_called_as_it_was_written(tmp_path, first):
    chief = {} if first == "master" else {"sagemaker_parameter_server_chief": True}
    lead = plan(tmp_path / "1", 2, **BETWEEN_GRAPH, **chief, sagemaker_parameter_server_evaluator="false")
    assert tasks(trainers(lead)) == [(first, 0)]
    servers = ["algo-1:2223", "algo-2:2223"]
    assert config(lead.main)["cluster"] == {first: ["algo-1:2222"], "worker": ["algo-2:2222"], "ps": servers}
    assert "TF_CONFIG" not in plan(tmp_path / "2", 1, **BETWEEN_GRAPH, **chief).main.env
    roles = {PS_ROLES: {first: "one", "ps": ["memory", "other"]}}
    one = plan(tmp_path / "3", this=2, groups=GROUPS, **BETWEEN_GRAPH, **roles)
    assert tasks(trainers(one)) == [(first, 0)]
    assert config(one.main)["cluster"] == {first: ["algo-2:2222"], "ps": ["algo-5:2223", "algo-6:2223"]}


def test_the_host_whose_role_it_is_leads_and_groups_with_roles_train_together(tmp_path):
    here = read(tmp_path, this=2, groups=GROUPS, **BETWEEN_GRAPH, **{PS_ROLES: DEDICATED})
    assert here.cluster.leads
    assert [host.name for host in here.cluster.hosts] == [f"algo-{number}" for number in (2, 3, 4, 5, 6)]
    assert set(here.distribution_groups) == {"one", "two", "memory", "other"}
    member = read(tmp_path / "other", this=5, groups={"memory": 4, "one": 1}, **BETWEEN_GRAPH, **{PS_ROLES: {"chief": "one", "ps": "memory"}})  # fmt: skip
    # Not the first of the job, but the chief's.
    assert (member.cluster.lead.name, member.cluster.leads) == ("algo-5", True)


def test_a_host_whose_group_has_no_role_runs_the_script_alone(tmp_path):
    one = plan(tmp_path, this=1, groups=GROUPS, **BETWEEN_GRAPH, **{PS_ROLES: DEDICATED})
    assert one.main.name == "script"
    assert "TF_CONFIG" not in one.main.env


@pytest.mark.parametrize(
    "roles",
    ["one", {}, {"chef": "one", "worker": "two"}, {"chief": "one", "ps": ["momory"]}, {"ps": "memory"}, {"chief": 1}],
    ids=["no object", "empty", "unknown role", "unknown group", "nobody trains", "a number"],
)
def test_roles_that_cannot_be_a_cluster_are_an_error(tmp_path, roles):
    message = r"sagemaker_parameter_server_roles is .* roles \(master, .*\) .* groups \(data, one, two, memory, other\)"
    with pytest.raises(ConfigurationError, match=message):
        read(tmp_path, this=2, groups=GROUPS, **BETWEEN_GRAPH, **{PS_ROLES: roles})


@pytest.mark.parametrize("switch", [{}, {"sagemaker_mpi_enabled": True}, MIRRORED], ids=["none", "mpi", "mirrored"])
def test_roles_of_a_distribution_that_is_not_enabled_are_none(tmp_path, switch):
    assert read(tmp_path, this=2, groups=GROUPS, **switch, **{PS_ROLES: "nonsense"}).cluster.roles == {}


CLUSTER = {"chief": ["a:1"], "worker": ["b:2", "c:3"], "ps": ["d:4"]}


def given(role, index, cluster=None):
    return {"TF_CONFIG": json.dumps({"cluster": cluster or CLUSTER, "task": {"type": role, "index": index}, "job": 1})}


@pytest.mark.parametrize(
    ("kind", "role", "serves"),
    [
        *((BETWEEN_GRAPH, role, role == "ps") for role in ("chief", "worker", "evaluator", "ps")),
        *((COORDINATOR, role, role in {"worker", "ps"}) for role in ("chief", "worker", "evaluator", "ps")),
        *((MIRRORED, role, False) for role in ("chief", "worker")),
    ],
)
def test_an_inherited_task_is_used_unchanged(tmp_path, kind, role, serves):
    environ = given(role, 0)
    one = plan(tmp_path, 2, environ=environ, **kind)
    (spec,) = one.services if serves else trainers(one)
    assert (one.main is None) == serves
    assert (spec.name, spec.env["TF_CONFIG"]) == (role, environ["TF_CONFIG"])
    assert ("scriptmode_runtime.tensorflow.server" in spec.argv) == serves
    assert [wait.event for wait in one.after] == ["trainers_ended"]


def test_without_a_distribution_tf_config_is_unread_and_an_empty_one_says_nothing(tmp_path):
    assert "TF_CONFIG" not in plan(tmp_path / "1", environ={"TF_CONFIG": "{not JSON"}).main.env
    for folder, strategy, name in (("2", {}, "script"), ("3", MIRRORED, "worker")):
        assert plan(tmp_path / folder, environ={"TF_CONFIG": " "}, **strategy).main.name == name


@pytest.mark.parametrize(("kind", "role"), [(BETWEEN_GRAPH, "ps"), (COORDINATOR, "worker")])
def test_a_server_of_an_unknown_cluster_is_what_the_host_does(tmp_path, kind, role):
    one = plan(tmp_path, environ=given(role, 0), **kind)
    assert one.main.name == role
    assert "scriptmode_runtime.tensorflow.server" in one.main.argv
    assert (one.services, one.after) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", '{"task": {"type": "worker", "index": 0}}', json.dumps({"cluster": CLUSTER}),
        json.dumps({"cluster": CLUSTER, "task": {"index": 0}}),
        json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": "first"}}), given("ps", 1)["TF_CONFIG"],
        given("master", 0)["TF_CONFIG"],
    ],
    ids=["not JSON", "a list", "no cluster", "no task", "no type", "no index", "too many", "no such role"],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", [BETWEEN_GRAPH, COORDINATOR, MIRRORED], ids=["between-graph", "coordinator", "mirrored"]
)
def test_an_invalid_inherited_task_is_an_error(tmp_path, kind, text):
    with pytest.raises(ConfigurationError, match="TF_CONFIG is set to .*, which names no task of its cluster; correct"):
        plan(tmp_path, 2, environ={"TF_CONFIG": text}, **kind)


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        ({**BETWEEN_GRAPH, **EVALUATED}, None),
        (MIRRORED_EVALUATED, None),
        ({**COORDINATOR, PS_ROLES: DEDICATED}, GROUPS),
    ],
    ids=["evaluator", "mirrored evaluator", "roles"],
)
def test_tasks_are_named_in_one_place(tmp_path, kind, groups):
    with pytest.raises(ConfigurationError, match="TF_CONFIG is set, and .* names roles or an evaluator of its own"):
        plan(tmp_path, 2, 2, environ=given("worker", 0), groups=groups, **kind)
