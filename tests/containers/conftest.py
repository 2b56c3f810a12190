"""A Docker daemon that answers, this project's images, and jobs in plain `docker run`."""

import hashlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from containers.estimator_jobs import PROGRAMS, ContainerJob
from fakes.archives import packed

from scriptmode import MPI
from scriptmode.containers import (
    TENSORFLOW_VERSIONS,
    _docker_client as docker_client,
    _package_indexes as package_indexes,
    build_image,
)

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
_USE = {"settings/use.sh": ROOT / "container" / "settings" / "use.sh"}
#: What AWS's image is made from.
AWS_IMAGE = {
    **_USE,
    "Dockerfile": HERE / "aws_image" / "Dockerfile",
    "difference.sh": ROOT / "container" / "difference.sh",
}
#: What an image with the runtime alone is made from.
RUNTIME_IMAGE = {
    **_USE,
    "Dockerfile": HERE / "runtime_image" / "Dockerfile",
    **{f"{path.relative_to(ROOT / 'entrypoints')}": path for path in (ROOT / "entrypoints").rglob("*.py")},
}
#: Neither root nor a user that the image knows.
STRANGER = "12345:12345"


def docker(*words, timeout=300):
    """Run a command of Docker's client; return its outcome, with both streams in one text."""
    return subprocess.run(
        ("docker", *words), check=False, text=True, errors="replace", timeout=timeout, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def pushed(image, name):
    """Push an image under a name of a registry, and keep the name there alone."""
    for words in (("tag", image, name), ("push", name), ("image", "rm", name)):
        done = docker(*words)
        assert done.returncode == 0, done.stdout
    return name


@pytest.fixture(scope="session")
def docker_daemon():
    """A daemon that answers: the machine's own, else one that is started for these tests."""
    if docker("version").returncode == 0:
        yield
        return
    started = subprocess.run([ROOT / ".ci" / "docker", "start"], check=False, capture_output=True, text=True)
    if started.returncode:
        pytest.fail(started.stderr.strip().splitlines()[-1], pytrace=False)
    yield
    subprocess.run([ROOT / ".ci" / "docker", "stop"], check=True)


@pytest.fixture(scope="session")
def base_image(docker_daemon):
    """Name of what images are made from: Debian's image, or one like it that is made where no registry is in reach."""
    made = subprocess.run([ROOT / "container" / "base_image.sh"], check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.fail(made.stderr.strip().splitlines()[-1], pytrace=False)
    return made.stdout.strip()


def pytest_itemcollected(item):
    """Give a test that may be the first to need an image the time to build it: Horovod takes minutes."""
    if {"built", "image"} & set(item.fixturenames) and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(2400))


@pytest.fixture(scope="session")
def built(base_image):
    """Build the image of a TensorFlow version, once; that takes minutes only where nothing of it is there yet."""
    return cache(build_image)


@pytest.fixture(scope="session", params=TENSORFLOW_VERSIONS)
def tensorflow_version(request):
    """Each TensorFlow that there is an image for."""
    return request.param


@pytest.fixture(scope="session")
def image(built, tensorflow_version):
    """Its image."""
    return built(tensorflow_version)


def users_of_images(function):
    """Run a test with each image and each user; with every combination of them if the run is thorough."""
    users = {"root": None, "a plain user": STRANGER}
    combinations = [
        pytest.param(
            version, user, id=f"{version}-{name}", marks=[] if (row + column) % 2 == 0 else [pytest.mark.thorough]
        )
        for row, version in enumerate(TENSORFLOW_VERSIONS)
        for column, (name, user) in enumerate(users.items())
    ]
    names = ("tensorflow_version", "user")
    return pytest.mark.parametrize(names, combinations, indirect=["tensorflow_version"], scope="session")(function)


@pytest.fixture(scope="session")
def make_image(base_image):
    """Build an image from a Dockerfile's text, in which BASE is Debian; its name is for tests alone. Docker keeps it."""

    def make(name, dockerfile):
        dockerfile = dockerfile.replace("FROM BASE\n", f"FROM {base_image}\n")
        image = f"scriptmode-test:{name}"
        docker_client.build(packed({"Dockerfile": dockerfile}, "w"), image, on_line=docker_client.ignore_line)
        return image

    return make


@pytest.fixture(scope="session")
def aws_image(base_image):
    """AWS's image, built once for what it is made from; that takes some minutes."""
    return built_once("scriptmode-test-aws", AWS_IMAGE, base_image)


@pytest.fixture(scope="session")
def runtime_image(base_image):
    """Name of an image with Python and the runtime alone, built once for what it is made from, in seconds."""
    return built_once("scriptmode-test-runtime", RUNTIME_IMAGE, base_image)


def built_once(name, recipe, base):
    """Build an image of files, with this machine's package indexes, unless it is there; return its name."""
    files = {path: source.read_bytes() for path, source in recipe.items()}
    image = f"{name}:{hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]}"
    if not docker_client.has_image(image):
        settings = {f"settings/{name}": content for name, content in package_indexes.index_settings(os.environ).items()}
        arguments = {**package_indexes.proxy_variables(os.environ), "BASE": base}
        docker_client.build(packed({**files, **settings}, "w"), image, {"buildargs": arguments}, on_line=print)
    return image


@pytest.fixture(scope="session")
def foreign_jobs(aws_image, tmp_path_factory):
    """One job on one host, one that fails, and one of two hosts with a rank each, all started."""
    data = tmp_path_factory.mktemp("input")
    (data / "numbers.csv").write_text("1,2,3\n")
    data_dir = tmp_path_factory.mktemp("data")

    def start(**fields):
        return ContainerJob(
            data_dir, entry_point="of_anyone.py", source_dir=str(PROGRAMS), image_uri=aws_image,
            inputs={"train": data.as_uri()}, **fields,
        )  # fmt: skip

    started = {
        "mpi": start(distribution=MPI(processes_per_host=1)),
        "single": start(instance_count=1, hyperparameters={"learning-rate": 0.1}),
        "fails": start(instance_count=1, hyperparameters={"ends-with": 7}),
    }
    yield started
    for job in started.values():
        job.close()


@dataclass(frozen=True)
class PlainJob:
    """A hand-made ``/opt/ml``, and `docker run` over it, as anybody would who has no SDK."""

    folder: Path

    def prepare(self, program, **hyperparameters):
        """Write the platform's files and the script."""
        settings = {"sagemaker_program": "train.py", **hyperparameters}
        self._write("code/train.py", program)
        self._write("input/config/hyperparameters.json", json.dumps({k: json.dumps(v) for k, v in settings.items()}))
        hosts = {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
        self._write("input/config/resourceconfig.json", json.dumps(hosts))
        self._write("input/config/inputdataconfig.json", "{}")
        for name in ("model", "output"):
            # For any user of the container.
            (self.folder / name).mkdir()
            (self.folder / name).chmod(0o777)

    def run(self, image, *words, user=None, options=()):
        """Run the image over the folder, without a network; no host of a name has to be looked up for one host."""
        as_user = ("--user", user) if user else ()
        volume = f"{self.folder}:/opt/ml"
        words = ("run", "--rm", "--network", "none", "--volume", volume, *as_user, *options, image, *words)
        return docker(*words, timeout=900)

    def _write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def plain_job(tmp_path):
    """A training job without anything of the SDK's."""
    folder = tmp_path / "ml"
    folder.mkdir()
    # pytest's own folders are for this user alone.
    for path in (tmp_path, *list(tmp_path.parents)[:2]):
        path.chmod(0o755)
    return PlainJob(folder)


@pytest.fixture
def registry(tmp_path):
    """A registry on loopback; its address."""
    program = shutil.which("docker-registry")
    assert program, "images are pushed to a registry: apt install docker-registry"
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (tmp_path / "config.yml").write_text(
        json.dumps({
            "version": 0.1, "log": {"level": "error"}, "http": {"addr": address},
            "storage": {"filesystem": {"rootdirectory": str(tmp_path / "images")}},
        })
    )  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen((program, "serve", tmp_path / "config.yml"), stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 600
        while not answer(address, "/v2/"):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()


def answer(address, path):
    with closing(http.client.HTTPConnection(address, timeout=10)) as connection, suppress(OSError):
        connection.request("GET", path)
        return connection.getresponse().read()
    return b""
