"""Building, finding and pulling of training images."""

from __future__ import annotations

import base64
import os
import re

from scriptmode.containers import _docker_client as docker_client, _image_recipe, _package_indexes as package_indexes
from scriptmode.containers._docker_client import OnLine
from scriptmode.errors import ContainerError

#: Names of `image_recipe.Recipe.name`.
_PROJECT_IMAGE = re.compile(_image_recipe.REPOSITORY + r":(?P<tensorflow>[0-9.]+)(?P<gpu>-gpu)?-[0-9a-f]+")
#: A private registry: account, Region (Amazon ECR User Guide, "Private registry").
_ECR_HOST = re.compile(r"(?P<account>\d{12})\.dkr\.ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


def default_image(tensorflow: str | None = None, *, gpu: bool = False, base: str | None = None) -> str:
    """Return the name of the image that this version of scriptmode builds. Does not call Docker.

    The name ends with a digest of the image's files: another version of scriptmode has another image.

    Args:
        tensorflow: Version of TensorFlow, by default the newest one.
        gpu: Whether the image is for GPUs.
        base: Base image, for GPUs with CUDA.

    Returns:
        The name, such as ``scriptmode:2.21.0-0123456789ab``.

    Raises:
        SpecError: There is no image for the version, or ``gpu`` is set without ``base``.
    """
    return _image_recipe.resolve_recipe(tensorflow, gpu=gpu, base=base).name


def built_image(tensorflow: str | None = None) -> str:
    """Return the name of the image for a TensorFlow version, if it is on this machine.

    Arguments and errors are those of `default_image`.

    Raises:
        ContainerError: No daemon answers, or the image was not built; the message has the command that builds it.
    """
    wanted = _image_recipe.resolve_recipe(tensorflow)
    require_built(wanted.name)
    return wanted.name


def require_built(image: str) -> None:
    """Raise `ContainerError` if an image of this project was not built on this machine: no registry has it.

    The message has the command that builds it. Other images are not checked, but a daemon must answer.
    """
    if docker_client.has_image(image) or not (own := _PROJECT_IMAGE.fullmatch(image)):
        return
    command = f"scriptmode image build --tensorflow {own['tensorflow']}{' --gpu --base ...' if own['gpu'] else ''}"
    raise ContainerError(f"there is no image {image} on this machine", advice=f"build it: {command}, or give image_uri")


def pull_image(image: str) -> None:
    """Pull an image from its registry, from Amazon ECR with the caller's credentials; raises `PlatformError`."""
    try:
        docker_client.pull(image, registry_login(image))
    except ContainerError as error:
        step = "correct image_uri, or log in to its registry with docker login; this project's own images are in none"
        raise ContainerError(f"{error}", advice=f"{step}: scriptmode image build, and leave image_uri out") from error


def build_image(
    tensorflow: str | None = None,
    *,
    gpu: bool = False,
    base: str | None = None,
    refresh: bool = False,
    on_line: OnLine = docker_client.ignore_line,
) -> str:
    """Build an image unless Docker has it.

    The image does not contain this machine's settings for package indexes. If the settings have credentials, the build
    stages that read them are removed after the build; otherwise Docker keeps them as its cache.

    Args:
        tensorflow: Version of TensorFlow, by default the newest one.
        gpu: Whether the image is for GPUs.
        base: Image of Debian or a derivative, for GPUs with CUDA. Its name may end with a digest.
        refresh: Whether to build the image also if Docker has it, on the newest base and with Debian's newest packages.
            Python's packages are those of the lock file, and the name stays the same.
        on_line: Called with each line of the builder.

    Returns:
        The name of the image.

    Raises:
        SpecError: There is no image for the version, or ``gpu`` is set without ``base``.
        ContainerError: The build failed.
    """
    wanted = _image_recipe.resolve_recipe(tensorflow, gpu=gpu, base=base)
    if refresh or not docker_client.has_image(wanted.name):
        _build(wanted, refresh=refresh, on_line=on_line)
    return wanted.name


def _build(wanted: _image_recipe.Recipe, *, refresh: bool, on_line: OnLine) -> None:
    names = (wanted.base, wanted.development_base)
    # Each is pulled once: the name may stand for another image later.
    images = {name: _find_or_pull_base(name, refresh=refresh, on_line=on_line) for name in dict.fromkeys(names)}
    base, development_base = (images[name] for name in names)
    settings = package_indexes.index_settings(os.environ)
    # The annotations of the OCI image specification; an image that no registry gave has no digest.
    labels = {
        "org.opencontainers.image.version": wanted.name.partition(":")[2],
        "org.opencontainers.image.base.name": base.name,
        "scriptmode.base": base.identifier,
        "scriptmode.tensorflow": wanted.tensorflow,
        "scriptmode.recipe": wanted.digest,
    }
    if base.digest:
        labels["org.opencontainers.image.base.digest"] = base.digest
    # By identifier, so that every stage has the same base even if the name moves meanwhile.
    bases = {"BASE": base.identifier, "DEVELOPMENT_BASE": development_base.identifier}
    options = {
        "buildargs": {**wanted.arguments, **bases, **package_indexes.proxy_variables(os.environ)},
        "labels": labels,
        "nocache": refresh,
    }
    discarded = _image_recipe.STAGE_LABEL if package_indexes.have_credentials(settings) else ""
    docker_client.build(wanted.context(settings), wanted.name, options, discarded, on_line=on_line)


def _find_or_pull_base(base: str, *, refresh: bool, on_line: OnLine) -> docker_client.Image:
    """Return the base image, pulled if it is missing or with ``refresh``; `LOCAL_BASE` may replace Debian's."""
    is_default, script = base == _image_recipe.DEFAULT_BASE, _image_recipe.recipe_directory() / "base_image.sh"
    local = docker_client.find_image(_image_recipe.LOCAL_BASE) if is_default else None
    if not refresh and (image := local or docker_client.find_image(base)):
        return image
    on_line(f"pulling {base}")
    try:
        docker_client.pull(base)
    except ContainerError as error:
        if local:
            on_line(f"{error}; {local.name} is used, which root on Debian builds again: {script} --refresh")
            return local
        made = f"; without a registry, root on Debian builds it: {script}" if is_default else ""
        raise ContainerError(f"{error}{made}", advice="or name another base") from error
    if image := docker_client.find_image(base):
        return image
    raise ContainerError(f"image {base} was pulled and removed again at once", advice="build again")


def registry_login(image: str) -> dict[str, str] | None:
    """Return ``username`` and ``password`` for the registry of an image, or None where it is not one of Amazon ECR's.

    Raises `PlatformError`.
    """
    from scriptmode._core.aws.error_translation import translate_errors
    from scriptmode._core.aws.session import Connection

    match = _ECR_HOST.fullmatch(image.partition("/")[0])
    if not match:
        return None
    client = Connection(region=match["region"]).client("ecr")
    with translate_errors(f"image {image}"):
        token = client.get_authorization_token()["authorizationData"][0]["authorizationToken"]
    username, _, password = base64.b64decode(token).decode().partition(":")
    return {"username": username, "password": password}
