"""How images are built: from a base that is named by its digest, the same each time, and without credentials."""

import json
import os
import re
import shutil
import subprocess
import uuid

import pytest
from containers.conftest import ROOT, docker, pushed
from fakes.archives import packed

from scriptmode.containers import (
    _docker_client as docker_client,
    _image_recipe as image_recipe,
    _package_indexes as package_indexes,
    build_image,
)
from scriptmode.errors import ContainerError

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

SECRET = "word-of-the-index"
#: As the recipe: a stage has the settings, another one is made from it, the image gets a copy of a result.
WITH_SETTINGS = f"""
FROM BASE AS system
LABEL MARK=settings
COPY settings /settings
RUN grep -q {SECRET} /settings/pip.conf && echo installed > /result
FROM system AS packages
RUN LAST
FROM BASE
COPY --from=packages /result /result
"""
#: Every file below a folder with all that an image keeps of it, as one line.
LISTED = "cd {} && find . -exec stat --format '%n %A %u %g %Y %s' {{}} + | sort; find . -type f -exec sha256sum {{}} + | sort"


def in_image(image, script):
    done = docker("run", "--rm", "--network", "none", image, "sh", "-c", script)
    assert done.returncode == 0, done.stdout
    return done.stdout


def inspected(image, field):
    return json.loads(docker("image", "inspect", "--format", f"{{{{json {field}}}}}", image).stdout)


def labels(image):
    return inspected(image, ".Config.Labels")


@pytest.mark.parametrize(("last", "fails"), [("true", False), ("exit 3", True)], ids=["built", "failed"])
def test_no_image_keeps_credentials_of_package_indexes(last, fails, base_image):
    # Of this build alone: others may run.
    mark = f"scriptmode-test.{uuid.uuid4()}"
    dockerfile = WITH_SETTINGS.replace("FROM BASE", f"FROM {base_image}").replace("LAST", last).replace("MARK", mark)
    context = packed({"Dockerfile": dockerfile, "settings/pip.conf": f"https://name:{SECRET}@index.example"}, "w")
    name = "scriptmode-test:without-credentials"
    said = []
    if fails:
        with pytest.raises(ContainerError, match="failed: .*exit 3"):
            docker_client.build(context, name, {}, mark, on_line=said.append)
    else:
        docker_client.build(context, name, {}, mark, on_line=said.append)
        assert in_image(name, "cat /result; ls /settings 2>&1 || true").startswith("installed\nls: cannot access")
        assert SECRET not in docker("history", "--no-trunc", name).stdout
    stages = ("image", "ls", "--all", "--quiet", "--filter", f"label={mark}")
    assert docker(*stages).stdout == "", said
    labelled = packed({"Dockerfile": f"FROM {base_image}\nLABEL {mark}=settings\n"}, "w")
    docker_client.build(labelled, name, on_line=print)
    assert docker(*stages).stdout != ""


def test_a_context_without_the_runtime_fails_at_once_and_says_what_to_do(base_image, tmp_path):
    shutil.copytree(ROOT / "container", tmp_path / "container", ignore=shutil.ignore_patterns("scriptmode_runtime"))
    words = ("docker", "build", "--build-arg", f"BASE={base_image}", tmp_path / "container")
    environ = {**os.environ, "DOCKER_BUILDKIT": "0"}
    done = subprocess.run(words, check=False, text=True, capture_output=True, timeout=600, env=environ)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "the build context lacks the directory scriptmode_runtime: build with 'scriptmode image build'" in said
    assert "apt-get" not in said


def test_the_base_may_be_named_by_its_digest_and_is_recorded(registry, base_image, built):
    default = built("2.21.0")
    assert labels(default)["org.opencontainers.image.base.name"] == base_image
    identifier = inspected(base_image, ".Id")
    name = pushed(base_image, f"{registry}/debian:12")
    digest = re.search(r"Digest: (sha256:\w+)", docker("pull", name).stdout)[1]
    docker("image", "rm", name)
    base = f"{name}@{digest}"
    image = build_image("2.21.0", base=base)
    try:
        recorded = labels(image)
        assert recorded["org.opencontainers.image.base.name"] == base
        assert recorded["org.opencontainers.image.base.digest"] == digest
        assert recorded["scriptmode.base"] == identifier
        assert image != default
        assert inspected(image, ".RootFS.Layers")[0] == inspected(base_image, ".RootFS.Layers")[0]
    finally:
        docker("image", "rm", image, base)


def test_a_refreshed_image_is_built_on_a_pulled_base_without_the_cache(built, base_image, monkeypatch):
    image = built("2.21.0")
    said, builds = [], []
    monkeypatch.setattr(docker_client, "build", lambda _, name, made, *_1, **_2: builds.append((made["nocache"], name)))
    assert build_image("2.21.0", refresh=True, on_line=said.append) == image
    assert builds == [(True, image)]
    assert said.count("pulling debian:bookworm-slim") == 1
    if base_image == image_recipe.LOCAL_BASE:
        assert [line for line in said if "base_image.sh --refresh" in line]


def test_the_same_packages_make_the_same_files(base_image):
    wanted = image_recipe.resolve_recipe("2.21.0")
    context = wanted.context(package_indexes.index_settings(os.environ))
    bases = {"BASE": base_image, "DEVELOPMENT_BASE": base_image}
    arguments = {**wanted.arguments, **package_indexes.proxy_variables(os.environ), **bases}
    listed = []
    for uses_cache in (True, False):
        options = {"buildargs": arguments, "target": "system", "nocache": not uses_cache}
        docker_client.build(context, "scriptmode-test:stage", options, on_line=docker_client.ignore_line)
        listed.append(in_image("scriptmode-test:stage", LISTED.format("/difference")))
    assert "etc/ssl/certs/ca-certificates.crt" in listed[0]
    assert listed[0] == listed[1]


def test_an_unknown_base_says_what_to_do(docker_daemon):
    with pytest.raises(ContainerError, match="image 127.0.0.1:1/none:7 cannot be pulled: .*; or name another base"):
        build_image("2.15.1", base="127.0.0.1:1/none:7")
