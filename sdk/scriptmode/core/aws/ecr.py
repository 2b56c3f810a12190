"""Amazon ECR: repositories of images, and docker's login to them."""

from __future__ import annotations

import base64
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scriptmode.core.aws.error_translation import translate_errors
from scriptmode.core.aws.session import Connection

#: A private registry: account, Region (Amazon ECR User Guide, "Private registry").
HOST = re.compile(r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


@dataclass(frozen=True)
class PreparedRepository:
    """An existing repository, with ``username`` and ``password`` that are valid for twelve hours."""

    uri: str
    login: dict[str, str] = field(repr=False)


def prepare_repository(repository: str, session: object = None) -> PreparedRepository:
    """Create a repository unless it exists, and log in; raise `PlatformError`.

    ``place`` is ``<registry>/<name>``, or ``<name>`` alone in the session's own account and Region.
    """
    host, _, rest = repository.partition("/")
    found = HOST.fullmatch(host)
    name, region = (rest, found["region"]) if found else (repository, None)
    owner = {"registryId": found["account"]} if found else {}
    client = Connection(session, region=region).client("ecr")
    with translate_errors(f"repository {repository}"):
        uri = _uri(client, name, owner)
        return PreparedRepository(repository if found else uri, _login(client))


def registry_login(image: str, session: object = None) -> dict[str, str] | None:
    """Return ``username`` and ``password`` for the registry of an image, or None where it is not one of ECR's.

    Raises `PlatformError`.
    """
    found = HOST.fullmatch(image.partition("/")[0])
    if not found:
        return None
    client = Connection(session, region=found["region"]).client("ecr")
    with translate_errors(f"image {image}"):
        return _login(client)


def _login(client: Any) -> dict[str, str]:
    token = client.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    username, _, password = base64.b64decode(token).decode().partition(":")
    return {"username": username, "password": password}


def _uri(client: Any, name: str, owner: dict[str, str]) -> str:
    with suppress(client.exceptions.RepositoryNotFoundException):
        return _described_uri(client, name, owner)
    # Another process may create it at the same moment.
    with suppress(client.exceptions.RepositoryAlreadyExistsException):
        return str(client.create_repository(repositoryName=name, **owner)["repository"]["repositoryUri"])
    return _described_uri(client, name, owner)


def _described_uri(client: Any, name: str, owner: dict[str, str]) -> str:
    return str(client.describe_repositories(repositoryNames=[name], **owner)["repositories"][0]["repositoryUri"])
