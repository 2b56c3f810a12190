"""A training service on this machine: it takes the service's requests and answers in the service's shapes."""

from __future__ import annotations

from scriptmode.platforms.local.service import LocalPlatform

__all__ = ["LocalPlatform"]
