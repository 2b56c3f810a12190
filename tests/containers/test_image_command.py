"""The ``scriptmode image`` command: names, recipes, and what it says where something is missing."""

import io
import os
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from containers.conftest import ROOT
from moto import mock_aws

from scriptmode import ContainerError, SpecError
from scriptmode.containers import (
    TENSORFLOW_VERSIONS,
    _docker_client as docker_client,
    _image_recipe as image_recipe,
    _package_indexes as package_indexes,
    build_image,
    built_image,
    default_image,
)
from scriptmode.containers._training_images import registry_login

SCRIPTMODE = str(Path(sys.executable).with_name("scriptmode"))
#: Builds as a user who may not use the socket: root may use every one.
STRANGER = """
import getpass, os, sys
import docker, docker.context, requests
from scriptmode import ContainerError
from scriptmode.containers import build_image
if os.geteuid() == 0:
    os.setuid(12345)
try:
    build_image()
except ContainerError as error:
    print(error)
"""


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A Docker daemon that is not there."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")


def scriptmode(*words):
    return subprocess.run((SCRIPTMODE, *words), check=False, capture_output=True, text=True, timeout=600)


def test_the_name_is_that_of_the_content():
    names = {default_image(version) for version in TENSORFLOW_VERSIONS}
    names |= {default_image("2.21.0", base="debian:trixie-slim"), default_image("2.21.0", gpu=True, base="cuda:1")}
    assert len(names) == 4
    assert all(name.startswith("scriptmode:2.") for name in names)
    assert default_image() == default_image("2.21") == default_image("2.21.0")
    assert "-gpu-" in default_image("2.15", gpu=True, base="cuda:1")


def test_one_recipe_makes_one_context():
    wanted = image_recipe.resolve_recipe("2.15.1")
    assert wanted.context({"codename": b"x"}) == wanted.context({"codename": b"x"})
    with tarfile.open(fileobj=io.BytesIO(wanted.context({"pip.conf": b"[global]\n"}))) as tar:
        names = tar.getnames()
    assert {"Dockerfile", "locks/2.15.1-cpu.txt", "settings/pip.conf", "scriptmode_runtime/__main__.py"} <= set(names)
    assert "locks/2.21.0-cpu.txt" not in names
    assert not [name for name in names if name.endswith((".pyc", ".so"))]


def test_every_stage_that_has_the_machines_settings_bears_the_label_by_which_they_are_removed():
    stages = (image_recipe.recipe_directory() / "Dockerfile").read_text().split("\nFROM ")[1:]
    with_settings = [stage for stage in stages if "COPY settings" in stage]
    assert len(with_settings) == 2
    for stage in with_settings:
        assert stage.index(f"LABEL {image_recipe.STAGE_LABEL}=") < stage.index("COPY settings")
    assert stages[-1].startswith("${BASE}\n")
    assert "settings" not in stages[-1]


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"pip.conf": b"[global]\nindex-url = https://name:word@index.example/simple\n"}, True),
        ({"sources.list": b"deb http://a:b@mirror.example/debian bookworm main\n"}, True),
        ({"auth.conf": b"machine mirror.example login a password b\n"}, True),
        ({"pip.conf": b"[global]\nindex-url = https://index.example/@scope/simple\n", "auth.conf": b""}, False),
        ({"ca-certificates.crt": b"# someone@example.org\n-----BEGIN CERTIFICATE-----\n"}, False),
    ],
    ids=["a password", "in apt's sources", "apt's", "none", "only certificates"],
)
def test_credentials_of_package_indexes_are_recognized(files, wanted):
    assert package_indexes.have_credentials(files) is wanted


def test_a_cuda_base_is_built_beside_in_the_image_that_has_headers():
    wanted = image_recipe.resolve_recipe("2.15.1", gpu=True, base="nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04")
    assert wanted.development_base == "nvidia/cuda:12.2.2-cudnn8-devel-ubuntu22.04"
    assert wanted.arguments["VARIANT"] == "gpu"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tensorflow": "2.14.0"}, "no image with TensorFlow '2.14.0', only with 2.15.1 and 2.21.0"),
        ({"gpu": True}, "image for GPUs is made from one with CUDA; name it with base="),
    ],
    ids=["an old TensorFlow", "no CUDA"],
)
def test_a_version_without_a_recipe_is_refused_without_docker(arguments, message, nowhere):
    with pytest.raises(SpecError, match=message):
        build_image(**arguments)


def test_no_daemon_is_one_line_that_says_what_to_do(nowhere):
    done = scriptmode("image", "build")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("scriptmode: the Docker daemon at unix://")
    assert "No such file or directory" in done.stderr
    assert "apt install docker.io" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_daemon_that_is_gone_left_its_socket(monkeypatch, tmp_path):
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(tmp_path / "s"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
    with pytest.raises(
        ContainerError, match="daemon at unix:.*/s cannot be used: .*refused; install Docker and start it"
    ):
        built_image("2.15.1")


def test_a_socket_of_other_users_names_the_group(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        path = tmp_path / "s"
        listening.bind(str(path))
        listening.listen()
        path.chmod(0)
        for folder in (tmp_path, *list(tmp_path.parents)[:2]):
            folder.chmod(0o755)
        environment = {**os.environ, "DOCKER_HOST": f"unix://{path}", "HOME": str(tmp_path), "LOGNAME": "ada"}
        done = subprocess.run(
            (sys.executable, "-c", STRANGER), check=False, capture_output=True, text=True, timeout=600, env=environment
        )
    assert "cannot be used: [Errno 13] Permission denied" in done.stdout, done.stderr
    assert "sudo usermod -aG docker $USER" in done.stdout


def test_an_invalid_host_is_named(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "somewhere")
    with pytest.raises(ContainerError, match="Docker daemon at somewhere cannot be used: .* correct DOCKER_HOST"):
        built_image()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([{"stream": "\x1b[91mStep 2/9 : RUN make\x1b[0m\n"}, {"stream": "cc: not found\n"}, {"error": "code: 127"}],
         "building x failed: code: 127\nStep 2/9 : RUN make\ncc: not found"),
        ([*({"stream": f"{n}\n"} for n in range(99)), {"error": "e"}],
         "\n".join(("building x failed: e", *map(str, range(84, 99))))),
    ],
    ids=["its last words", "only the last lines"],
)  # fmt: skip
def test_a_build_that_fails_says(said, message):
    with pytest.raises(ContainerError) as raised:
        docker_client._read_progress(said, "building x failed", docker_client.ignore_line)
    assert str(raised.value) == message


def test_pips_indexes_reach_the_build_and_folders_do_not(tmp_path):
    config = tmp_path / ".config" / "pip"
    config.mkdir(parents=True)
    (config / "pip.conf").write_text(
        "[global]\nindex-url = https://name:word@index.example/simple\nextra-index-url =\n  file:///srv/simple\n"
        "  https://more.example/simple\nfind-links = /srv/wheels\ncert = /srv/ca.crt\n[install]\nretries=9\n"
    )
    environ = {"HOME": str(tmp_path), "PIP_TRUSTED_HOST": "more.example", "PIP_CONFIG_FILE": ""}
    lines = package_indexes.index_settings(environ)["pip.conf"].decode().splitlines()
    assert lines == [
        "[global]",
        "index-url = https://name:word@index.example/simple",
        "extra-index-url = https://more.example/simple",
        "trusted-host = more.example",
        "retries = 9",
    ]


def test_apt_trusts_in_the_build_what_this_machine_trusts(tmp_path):
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    files = package_indexes.index_settings({"HOME": str(tmp_path), "SSL_CERT_FILE": str(tmp_path / "ca.crt")})
    assert files["ca-certificates.crt"] == b"-----BEGIN CERTIFICATE-----\n"
    # Where this machine has apt.
    assert files.get("apt.conf", b'"/settings/ca-certificates.crt";\n').endswith(b'"/settings/ca-certificates.crt";\n')


def test_only_proxies_are_arguments_of_the_build():
    environ = {"HTTPS_PROXY": "http://p:1", "no_proxy": "a", "http_proxy": "", "PIP_INDEX_URL": "https://x"}
    assert package_indexes.proxy_variables(environ) == {"HTTPS_PROXY": "http://p:1", "no_proxy": "a"}


@pytest.mark.slow
def test_an_installed_scriptmode_builds_the_same_image(tmp_path):
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    subprocess.run(pip, check=True, timeout=600, capture_output=True)
    [wheel] = tmp_path.glob("scriptmode-*.whl")
    installed = tmp_path / "installed"
    subprocess.run((sys.executable, "-m", "zipfile", "-e", wheel, installed), check=True)
    code = "from scriptmode.containers import default_image, _image_recipe as image_recipe; print(default_image(), image_recipe.recipe_directory())"
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        (sys.executable, "-c", code), check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stdout.split() == [default_image(), str(installed / "scriptmode" / "containers" / "image")]
    assert os.access(installed / "scriptmode" / "containers" / "image" / "base_image.sh", os.R_OK)


def test_an_image_of_a_repository_is_pulled_with_a_login_of_its_region(monkeypatch, no_credentials):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        assert registry_login("123456789012.dkr.ecr.ap-south-1.amazonaws.com/training:1")["username"] == "AWS"
    assert registry_login("127.0.0.1:5000/training:1") is None
    assert registry_login("training") is None
