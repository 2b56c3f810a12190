"""Build, find and push training images."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.containers import docker_client, package_indexes
from scriptmode.containers.image_recipe import (
    DEBIAN_STAGE,
    DEFAULT_BASE,
    LOCAL_BASE,
    REPOSITORY,
    STAGE_LABEL,
    Recipe,
    recipe_directory,
    resolve_recipe,
)
from scriptmode.errors import ContainerError, SpecError

if TYPE_CHECKING:
    from scriptmode.containers.docker_client import OnLine

#: What `recipe.Recipe.name` gives.
_PROJECT_IMAGE = re.compile(REPOSITORY + r":(?P<tensorflow>[0-9.]+)(?P<gpu>-gpu)?-[0-9a-f]+")
#: As the distribution specification spells them, without a digest.
_NAME = re.compile(r"(?P<repository>[\w.:-]+(?:/[\w.-]+)*?)(?::(?P<tag>[\w.-]+))?")


def default_image(
    tensorflow: str | None = None, *, gpu: bool = False, base: str | None = None, development_base: str | None = None
) -> str:
    """Give the name of the image that this scriptmode builds for a TensorFlow version; the newest one by default.

    The name ends with the content's digest: another version of scriptmode has another image. Asks no daemon. Raises
    `SpecError` for a version that there is no image for.
    """
    return resolve_recipe(tensorflow, gpu=gpu, base=base, development_base=development_base).name


def built_image(tensorflow: str | None = None) -> str:
    """Give the name of the image for a TensorFlow version that is on this machine.

    Raises `ContainerError`, which says the command that builds it where it is missing.
    """
    wanted = resolve_recipe(tensorflow)
    require_built(wanted.name)
    return wanted.name


def require_built(image: str) -> None:
    """Raise `ContainerError` for an image of this project's that is not here: its name is in no registry.

    Says the command that builds it. Whether any other image is here is not asked; that a daemon answers is.
    """
    if docker_client.has_image(image) or not (own := _PROJECT_IMAGE.fullmatch(image)):
        return
    command = f"scriptmode image build --tensorflow {own['tensorflow']}{' --gpu --base ...' if own['gpu'] else ''}"
    raise ContainerError(f"there is no image {image} on this machine; build it: {command}, or give image_uri")


def pull_image(image: str) -> None:
    """Get an image from its registry, in Amazon ECR with the caller's credentials; raises `PlatformError`."""
    from scriptmode.aws.ecr import registry_login

    try:
        docker_client.pull(image, registry_login(image))
    except ContainerError as error:
        step = "correct image_uri, or log in to its registry with docker login; this project's own images are in none"
        raise ContainerError(f"{error}; {step}: scriptmode image build, and leave image_uri out") from error


def build_image(
    tensorflow: str | None = None,
    *,
    gpu: bool = False,
    base: str | None = None,
    development_base: str | None = None,
    tag: str | None = None,
    on_line: OnLine = docker_client.ignore_line,
) -> str:
    """Build an image unless Docker has it; return its name, or ``tag`` if one was given.

    Nothing of this machine's settings is in the image. If they hold credentials, the stages of the build that read them
    are removed after it; else Docker keeps them as its cache.

    Args:
        tensorflow: Version, by default the newest one.
        gpu: Whether TensorFlow is the one for GPUs.
        base: Image of Debian or its kin, for GPUs one with CUDA. A digest may stand behind its name.
        development_base: Image with CUDA's headers.
        tag: One more name for the image.
        on_line: Is given each line of the builder's.

    Raises:
        SpecError: There is no recipe for it.
        ContainerError: The build failed.

    """
    wanted = resolve_recipe(tensorflow, gpu=gpu, base=base, development_base=development_base)
    if not docker_client.has_image(wanted.name):
        _build(wanted, refresh=False, on_line=on_line)
    if tag:
        docker_client.tag(wanted.name, tag)
    return tag or wanted.name


def refresh_image(
    tensorflow: str | None = None,
    *,
    gpu: bool = False,
    base: str | None = None,
    development_base: str | None = None,
    on_line: OnLine = docker_client.ignore_line,
) -> str:
    """Build an image anew, on the newest base and with Debian's newest packages; return its name, which stays the same.

    Takes what `build_image` takes, and raises the same. Python's packages are those of the lock file.
    """
    wanted = resolve_recipe(tensorflow, gpu=gpu, base=base, development_base=development_base)
    _build(wanted, refresh=True, on_line=on_line)
    return wanted.name


def _build(wanted: Recipe, *, refresh: bool, on_line: OnLine) -> None:
    names = (wanted.base, wanted.development_base)
    # Each is pulled once: the same name may be another image a moment later.
    found = {name: _find_or_pull_base(name, refresh=refresh, on_line=on_line) for name in dict.fromkeys(names)}
    base, development_base = (found[name] for name in names)
    settings = package_indexes.index_settings(os.environ)
    # By identifier: every stage has the same base, whatever a name may name meanwhile.
    bases = {"BASE": base.identifier, "DEVELOPMENT_BASE": development_base.identifier}
    whole = docker_client.Build(
        wanted.context(settings),
        arguments={**wanted.arguments, **bases, **package_indexes.proxy_variables(os.environ)},
        labels={**wanted.labels, **_base_labels(base)},
        discarded=STAGE_LABEL if package_indexes.have_credentials(settings) else "",
    )
    if refresh and whole.discarded:
        # What of an earlier build would save time was removed with its credentials.
        whole = replace(whole, uses_cache=False)
    elif refresh:
        # The builder then takes the newest of the stages that it has: only these packages are installed anew.
        docker_client.build(replace(whole, target=DEBIAN_STAGE, uses_cache=False), "", on_line=on_line)
    docker_client.build(whole, wanted.name, on_line=on_line)


def _base_labels(base: docker_client.Image) -> dict[str, str]:
    """Return labels that name the base: the annotations of the OCI image specification, and Docker's identifier.

    An image that no registry gave has no digest.
    """
    labels = {"org.opencontainers.image.base.name": base.name, "scriptmode.base": base.identifier}
    return {**labels, "org.opencontainers.image.base.digest": base.digest} if base.digest else labels


def push_image(
    repository: str, image: str, *, session: object = None, on_line: OnLine = docker_client.ignore_line
) -> str:
    """Push an image to a repository; give its URI there, which is what ``image_uri`` takes. Raises `PlatformError`.

    A repository without a registry is one of Amazon ECR in the session's account and Region; there, and in any other of
    ECR's, it is created if it is missing. Other registries are logged in to by docker. The tag is the image's own
    unless the repository names one.
    """
    found = _NAME.fullmatch(repository)
    if not found:
        raise SpecError(f"repository {repository!r} is no name that an image may have; one is 'team/scriptmode'")
    if not docker_client.has_image(image):
        raise ContainerError(f"there is no image {image} on this machine; build it: scriptmode image build")
    place, word = found["repository"], found["tag"] or image.rpartition(":")[2]
    login = None
    if _is_ecr(place):
        from scriptmode.aws.ecr import prepare_repository

        prepared = prepare_repository(place, session)
        place, login = prepared.uri, prepared.login
    uri = f"{place}:{word}"
    docker_client.push(image, uri, login=login, on_line=on_line)
    return uri


def _is_ecr(place: str) -> bool:
    """Tell whether a repository is one of ECR's: by its host, or because it names none."""
    from scriptmode.aws.ecr import HOST

    host, slash, _ = place.partition("/")
    names_a_host = bool(slash) and (any(mark in host for mark in ".:") or host == "localhost")
    return not names_a_host or bool(HOST.fullmatch(host))


def _find_or_pull_base(base: str, *, refresh: bool, on_line: OnLine) -> docker_client.Image:
    """Return the base that Docker has, pulled if it has none or ``refresh``; for Debian's one made here stands in."""
    local = docker_client.find_image(LOCAL_BASE) if base == DEFAULT_BASE else None
    if not refresh and (found := local or docker_client.find_image(base)):
        return found
    on_line(f"pulling {base}")
    try:
        docker_client.pull(base)
    except ContainerError as error:
        script = recipe_directory() / "base_image.sh"
        if local:
            on_line(f"{error}; {LOCAL_BASE} is taken, which root on Debian makes anew: {script} --refresh")
            return local
        made = f"; where there is no registry, root on Debian makes it: {script}" if base == DEFAULT_BASE else ""
        raise ContainerError(f"{error}{made}; or name another base") from error
    found = docker_client.find_image(base)
    if not found:
        raise ContainerError(f"image {base} was pulled and removed again at once; build again")
    return found
