"""Clients of endpoints on this machine, such as `scriptmode serve`: a site's proxy cannot reach them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Return whether a URL names this machine by its loopback interface."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def create_client(session: Any, service: str, settings: dict[str, Any], **arguments: Any) -> Any:
    """Return a boto3 client with these settings of ``Config``, which connects to this machine without a proxy."""
    from botocore.config import Config
    from botocore.utils import get_environ_proxies

    client = session.client(service, config=Config(**settings), **arguments)
    url = getattr(getattr(client, "meta", None), "endpoint_url", "")
    if not is_loopback(url) or not get_environ_proxies(url):
        return client
    return session.client(service, config=Config(**settings, proxies={}), **arguments)
