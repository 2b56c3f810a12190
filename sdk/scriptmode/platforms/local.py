"""`LocalPlatform`, the training service of this machine."""

from scriptmode_local import LocalPlatform

__all__ = ["LocalPlatform"]
