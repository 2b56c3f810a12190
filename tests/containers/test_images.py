"""What is in the images, and what is not."""

import json
import re

import pytest
from containers.conftest import STRANGER, docker, users_of_images

from scriptmode.containers import _image_recipe as image_recipe, build_image

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "ld", "as", "make", "cmake", "nvcc", "gfortran", "cpp", "cc1plus")
IMPORTS = """
import horovod.tensorflow as hvd
import tensorflow as tf
import boto3, cloudpickle, psutil, yaml
hvd.init()
print("TensorFlow", tf.__version__, "mpi", hvd.mpi_built(), "ranks", hvd.size())
"""
PIPE_READER = """
from scriptmode_runtime.tensorflow import binary, operations
assert operations.load()
print("reader", binary.IN_WHEEL)
"""
#: Counts compiled files; none may be older than its source, or be compiled again at each start. (PEP 552)
COMPILED = """
import importlib.util, pathlib, struct, sys
found = 0
for top in ("/opt/scriptmode/lib", "/usr/lib/python3.11"):
    for path in pathlib.Path(top).rglob("__pycache__/*.pyc"):
        magic, flags, time, size = struct.unpack("<4sLLL", path.read_bytes()[:16])
        source = pathlib.Path(importlib.util.source_from_cache(path)).stat()
        assert (magic, flags) == (importlib.util.MAGIC_NUMBER, 0), path
        assert (time, size) == (int(source.st_mtime), source.st_size), path
        found += 1
print(found)
"""


def in_image(image, *words, user=None):
    """Run a command in an image that has no network."""
    as_user = ("--user", user) if user else ()
    done = docker("run", "--rm", "--network", "none", *as_user, image, *words)
    assert done.returncode == 0, done.stdout
    return done.stdout


@users_of_images
def test_tensorflow_and_horovod_are_there_for(user, image, tensorflow_version):
    assert f"TensorFlow {tensorflow_version} mpi True ranks 1" in in_image(image, "python", "-c", IMPORTS, user=user)


def test_there_is_no_compiler_and_the_pipe_reader_needs_none(image):
    assert "reader /opt/scriptmode/" in in_image(image, "python", "-c", PIPE_READER, user=STRANGER)
    found = in_image(image, "sh", "-c", f"for name in {' '.join(COMPILERS)}; do command -v $name; done; true")
    assert found == ""
    assert in_image(image, "sh", "-c", "find / -xdev -name 'cc1*' -o -xdev -name 'libclang*'") == ""


def test_there_are_no_keys(image):
    keys = in_image(
        image, "sh", "-c", "grep -rlE -e '-----BEGIN [A-Z ]*PRIVATE KEY' /etc /root /home /opt /var /usr/local || true"
    )
    # Programs that look for keys are none, nor are the examples of AWS's documentation.
    assert [name for name in keys.split() if not name.endswith((".py", ".pyc")) and "/botocore/data/" not in name] == []
    assert in_image(image, "sh", "-c", "ls -A /root /home").count("_key") == 0


def test_nothing_of_the_machine_that_built_it_is_there(image):
    paths = "/settings /stage /lock.txt /scriptmode_runtime /difference /before /var/lib/apt/lists/*"
    files = in_image(image, "sh", "-c", f"ls -d {paths} || true")
    assert not [line for line in files.splitlines() if "No such file" not in line]
    history = docker("history", "--no-trunc", image).stdout
    assert "settings" not in history
    assert "PIP_" not in history


def test_it_trusts_debians_certificate_authorities_and_no_others(image):
    added = "ls -A /usr/local/share/ca-certificates; cat /usr/share/ca-certificates/mozilla/*.crt | grep -c BEGIN"
    *others, own = in_image(image, "sh", "-c", f"{added}; grep -c BEGIN /etc/ssl/certs/ca-certificates.crt").split()
    assert others == [own]


def test_no_program_gives_more_rights_than_its_user_has(image):
    assert in_image(image, "find", "/", "-xdev", "-type", "f", "-perm", "/6000") == ""


def test_every_package_is_the_lock_files(image, tensorflow_version):
    lock = (image_recipe.recipe_directory() / "locks" / f"{tensorflow_version}-cpu.txt").read_text()
    locked = {
        (name.lower().replace("_", "-"), version) for name, version in re.findall(r"^(\S+?)==(\S+)", lock, re.MULTILINE)
    }
    installed = in_image(image, "python", "-m", "pip", "list", "--format", "freeze")
    found = {tuple(line.lower().replace("_", "-").split("==")) for line in installed.split()}
    # The distribution without files, which says that TensorFlow is installed; the lock file names it for other machines.
    assert found - locked == {("horovod", "0.28.1")}
    assert ("tensorflow", tensorflow_version) in found
    assert in_image(image, "python", "-m", "pip", "check") == "No broken requirements found.\n"


def test_compiled_python_files_belong_to_their_sources(image):
    assert int(in_image(image, "python", "-c", COMPILED)) > 5000


def test_it_says_what_it_is_and_is_not_large(image, tensorflow_version):
    labels = json.loads(docker("image", "inspect", "--format", "{{json .Config.Labels}}", image).stdout)
    assert labels["scriptmode.tensorflow"] == tensorflow_version
    assert labels["org.opencontainers.image.version"] == image.partition(":")[2]
    assert labels["org.opencontainers.image.base.name"] in ("debian:bookworm-slim", "scriptmode-base:bookworm")
    assert labels["scriptmode.base"].startswith("sha256:")
    assert tensorflow_version in labels["org.opencontainers.image.description"]
    assert int(docker("image", "inspect", "--format", "{{.Size}}", image).stdout) / 1e6 < 1900


def test_every_program_finds_its_libraries(image):
    programs = in_image(image, "sh", "-c", "command -v mpirun; command -v prted")
    assert programs.split() == ["/opt/scriptmode/bin/mpirun", "/opt/scriptmode/bin/prted"]
    script = "for f in /opt/scriptmode/bin/prted $(find /opt/scriptmode -path '*horovod*' -name '*.so'); do ldd $f | grep -H 'not found'; done; true"
    missing = in_image(image, "sh", "-c", script)
    # TensorFlow's own are loaded by the time that Horovod is.
    assert [line for line in missing.splitlines() if "libtensorflow" not in line] == []


def test_a_second_build_is_the_same_image(image, tensorflow_version):
    said = []
    # Of now: the sources may have been changed since the tests began.
    now = build_image(tensorflow_version)
    assert build_image(tensorflow_version, on_line=said.append) == now
    assert said == []
    assert now.startswith(f"scriptmode:{tensorflow_version}-")
