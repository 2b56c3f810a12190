"""Images go to Amazon ECR, and to any other registry."""

import json

import pytest
from containers.conftest import answer, docker
from fakes.archives import packed
from moto import mock_aws

from scriptmode import ContainerError, CredentialsError, SpecError
from scriptmode.containers import build_image, push_image
from scriptmode.core.aws.ecr import prepare_repository, registry_login

needs_docker = pytest.mark.docker
ACCOUNT = "123456789012"


@pytest.fixture
def aws(monkeypatch, no_credentials):
    """An account without any repository."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with mock_aws():
        yield


def repositories(region):
    import boto3

    found = boto3.client("ecr", region_name=region).describe_repositories()
    return [each["repositoryName"] for each in found["repositories"]]


@pytest.fixture
def tiny_image(docker_daemon, tmp_path):
    """An image of one file."""
    (tmp_path / "tree.tar").write_bytes(packed({"file": ""}, "w"))
    name = f"scriptmode-test:{tmp_path.name.lower()}"
    assert docker("import", str(tmp_path / "tree.tar"), name).returncode == 0
    yield name
    docker("image", "rm", "--force", name)


def test_a_repository_is_created_once_where_the_session_is(aws):
    first = prepare_repository("team/training")
    assert first.uri == f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/team/training"
    assert first.login["username"] == "AWS"
    assert first.login["password"]
    assert first.login["password"] not in repr(first)
    assert prepare_repository("team/training").uri == first.uri
    assert repositories("eu-west-1") == ["team/training"]


def test_a_registrys_own_region_is_where_its_repository_is_created(aws):
    place = f"{ACCOUNT}.dkr.ecr.ap-south-1.amazonaws.com/training"
    assert prepare_repository(place).uri == place
    assert repositories("ap-south-1") == ["training"]
    assert repositories("eu-west-1") == []


def test_an_image_of_a_repository_is_pulled_with_a_login_of_its_region(aws):
    assert registry_login(f"{ACCOUNT}.dkr.ecr.ap-south-1.amazonaws.com/training:1")["username"] == "AWS"
    assert registry_login("127.0.0.1:5000/training:1") is None
    assert registry_login("training") is None


@needs_docker
def test_without_credentials_nothing_is_pushed(tiny_image, monkeypatch, no_credentials):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with pytest.raises(CredentialsError, match="repository team/training: .*run 'aws configure'"):
        push_image("team/training", tiny_image)


@needs_docker
def test_an_image_is_pushed_under_its_own_tag_or_that_of_the_repository(tiny_image, registry):
    said = []
    uri = push_image(f"{registry}/team/training", tiny_image, on_line=said.append)
    assert uri == f"{registry}/team/training:{tiny_image.rpartition(':')[2]}"
    tags = json.loads(answer(registry, "/v2/team/training/tags/list"))
    assert tags == {"name": "team/training", "tags": [uri.rpartition(":")[2]]}
    assert any("digest: sha256:" in line for line in said)
    assert push_image(f"{registry}/a:7", tiny_image) == f"{registry}/a:7"
    assert json.loads(answer(registry, "/v2/a/tags/list"))["tags"] == ["7"]


@needs_docker
def test_a_registry_that_is_not_there_is_named(tiny_image):
    with pytest.raises(ContainerError, match="pushing 127.0.0.1:1/a:7 failed: .*127.0.0.1:1"):
        push_image("127.0.0.1:1/a:7", tiny_image)


@needs_docker
def test_an_image_that_is_not_there_says_how_it_is_built(docker_daemon):
    with pytest.raises(ContainerError, match="no image none:7 on this machine; build it: scriptmode image build"):
        push_image("team/training", "none:7")


@pytest.mark.parametrize("repository", ["", "a b", "/a", "a//b", "x@sha256:0"])
def test_an_invalid_repository_is_refused(repository):
    with pytest.raises(SpecError, match="is not a valid name of an image"):
        push_image(repository, "a:1")


@needs_docker
def test_an_unknown_base_says_what_to_do(docker_daemon):
    with pytest.raises(ContainerError, match="image 127.0.0.1:1/none:7 cannot be pulled: .*; or name another base"):
        build_image("2.15.1", base="127.0.0.1:1/none:7")
