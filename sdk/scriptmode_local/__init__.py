"""A training service on this machine: it accepts the service's requests and returns the service's shapes.

Public is `LocalPlatform`; engines use what `scriptmode.engines` names. The page "Packages" describes each package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode_local._service.service import LocalPlatform

__all__ = ["LocalPlatform"]


def __getattr__(name: str) -> Any:
    # Imported on first use, because the service needs Linux, and other modules of this package do not.
    if name == "LocalPlatform":
        from scriptmode_local._service.service import LocalPlatform

        return LocalPlatform
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
