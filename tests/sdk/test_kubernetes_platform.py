"""`Kubernetes`: its settings, the objects of its jobs and the forms of kubeconfig files, without a cluster."""

import base64
import dataclasses
import json
import os
import re
import socket
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from fakes.answering_server import answering
from fakes.local_jobs import request_for
from fakes.promptness import soon

from scriptmode import Estimator, InstanceGroup, RequestError, SpecError
from scriptmode._core.request.parse import parse_request
from scriptmode.errors import ConfigError, MissingPackageError, PlatformError
from scriptmode_kubernetes import Kubernetes
from scriptmode_kubernetes._engine import api, engine, fleet, manifests, pods
from scriptmode_kubernetes._engine.settings import KubernetesSettings, parse_settings
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system.forked_tasks import Tasks
from scriptmode_local._tuning import tuning_agent
from scriptmode_runtime import contract
from scriptmode_serve._http.page import is_for_page
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.request_mapping import HostTable

GUIDE = Path(__file__).parents[2] / "sdk" / "docs" / "guides" / "kubernetes.md"
CLUSTER = {"name": "c", "cluster": {"server": "https://10.0.0.1:6443/"}}


def kubeconfig(folder, user, cluster=CLUSTER, **context):
    """Write a kubeconfig file with one context; return its path."""
    path = folder / "kubeconfig"
    contexts = [{"name": "here", "context": {"cluster": "c", "user": "u", **context}}]
    content = {"clusters": [cluster], "users": [{"name": "u", "user": user}], "contexts": contexts}
    path.write_text(yaml.safe_dump({**content, "current-context": "here"}))
    return path


@pytest.fixture(autouse=True)
def outside(data_dir, tmp_path, monkeypatch):
    """A process outside of a cluster, with a kubeconfig file."""
    for name in ("SCRIPTMODE_KUBERNETES", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "secret"}, namespace="ml")))
    (tmp_path / "train.py").write_text("print('hello')\n")


@pytest.fixture
def objects(tmp_path):
    """Return the objects of a job's plan by their kinds and names, with settings and arguments of the estimator."""

    def plan(settings=None, **arguments):
        arguments = {"instance_type": "kubernetes", "image_uri": "image:1", **arguments}
        platform = Kubernetes(**(settings or {}))
        made = Estimator(entry_point=str(tmp_path / "train.py"), platform=platform, **arguments).plan()
        found = list(yaml.safe_load_all(made.script))
        return [each["spec"] | {"metadata": each["metadata"]} for each in found if each["kind"] == "Pod"]

    return plan


def container(pod, name):
    return next(each for each in pod["containers"] if each["name"] == name)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"namespce": "ml"}, ["namespce is no setting", "the settings are namespace, "]),
        ({"image": 5}, ["image is 5", "give text"]),
        ({"resources": "cpu=1"}, ["resources is 'cpu=1'", "give an object"]),
        ({"tolerations": "all"}, ["tolerations is 'all'", "give a list"]),
        ({"queue": 2}, ["queue is 2", "give text"]),
        ({"schedule_timeout": "5m"}, ["schedule_timeout is '5m'", "give a whole number, 0 or more"]),
        ({"schedule_timeout": -5}, ["schedule_timeout is -5", "give a whole number, 0 or more"]),
        ({"group_resources": {"ps": {"cpu": "2"}}}, ["resources is {'cpu': '2'}", "give requests and limits"]),
        ({"restricted": "yes"}, ["restricted is 'yes'", "give true or false"]),
        ({"resources": {"cpu": "2"}}, ["resources is {'cpu': '2'}", "give requests and limits, such as {'requests'"]),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_its_value_and_the_next_step(settings, words, monkeypatch):
    with pytest.raises(SpecError) as caught:
        Kubernetes(**settings)
    assert all(word in str(caught.value) for word in ("Kubernetes(...)", *words))
    monkeypatch.setenv("SCRIPTMODE_KUBERNETES", json.dumps(settings))
    with pytest.raises(SpecError) as caught:
        Kubernetes()
    assert all(word in str(caught.value) for word in ("SCRIPTMODE_KUBERNETES", *words))


@pytest.mark.parametrize("text", ["namespace=ml", "[]", '"ml"'])
def test_a_variable_without_a_json_object_is_refused(text, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_KUBERNETES", text)
    with pytest.raises(SpecError, match="give a JSON object"):
        Kubernetes()


def test_arguments_replace_what_the_variable_has():
    environ = {"SCRIPTMODE_KUBERNETES": json.dumps({"namespace": "a", "image": "one"})}
    found = parse_settings({"namespace": "b"}, environ)
    assert (found.namespace, found.image, found.agent_python) == ("b", "one", "python3")


@pytest.mark.parametrize("instance_type", ["local_process", "kubernetes:gpus=2", "kubernetes:4"])
def test_other_instance_types_are_refused(objects, instance_type):
    with pytest.raises((SpecError, RequestError), match="use 'kubernetes' or 'kubernetes:gpu=N'"):
        objects(instance_type=instance_type)


def test_a_job_without_an_image_and_one_without_a_cluster_are_refused(objects, monkeypatch):
    with pytest.raises(SpecError, match=r"give the image .* or Kubernetes\(image=\.\.\.\)"):
        objects(image_uri=None)
    monkeypatch.setenv("KUBECONFIG", "/missing")
    with pytest.raises(ConfigError, match="there is no Kubernetes cluster"):
        objects()


def test_a_job_without_the_package_that_makes_its_certificate_is_refused_before_it_exists(objects, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingPackageError, match=r"needs cryptography, .* pip install 'scriptmode\[kubernetes\]'"):
        objects()


def test_a_patch_mounts_another_volume_and_keeps_those_of_the_pod(objects):
    volume, mount = {"name": "data", "emptyDir": {}}, {"name": "data", "mountPath": "/data"}
    containers = [{"name": "train", "volumeMounts": [mount]}]
    (pod,) = objects({"patch": {"spec": {"volumes": [volume], "containers": containers}}})
    assert [each["name"] for each in pod["volumes"]] == ["scriptmode", "shm", "data"]
    mounts = [each["mountPath"] for each in container(pod, "train")["volumeMounts"]]
    assert mounts == ["/opt/ml", "/scriptmode-control", "/dev/shm", "/data"]


def test_another_process_creates_the_same_platform():
    platform = Kubernetes(image="image:1", namespace="ml", stop_grace=7)
    arguments = json.loads(json.dumps(platform.arguments))
    made = tuning_agent._create_platform(arguments)
    assert type(made) is Kubernetes
    assert made.arguments == platform.arguments


def test_a_pod_has_two_containers_that_share_a_volume_and_see_each_others_processes(objects):
    (pod,) = objects()
    assert pod["shareProcessNamespace"] is True
    assert pod["restartPolicy"] == "Never"
    assert pod["automountServiceAccountToken"] is False
    train = container(pod, "train")
    shared = {each["mountPath"]: each.get("subPath") for each in train["volumeMounts"]}
    assert shared["/opt/ml"] == "hosts/algo-1"
    assert shared["/scriptmode-control"] == "control"
    assert container(pod, "agent")["image"] == train["image"] == "image:1"
    # More than the script's own grace period.
    assert pod["terminationGracePeriodSeconds"] > 30


def test_settings_are_in_the_pods(objects):
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    (pod,) = objects(
        {
            "agent_image": "agent:2", "agent_python": "/opt/python", "node_selector": {"pool": "gpu"},
            "tolerations": tolerations, "resources": {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}},
        },
        instance_type="kubernetes:gpu=2",
    )  # fmt: skip
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert pod["tolerations"] == tolerations
    assert container(pod, "agent")["image"] == "agent:2"
    assert container(pod, "agent")["command"][0] == "/opt/python"
    expected = {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi", "nvidia.com/gpu": "2"}}
    assert container(pod, "train")["resources"] == expected
    # A quota of memory's limits refuses a container without one.
    assert container(pod, "agent")["resources"]["limits"].keys() == {"memory"}


def test_restricted_pods_have_one_user_unless_a_patch_leaves_it_to_the_cluster(objects):
    (pod,) = objects({"restricted": True})
    assert pod["securityContext"].items() >= {"runAsNonRoot": True, "runAsUser": 1000}.items()
    for made in pod["containers"]:
        assert made["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert "runAsUser" not in made["securityContext"]
        assert {"name": "HOME", "value": "/tmp"} in made["env"]
    (pod,) = objects({"restricted": True}, environment={"HOME": "/opt/ml/home"})
    (home,) = (variable for variable in container(pod, "train")["env"] if variable["name"] == "HOME")
    assert "value" not in home
    (pod,) = objects({"restricted": True, "patch": {"spec": {"securityContext": {"runAsUser": None}}}})
    assert "runAsUser" not in pod["securityContext"]


def test_each_host_has_the_gpus_and_the_resources_of_its_group(objects, monkeypatch):
    groups = [InstanceGroup("a", "kubernetes", 1), InstanceGroup("b", "kubernetes:gpu=8", 1)]
    settings = {"resources": {"requests": {"cpu": "8"}}, "group_resources": {"a": {"requests": {"cpu": "2"}}}}
    first, second = objects(settings, instance_type=None, instance_groups=groups)
    assert container(first, "train")["resources"] == {"requests": {"cpu": "2"}}
    assert container(second, "train")["resources"] == {"requests": {"cpu": "8"}, "limits": {"nvidia.com/gpu": "8"}}
    with pytest.raises(
        SpecError, match="group_resources has 'c', which is no instance group of the job: it has a, b; "
    ):
        objects({"group_resources": {"c": {}}}, instance_type=None, instance_groups=groups)
    with pytest.raises(
        SpecError, match="group_resources has 'a', which .*: it has homogeneousCluster; correct the name"
    ):
        objects({"group_resources": {"a": {}}})
    monkeypatch.setenv(
        "SCRIPTMODE_KUBERNETES", json.dumps({"group_resources": {"c": {}, "a": {"requests": {"cpu": "4"}}}})
    )
    first, _ = objects(instance_type=None, instance_groups=groups)
    assert container(first, "train")["resources"] == {"requests": {"cpu": "4"}}


def test_the_pods_of_a_job_are_a_group_of_kueue(objects):
    found = objects({"queue": "team"}, instance_count=2)
    groups = {each["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] for each in found}
    assert len(groups) == 1
    assert {each["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for each in found} == {"team"}
    assert {each["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] for each in found} == {"2"}


def test_a_patch_changes_adds_and_removes_and_lists_of_names_are_changed_by_name(objects):
    patch = {
        "metadata": {"labels": {"team": "vision"}},
        "spec": {
            "shareProcessNamespace": None,
            "priorityClassName": "low",
            "containers": [{"name": "train", "imagePullPolicy": "Always"}],
        },
    }
    (pod,) = objects({"patch": patch})
    assert "shareProcessNamespace" not in pod
    assert pod["priorityClassName"] == "low"
    assert pod["metadata"]["labels"]["team"] == "vision"
    assert container(pod, "train")["imagePullPolicy"] == "Always"
    assert container(pod, "train")["image"] == "image:1"
    assert container(pod, "agent")["command"]


def test_a_dollar_sign_in_the_command_is_the_programs_own(objects):
    (pod,) = objects(container_entry_point=["run", "$(HOME)", "a$$b"])
    # Kubernetes replaces $(NAME) by a variable, and $$ by $.
    assert container(pod, "train")["command"][-3:] == ["run", "$$(HOME)", "a$$$$b"]


def test_a_plan_names_no_value_of_a_variable(objects, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-value")
    (pod,) = objects(environment={"TOKEN": "hidden-too"})
    assert "hidden" not in json.dumps(pod)
    names = [each["name"] for each in container(pod, "train")["env"]]
    assert {"AWS_SECRET_ACCESS_KEY", "TOKEN"} <= {*names}


def test_names_are_unique_by_directory_and_short_enough():
    one, other = (pods.names_of(JobFolder(Path(folder, "J" * 80))) for folder in ("/a/jobs", "/b/jobs"))
    assert one != other
    # A label of DNS has 63 characters, and a host's name is added.
    assert len(f"{one.name}-algo-1000") <= 63


def test_a_kubeconfig_has_a_token_or_a_file_of_one(tmp_path, monkeypatch):
    found = api.find_access()
    assert (found.server, found.namespace, found.find_token()) == ("https://10.0.0.1:6443", "ml", "secret")
    (tmp_path / "token").write_text("renewed\n")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"tokenFile": str(tmp_path / "token")})))
    assert api.find_access().find_token() == "renewed"
    assert api.find_access().namespace == "default"


def test_a_kubeconfig_has_certificates_as_data_or_as_files(tmp_path, monkeypatch):
    data = {key: base64.b64encode(key.encode()).decode() for key in ("client-certificate-data", "client-key-data")}
    (tmp_path / "ca.crt").write_text("authority")
    cluster = {"name": "c", "cluster": {**CLUSTER["cluster"], "certificate-authority": "ca.crt"}}
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, data, cluster)))
    found = api.find_access()
    assert found.certificate == ("client-certificate-data", "client-key-data")
    assert found.authority == "authority"


def test_a_command_of_a_kubeconfig_gives_the_token(tmp_path, monkeypatch):
    program = "import json, os; print(json.dumps({'status': {'token': os.environ['WORD']}}))"
    user = {"exec": {"command": sys.executable, "args": ["-c", program], "env": [{"name": "WORD", "value": "given"}]}}
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, user)))
    assert api.find_access().find_token() == "given"
    user["exec"]["args"] = ["-c", "print('no JSON')"]
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, user)))
    with pytest.raises(PlatformError, match="see that kubectl get pods works"):
        api.find_access().find_token()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[", ""),
        ("", "it has no current-context: kubectl config use-context NAME"),
        ("clusters: 5\ncurrent-context: x", "KeyError('contexts')"),
        (
            "contexts: [{name: a, context: {}}, {name: b, context: {}}]\ncurrent-context: x",
            "no context 'x', only 'a', 'b'",
        ),
    ],
)
def test_a_damaged_kubeconfig_is_named(tmp_path, monkeypatch, content, words):
    path = tmp_path / "broken"
    path.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(ConfigError, match="broken is no kubeconfig file that can be used") as raised:
        api.find_access()
    assert words in str(raised.value)
    assert "object at 0x" not in str(raised.value)


def test_a_wrong_context_is_named_with_those_that_exist(objects):
    with pytest.raises(ConfigError, match=r"kubeconfig is no .*: it has no context 'prod', only 'here'; correct it"):
        objects({"context": "prod"})


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"server": "10.0.0.1:6443"}, r"its server is '10\.0\.0\.1:6443', which is no URL such as 'https://"),
        (
            {"certificate-authority-data": "bm8="},
            r"certificates for https://10\.0\.0\.1:6443 cannot be used: .*; correct",
        ),
        ({"certificate-authority": "missing.crt"}, r"kubeconfig is no kubeconfig file .* No such file .*missing\.crt"),
    ],
)
def test_a_wrong_server_and_wrong_certificates_are_refused_before_the_job_exists(
    objects, tmp_path, monkeypatch, cluster, words
):
    changed = {"name": "c", "cluster": {**CLUSTER["cluster"], **cluster}}
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {"token": "secret"}, changed)))
    with pytest.raises(ConfigError, match=words):
        objects()


def test_a_kubeconfig_is_named_by_its_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    with pytest.raises(
        ConfigError,
        match=f"KUBECONFIG is 'kubeconfig'; give its absolute path: export KUBECONFIG={tmp_path}/kubeconfig",
    ):
        api.find_access()


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        (401, "Unauthorized", "see that kubectl get pods works"),
        (
            403,
            'pods is forbidden: User "u" cannot create resource "pods"',
            "give the user the rights of: scriptmode serve",
        ),
        (
            403,
            'pods "x" is forbidden: no PriorityClass with name low was found',
            "correct the arguments of Kubernetes(...)",
        ),
        (403, 'pods "x" is forbidden: exceeded quota: q', "ask for fewer hosts"),
        (403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest": x', "use Kubernetes(restricted=True)"),
        (404, 'namespaces "mll" not found', "create it, or correct Kubernetes(namespace=...)"),
        (422, "Pod is invalid: spec.containers[1]", "correct the arguments of Kubernetes(...)"),
    ],
)
def test_what_the_api_refuses_has_a_next_step(code, message, advice):
    content = json.dumps({"message": message}).encode()
    with answering(lambda *_: (code, content)) as server, pytest.raises(PlatformError) as raised:
        api.Api(api.Access(f"http://127.0.0.1:{server.server_port}", "ml")).create("pods", {})
    assert (raised.value.message, raised.value.advice[: len(advice)]) == (
        f"the API server refuses POST /api/v1/namespaces/ml/pods: {message} ({code})", advice,
    )  # fmt: skip
    # A cluster from 1.25 on refuses a field that it does not know.
    assert server.paths == ["/api/v1/namespaces/ml/pods?fieldValidation=Strict"]


def test_another_access_key_is_another_pod_of_the_server(tmp_path):
    for _ in "twice":
        made = {each["kind"]: each for each in manifests.manifests("ml", "image", "1Gi")}
        (key,) = json.loads(made["Secret"]["stringData"]["keys.json"])
        template = made["StatefulSet"]["spec"]["template"]
        assert template["metadata"]["annotations"]["scriptmode/access-key"] == key


def test_the_pod_of_the_server_is_probed_without_a_key_and_has_the_time_that_its_jobs_have_to_end():
    made = {each["kind"]: each for each in manifests.manifests("ml", "image", "1Gi")}
    template = made["StatefulSet"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    for probe in (container["readinessProbe"], container["livenessProbe"]):
        (accept,) = probe["httpGet"]["httpHeaders"]
        assert is_for_page(
            {"REQUEST_METHOD": "GET", "PATH_INFO": probe["httpGet"]["path"], "HTTP_ACCEPT": accept["value"]}
        )
    assert probe["periodSeconds"] * probe["failureThreshold"] >= template["spec"]["terminationGracePeriodSeconds"]
    assert template["spec"]["terminationGracePeriodSeconds"] > contract.DEFAULT_STOP_GRACE + contract.STOP_MARGIN
    assert template["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_a_restricted_server_is_in_a_namespace_that_enforces_it_and_so_are_its_jobs():
    made = {each["kind"]: each for each in manifests.manifests("ml", "image", "1Gi", restricted=True)}
    assert made["Namespace"]["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    (server,) = pod["containers"]
    assert server["securityContext"]["allowPrivilegeEscalation"] is False
    variables = {entry["name"]: entry["value"] for entry in server["env"]}
    assert json.loads(variables["SCRIPTMODE_KUBERNETES"])["restricted"] is True


def test_a_server_asks_for_the_gpus_of_an_instance_type():
    table = HostTable("kubernetes", {"ml.new.*": "kubernetes:gpu=16"})
    types = ("ml.c5.xlarge", "ml.p3.8xlarge", "ml.new.large", "kubernetes")
    expected = ["kubernetes", "kubernetes:gpu=4", "kubernetes:gpu=16", "kubernetes"]
    assert list(map(table.hosts_for, types)) == expected
    with pytest.raises(ApiError, match=r"ml\.g99\.large' is not known; add it to \[instance_types\]"):
        table.hosts_for("ml.g99.large")
    assert HostTable("slurm").hosts_for("ml.p3.8xlarge") == "slurm"


def test_the_service_account_has_the_rights_that_the_engine_uses_and_no_others():
    verbs = {"delete_all": "deletecollection"}
    found = {}
    for module in (engine, fleet):
        for verb, kind in re.findall(r'\bapi\.(\w+)\(\s*"(\w+)"', Path(module.__file__).read_text()):
            found.setdefault(kind, set()).add(verbs.get(verb, verb))
    assert found == {kind: set(each) for kind, each in manifests.RIGHTS.items()}
    rules = next(each["rules"] for each in manifests.manifests("ml", "image", "1Gi") if each["kind"] == "Role")
    assert {each["resources"][0]: set(each["verbs"]) for each in rules} == found


def test_hosts_reach_the_servers_of_this_machine_by_its_address():
    given = {"AWS_ENDPOINT_URL": "http://0.0.0.0:4580", "AWS_ENDPOINT_URL_S3": "https://s3.example.com", "A": "::1"}
    assert engine.with_address(given, "fd00::5") == {**given, "AWS_ENDPOINT_URL": "http://[fd00::5]:4580"}


def test_the_guide_has_all_rights_and_all_settings():
    rows = re.findall(r"^\| (\S.*?) \| (.*?) \|$", GUIDE.read_text(), re.MULTILINE)
    rights = {kind: tuple(verbs.split(", ")) for kind, verbs in rows if kind in manifests.RIGHTS}
    assert rights == manifests.RIGHTS
    named = {name for first, _ in rows for name in re.findall(r"`(\w+)`", first)}
    assert named == {each.name for each in dataclasses.fields(KubernetesSettings)}


@pytest.fixture
def hosts(tmp_path):
    """Return the pods of a job of two hosts."""
    job = Job(parse_request(request_for("job-1", hosts=2)), "arn", "us-east-1", "python", 1.0)
    job = dataclasses.replace(job, engine=parse_settings({}, {}).to_json())
    folder = JobFolder(tmp_path / "data" / "jobs" / "job-1")
    folder.channels.mkdir(parents=True)
    return fleet.KubernetesFleet(folder, job, Tasks(), {})


def test_a_relay_serves_its_host_while_the_api_server_does_not_answer_it(hosts, tmp_path, monkeypatch):
    """A relay lists the pods itself where the watch of the pods was killed."""
    hosts._pods_file.write_text("{}")
    os.utime(hosts._pods_file, (0, 0))
    with socket.create_server(("127.0.0.1", 0)) as server:
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.getsockname()[1]}"}}
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, {}, cluster)))
        begun = time.monotonic()
        assert hosts.waits_for("algo-1") == "the pod of algo-1"
        soon(time.monotonic() - begun, 5)
        server.accept()[0].close()


def test_pods_that_the_api_server_may_have_deleted_without_an_answer_are_created_again(hosts):
    calls = []

    def call(name, *_words, **_options):
        calls.append(name)
        if calls == ["delete_all"]:
            raise api.ApiError("no answer", api.UNREACHABLE)
        return {"items": []}

    hosts._longest_partial, hosts._made = 0.1, ["one", "two"]
    hosts._addresses.mkdir()
    hosts._release(SimpleNamespace(**{name: partial(call, name) for name in ("delete_all", "list", "create")}))
    assert calls == ["delete_all", "delete_all", "list", "create", "create"]
    assert hosts.why_replaced("algo-1") == ""


def test_no_host_starts_while_pods_are_released_and_pods_that_may_not_be_deleted_stay(hosts, capsys):
    def refuse(*_words, **_options):
        assert not hosts.write_sandbox("algo-1", "10.0.0.1")
        assert "were deleted" in hosts.why_replaced("algo-1")
        raise api.ApiError("pods is forbidden", 403)

    hosts._longest_partial = 0.1
    hosts._addresses.mkdir()
    for name in hosts.sandboxes:
        (hosts._addresses / name).touch()
    hosts._release(SimpleNamespace(delete_all=refuse))
    assert "pods keep nodes that others may wait for: pods is forbidden" in capsys.readouterr().err
    assert (hosts.why_replaced("algo-1"), hosts._longest_partial) == ("", float("inf"))


def test_the_places_of_pods_are_recorded_with_their_nodes_and_stay_when_they_are_deleted(hosts):
    pod = {"metadata": {"name": "job-1-algo-1", "namespace": "ml"}, "spec": {}}
    hosts._write_pods({"algo-1": pod})
    assert hosts._folder.read_places() == {"algo-1": "pod job-1-algo-1, namespace ml"}
    hosts._write_pods({"algo-1": {**pod, "spec": {"nodeName": "n1"}}})
    hosts._write_pods({"algo-1": None})
    assert hosts._folder.read_places() == {"algo-1": "pod job-1-algo-1, namespace ml, node n1"}
