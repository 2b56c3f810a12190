"""Training images: what they are made of, and Docker, which makes and keeps them.

A room of its own beside the public names of `scriptmode`, which does not load it.
"""

from scriptmode.containers.images import build_image, built_image, default_image, push_image, refresh_image
from scriptmode.containers.recipe import DEFAULT_BASE, TENSORFLOW_VERSIONS

__all__ = [
    "DEFAULT_BASE",
    "TENSORFLOW_VERSIONS",
    "build_image",
    "built_image",
    "default_image",
    "push_image",
    "refresh_image",
]
