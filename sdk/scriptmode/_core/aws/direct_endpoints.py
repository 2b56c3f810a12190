"""Clients of endpoints on this machine, such as `scriptmode serve`: a site's proxy cannot reach them."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine by its loopback interface."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def add_models(session: Any, folder: str) -> None:
    """Let a boto3 session find the models of services in a folder, too."""
    from botocore.loaders import create_loader

    made_of: Any = session._session  # noqa: SLF001 - the session of botocore, which boto3 wraps
    paths = filter(None, (made_of.get_config_variable("data_path"), folder))
    # A loader that has listed the services does so once.
    made_of.register_component("data_loader", create_loader(os.pathsep.join(paths)))


def create_client(session: Any, service: str, settings: dict[str, Any], **arguments: Any) -> Any:
    """Return a boto3 client with these settings of ``Config``, which connects to this machine without a proxy."""
    from botocore.config import Config
    from botocore.utils import get_environ_proxies

    client = session.client(service, config=Config(**settings), **arguments)
    url = getattr(getattr(client, "meta", None), "endpoint_url", "")
    if not is_loopback(url) or not get_environ_proxies(url):
        return client
    return session.client(service, config=Config(**settings, proxies={}), **arguments)
