"""Docker's Python client, and its errors translated to `ContainerError`.

``DOCKER_HOST``, else docker's current context, names the daemon.
"""

from __future__ import annotations

import io
import os
import re
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, Callable, NamedTuple

from scriptmode._core.machine.installation import install_command
from scriptmode.errors import ContainerError

#: Seconds without output: compiling may be silent for minutes.
_LONG_SECONDS = 3600
_SECONDS = 60
_LAST_LINES = 15
_SOCKET = "unix://"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
#: The identifier of the image that a step built or found in the cache.
_STEP_IMAGE = re.compile(r"^ ---> ([0-9a-f]{12,})$")
OnLine = Callable[[str], None]


def ignore_line(line: str) -> None:
    """Ignore a line of the daemon's output."""


@contextmanager
def docker_client(subject: str) -> Iterator[Any]:
    """Yield a client of a daemon that answers; translate its errors to `ContainerError` about ``subject``."""
    client = _connect()
    try:
        with translate_errors(subject):
            yield client
    finally:
        client.close()


def _connect() -> Any:
    try:
        import docker
    except ImportError as error:
        what = "containers need Docker's client for Python, which is not installed"
        raise ContainerError(what, install_command("container")) from error
    host = _host()
    try:
        if host.startswith(_SOCKET):
            # If no process listened there, docker's client would leave its own socket open.
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(_SECONDS)
                connection.connect(host[len(_SOCKET) :])
        # docker's variables have settings of TLS, too.
        in_variable = os.environ.get("DOCKER_HOST")
        return docker.from_env(timeout=_SECONDS) if in_variable else docker.DockerClient(host, timeout=_SECONDS)
    except (docker.errors.DockerException, OSError, ValueError) as error:
        # ValueError: DOCKER_HOST is not an address.
        raise _unreachable(host, error) from error


@contextmanager
def translate_errors(subject: str) -> Iterator[None]:
    """Translate errors of Docker's client to `ContainerError` about ``subject``."""
    import docker
    import requests

    try:
        yield
    except docker.errors.DockerException as error:
        reason = getattr(error, "explanation", None) or error
        if (response := getattr(error, "response", None)) is not None:
            # The client leaves the stream of an error response open.
            response.close()
        raise ContainerError(f"{subject}: {reason}", "see what is wrong with Docker here: scriptmode doctor") from error
    except requests.exceptions.RequestException as error:
        raise _unreachable(_host(), error, f"{subject}: ") from error


def has_image(image: str) -> bool:
    """Return whether the daemon has an image; raises `ContainerError` if no daemon answers."""
    return find_image(image) is not None


class Image(NamedTuple):
    """An image of the daemon: the name that was requested, its identifier, and the digest in its registry or ""."""

    name: str
    identifier: str
    digest: str


def find_image(image: str) -> Image | None:
    """Return an image of the daemon, None if it has no such image; raises `ContainerError`."""
    with docker_client(f"image {image}") as client:
        # After docker_client has checked that the package is installed.
        from docker.errors import ImageNotFound
        from docker.utils import parse_repository_tag

        try:
            attributes = client.images.get(image).attrs
        except ImageNotFound:
            return None
        repository, _ = parse_repository_tag(image.partition("@")[0])
    known = dict(digest.split("@", 1) for digest in attributes.get("RepoDigests") or ())
    return Image(image, attributes["Id"], known.get(repository, ""))


def pull(image: str, login: Mapping[str, str] | None = None) -> None:
    """Pull an image from its registry; raises `ContainerError`.

    ``login`` has ``username`` and ``password``; without it docker's own login is used.
    """
    with docker_client(f"image {image} cannot be pulled") as client:
        from docker.utils import parse_repository_tag

        client.api.timeout = _LONG_SECONDS
        repository, word = parse_repository_tag(image)
        given = {"auth_config": dict(login)} if login else {}
        answers = client.api.pull(repository, tag=word or "latest", stream=True, decode=True, **given)
        _read_progress(answers, f"image {image} cannot be pulled", ignore_line)


def build(
    context: bytes,
    image: str,
    options: Mapping[str, object] = MappingProxyType({}),
    discarded: str = "",
    *,
    on_line: OnLine,
) -> None:
    """Build an image with the daemon's own builder; raises `ContainerError` with the builder's last lines.

    Docker's Python client does not support BuildKit, and the daemon's builder needs no command-line plug-in.

    Args:
        context: The context as a tar archive.
        image: Name of the image.
        options: Further arguments of Docker's client, such as ``buildargs`` and ``nocache``.
        discarded: A label: images of stages with it are removed after the build, even if it fails. By default the
            builder keeps them as its cache.
        on_line: Called with each line of the builder.
    """
    steps: list[str] = []
    subject = f"building {image} failed"

    def follow(line: str) -> None:
        steps.extend(_STEP_IMAGE.findall(line))
        on_line(line)

    with docker_client(subject) as client:
        settings = {"custom_context": True, "rm": True, "forcerm": True, "decode": True, "timeout": _LONG_SECONDS}
        try:
            answers = client.api.build(fileobj=io.BytesIO(context), tag=image, **settings, **options)
            _read_progress(answers, subject, follow)
        finally:
            # Later images depend on earlier ones.
            for identifier in reversed(dict.fromkeys(steps)) if discarded else ():
                _remove_labelled(client, identifier, discarded, on_line)


def _remove_labelled(client: Any, identifier: str, label: str, on_line: OnLine) -> None:
    """Remove the image of a build's step if it has a label."""
    from docker.errors import APIError, ImageNotFound

    try:
        # Newer daemons omit empty fields.
        if label in ((client.api.inspect_image(identifier).get("Config") or {}).get("Labels") or {}):
            client.api.remove_image(identifier, noprune=True)
    except ImageNotFound:
        pass
    except APIError as error:
        on_line(f"image {identifier} holds this machine's settings and cannot be removed: {error.explanation}")


def _read_progress(answers: Iterable[Mapping[str, Any]], subject: str, on_line: OnLine) -> None:
    """Pass the daemon's lines on; raise its error with the last of them."""
    problem = ""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    # Read to the end, even after an error: otherwise the client leaves the stream open.
    for answer in answers:
        problem = _COLOUR.sub("", str(answer.get("error", problem))).strip()
        # The progress of layers, which changes all the time, is omitted.
        text = answer.get("stream") or ("" if answer.get("progressDetail") else answer.get("status", ""))
        for line in filter(str.strip, _COLOUR.sub("", str(text)).splitlines()):
            on_line(line)
            last.append(line)
    if problem:
        raise ContainerError("\n".join((f"{subject}: {problem}", *last)))


def _host() -> str:
    """Return the daemon's address: from DOCKER_HOST, else from docker's current context, like docker itself."""
    if named := os.environ.get("DOCKER_HOST"):
        return named
    from docker.context import ContextAPI
    from docker.errors import DockerException

    with suppress(DockerException, OSError, ValueError):
        if (context := ContextAPI.get_current_context()) and context.Host:
            return str(context.Host)
    return f"{_SOCKET}/var/run/docker.sock"


def _unreachable(host: str, error: BaseException, subject: str = "") -> ContainerError:
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    step = (
        "install Docker and start it (on Debian, as root: apt install docker.io), add this user to its group (sudo "
        "usermod -aG docker $USER) and log in again, or correct DOCKER_HOST"
    )
    return ContainerError(f"{subject}the Docker daemon at {host} cannot be used: {cause}", step)
