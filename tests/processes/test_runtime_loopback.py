"""TensorFlow's servers of hosts on one machine answer that machine alone."""

import json
import selectors
import socket
import sys
import threading
import time
from importlib import metadata

import pytest
from fakes.host_folders import free_ports, write_job
from processes.launchers import holding, until
from references import environment

from scriptmode_runtime._processes import loopback

#: What an HTTP/2 client sends first, and gRPC's servers answer with their settings.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
SERVES = """
import json, os, sys
import tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
server = tf.distribute.Server(config["cluster"], job_name=task["type"], task_index=task["index"], protocol="grpc")
print("serving", flush=True)
server.join()
"""
#: As TensorFlow's server does it, with the variable and without.
LISTENS = """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
endpoint = config["cluster"][config["task"]["type"]][config["task"]["index"]]
server = socket.socket(socket.AF_INET6)
server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
if os.environ.get("TF_GRPC_REUSE_PORT") == "true":
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("::", int(endpoint.rpartition(":")[2])))
server.listen()
print("serving", flush=True)
while True:
    client, _ = server.accept()
    client.sendall(b"served")
    client.close()
"""
BETWEEN_GRAPH = {"sagemaker_program": "train.py", "sagemaker_parameter_server_enabled": True}
MIRRORED = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}


def answers(address, port):
    """Whether a server at an address of this machine answers a client."""
    family, name, rest = address
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(10)
        try:
            client.connect((name, port, *rest))
            client.sendall(PREFACE)
            return bool(client.recv(1))
        except OSError:
            return False


def others():
    """Addresses to try; later ones, such as those of other programs' containers, are closed a little later."""
    addresses = loopback.other_addresses()
    if not addresses:
        pytest.skip("this machine has no address but its loopback ones")
    return addresses


def ports(job, *roles):
    places = json.loads((job["algo-1"] / "input/config/scriptmode.json").read_text())["hosts"]
    return [place["ports"][role] for place in places.values() for role in roles]


def tf_installed():
    try:
        return metadata.version("tensorflow-cpu")
    except metadata.PackageNotFoundError:
        return ""


LOCALHOST = (socket.AF_INET, "127.0.0.1", ())


@pytest.mark.parametrize(("variables", "exposed"), [({}, False), ({"TF_GRPC_REUSE_PORT": "true"}, True)])
def test_a_trainers_server_answers_at_the_loopback_interface_alone(tmp_path, launch, variables, exposed):
    addresses = others()
    job = write_job(tmp_path / "job", 2, {"train.py": LISTENS}, **MIRRORED)
    launchers = [launch(base, **variables) for base in job.values()]
    for launcher in launchers:
        launcher.says("serving")
    for port in ports(job, "mirrored"):
        assert answers(LOCALHOST, port)
        # Addresses of other programs' containers come and go, and do not answer at once.
        assert any(answers(address, port) for address in addresses) == exposed


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["2.15.1", "2.21.0"])
def test_parameter_servers_and_trainers_of_tensorflow_answer_this_machine_alone(tmp_path, launch, version):
    python = sys.executable if version == tf_installed() else str(environment(f"tensorflow-cpu=={version}") / "python")
    addresses = others()
    job = write_job(tmp_path / "job", 2, {"train.py": SERVES}, **BETWEEN_GRAPH)
    launchers = [launch(base, python=python) for base in job.values()]
    for launcher in launchers:
        launcher.says("serving")
    for port in ports(job, "worker", "ps"):
        until(lambda port=port: answers(LOCALHOST, port))
        assert [address for address in addresses if answers(address, port)] == []
    launchers[0].send(15)
    assert [launcher.wait() for launcher in launchers] == [143, 143]
    assert not holding(str(tmp_path))


def test_a_port_that_is_taken_is_left_to_the_task_to_tell(tmp_path, launch):
    job = write_job(tmp_path / "job", 2, {"train.py": LISTENS}, **MIRRORED)
    first, _ = ports(job, "mirrored")
    with socket.create_server(("", first)):
        launchers = [launch(base) for base in job.values()]
        assert [launcher.wait() for launcher in launchers] == [1, 1]
    assert "Address already in use" in launchers[0].failure


def test_an_address_that_comes_later_is_closed_too_and_one_that_goes_is_left():
    (port,) = free_ports(1)
    server = socket.socket(socket.AF_INET6)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("::", port))
    server.listen()
    threading.Thread(target=greet, args=(server,), daemon=True).start()
    another = (socket.AF_INET, "127.0.0.2", ())
    there, now = set(), [0.0]
    selector = selectors.DefaultSelector()
    closed = loopback.LoopbackOnly([port], selector, lambda: now[0], lambda: there)
    try:
        assert asked(selector, another, port)
        there.add(another)
        now[0] = closed.deadline()
        closed.tick()
        assert not asked(selector, another, port)
        assert asked(selector, LOCALHOST, port)
        there.clear()
        now[0] = closed.deadline()
        closed.tick()
        assert asked(selector, another, port)
    finally:
        closed.close()
        server.close()


def greet(server):
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        client.sendall(b"served")
        client.close()


def asked(selector, address, port):
    """What a client is answered while the launcher's selector is served."""
    answer = []
    client = threading.Thread(target=lambda: answer.append(answers(address, port)))
    client.start()
    deadline = time.monotonic() + 10
    while client.is_alive() and time.monotonic() < deadline:
        for key, _ in selector.select(0.01) if selector.get_map() else ():
            key.data()
        client.join(0.01)
    return answer[0]


def test_a_listener_that_cannot_be_had_is_named_and_tried_again():
    now = [0.0]
    another = {(socket.AF_INET, "127.0.0.2", ())}
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        one = loopback.LoopbackOnly([port], selectors.DefaultSelector(), lambda: now[0], lambda: another)
        assert one.exposed == [f"127.0.0.2 port {port}"]
    now[0] = one.deadline()
    one.tick()
    assert one.exposed == []
    one.close()
