"""Training images: what they are made of, and Docker, which makes and keeps them.

A room of its own beside the public names of `scriptmode`, which does not load it.
"""

from scriptmode.containers.image_recipe import DEFAULT_BASE, TENSORFLOW_VERSIONS
from scriptmode.containers.training_images import build_image, built_image, default_image, push_image, refresh_image

__all__ = [
    "DEFAULT_BASE",
    "TENSORFLOW_VERSIONS",
    "build_image",
    "built_image",
    "default_image",
    "push_image",
    "refresh_image",
]
