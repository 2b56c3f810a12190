"""Training images: building and finding them with Docker.

Public are the names in ``__all__``; ``import scriptmode`` does not import this package.

* ``training_images``: build, find and pull an image.
* ``image_recipe``: the files and arguments of an image, and the name that follows from them. Needs no Docker.
* ``package_indexes``: this machine's settings for pip, apt, proxies and certificates, which a build needs.
* ``docker_client``: Docker's Python client, with its errors translated.
"""

from scriptmode.containers._image_recipe import DEFAULT_BASE, TENSORFLOW_VERSIONS
from scriptmode.containers._training_images import build_image, built_image, default_image

__all__ = ["DEFAULT_BASE", "TENSORFLOW_VERSIONS", "build_image", "built_image", "default_image"]
