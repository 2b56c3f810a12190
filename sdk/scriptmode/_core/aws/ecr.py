"""Docker's login to Amazon ECR."""

from __future__ import annotations

import base64
import re

from scriptmode._core.aws.error_translation import translate_errors
from scriptmode._core.aws.session import Connection

#: A private registry: account, Region (Amazon ECR User Guide, "Private registry").
_HOST = re.compile(r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


def registry_login(image: str, session: object = None) -> dict[str, str] | None:
    """Return ``username`` and ``password`` for the registry of an image, or None where it is not one of ECR's.

    Raises `PlatformError`.
    """
    match = _HOST.fullmatch(image.partition("/")[0])
    if not match:
        return None
    client = Connection(session, region=match["region"]).client("ecr")
    with translate_errors(f"image {image}"):
        token = client.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    username, _, password = base64.b64decode(token).decode().partition(":")
    return {"username": username, "password": password}
