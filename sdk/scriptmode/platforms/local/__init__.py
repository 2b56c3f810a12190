"""A training service on this machine: it takes the service's requests and answers in the service's shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode.platforms.local.service import LocalPlatform

__all__ = ["LocalPlatform"]


def __getattr__(name: str) -> Any:
    # The service itself needs Linux; which hosts a request asks for, and what they are told, is known everywhere.
    if name == "LocalPlatform":
        from scriptmode.platforms.local.service import LocalPlatform

        return LocalPlatform
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
