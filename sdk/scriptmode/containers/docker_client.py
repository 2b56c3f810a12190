"""Docker's own Python client, and its errors as ours.

``DOCKER_HOST``, else docker's current context, names the daemon.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.errors import ContainerError
from scriptmode.messages import install_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

#: Compiling writes nothing for minutes, and so does a push.
_LONG_SECONDS = 3600
_SECONDS = 60
_LAST_LINES = 15
_SOCKET = "unix://"
_NO_SPACE = "no space left on device"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STEP = re.compile(r"Step \d+/\d+ : (.*)")
#: The identifier of the image that a step made or found.
_STEP_IMAGE = re.compile(r"^ ---> ([0-9a-f]{12,})$")
#: The builder's own words about what it makes and removes, which would hide the last ones of what failed.
_BUILDER_NOISE = re.compile(r" ---> |Removing intermediate container ")

OnLine = Callable[[str], None]


def ignore_line(line: str) -> None:
    """Let a line of the daemon's go by."""


def open_client() -> Any:
    """Give a client of the daemon, which answered; raises `ContainerError`. The caller closes it."""
    try:
        import docker
    except ImportError as error:
        raise ContainerError(
            f"containers need Docker's client for Python, which is not installed; {install_command('container')}"
        ) from error
    host = _host()
    try:
        _check_socket(host)
    except OSError as error:
        raise ContainerError(_unreachable(host, error)) from error
    try:
        if os.environ.get("DOCKER_HOST"):
            return docker.from_env(timeout=_SECONDS)
        return docker.DockerClient(base_url=host, timeout=_SECONDS)
    except (docker.errors.DockerException, ValueError) as error:
        # The latter of an address that is none.
        raise ContainerError(_unreachable(host, error)) from error


@contextmanager
def docker_client(subject: str) -> Iterator[Any]:
    """Give a client for some calls; what it raises leaves as `ContainerError` about ``subject``."""
    client = open_client()
    try:
        with translate_errors(subject):
            yield client
    finally:
        client.close()


@contextmanager
def translate_errors(subject: str) -> Iterator[None]:
    """Let whatever Docker's client raises leave as `ContainerError` about ``subject``."""
    import docker
    import requests

    try:
        yield
    except docker.errors.DockerException as error:
        said = getattr(error, "explanation", None) or error
        if (response := getattr(error, "response", None)) is not None:
            # Refused streams are left open by the client.
            response.close()
        raise ContainerError(
            f"{subject}: {said}{_advice(str(said)) or '; see what is wrong with Docker here: scriptmode doctor'}"
        ) from error
    except requests.exceptions.RequestException as error:
        raise ContainerError(f"{subject}: {_unreachable(_host(), error)}") from error


def has_image(image: str) -> bool:
    """Return whether the daemon has an image; raises `ContainerError` where no daemon answers."""
    return find_image(image) is not None


@dataclass(frozen=True)
class Image:
    """An image that the daemon has: the name it was asked for by, its identifier, and the registry's digest or ""."""

    name: str
    identifier: str
    digest: str


def find_image(image: str) -> Image | None:
    """Return what the daemon knows of an image, None where it has none; raises `ContainerError`."""
    with docker_client(f"image {image}") as client:
        # Not before it is known to be installed.
        from docker.errors import ImageNotFound
        from docker.utils import parse_repository_tag

        try:
            found = client.images.get(image).attrs
        except ImageNotFound:
            return None
        repository, _ = parse_repository_tag(image.partition("@")[0])
    known = dict(each.split("@", 1) for each in found.get("RepoDigests") or ())
    return Image(image, found["Id"], known.get(repository, ""))


def pull(image: str, login: Mapping[str, str] | None = None) -> None:
    """Get an image from its registry; raises `ContainerError`.

    ``login`` holds ``username`` and ``password``, else docker's own are taken.
    """
    with docker_client(f"image {image} cannot be pulled") as client:
        from docker.utils import parse_repository_tag

        client.api.timeout = _LONG_SECONDS
        repository, word = parse_repository_tag(image)
        given = {"auth_config": dict(login)} if login else {}
        answers = client.api.pull(repository, tag=word or "latest", stream=True, decode=True, **given)
        _read_progress(answers, f"image {image} cannot be pulled", ignore_line)


@dataclass(frozen=True)
class Build:
    """What the daemon builds: a context, a tar, and the values of the Dockerfile's arguments.

    ``target`` is a stage, "" for the last one. Stages with the label ``discarded``, if it is named, are removed when
    the build has ended, whatever its outcome: the builder keeps them as its cache otherwise.
    """

    context: bytes
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    uses_cache: bool = True
    discarded: str = ""


def build(wanted: Build, image: str, *, on_line: OnLine) -> None:
    """Build an image by the daemon's own builder; raises `ContainerError` with the builder's last lines.

    Docker's Python client does not speak to BuildKit, and this builder needs no plug-in of any command line's.
    ``image`` is the name, "" for none.
    """
    steps: list[str] = []
    with docker_client(f"building {image or wanted.target} failed") as client:
        answers = client.api.build(
            fileobj=_file(wanted.context),
            custom_context=True,
            tag=image or None,
            rm=True,
            forcerm=True,
            buildargs=dict(wanted.arguments),
            labels=dict(wanted.labels),
            target=wanted.target or None,
            nocache=not wanted.uses_cache,
            decode=True,
            timeout=_LONG_SECONDS,
        )

        def follow(line: str) -> None:
            steps.extend(_STEP_IMAGE.findall(line))
            on_line(line)

        try:
            _read_progress(answers, f"building {image or wanted.target} failed", follow)
        finally:
            if wanted.discarded:
                _remove_step_images(client, steps, wanted.discarded, on_line)


def _remove_step_images(client: Any, steps: Sequence[str], label: str, on_line: OnLine) -> None:
    """Remove the images of a build's steps that have a label, the last ones first: others are made from them."""
    for identifier in reversed(dict.fromkeys(steps)):
        if problem := _remove_labelled(client, identifier, label):
            on_line(
                f"image {identifier} holds this machine's settings and cannot be removed: {problem}; remove it: docker "
                f"image rm {identifier}"
            )


def _remove_labelled(client: Any, identifier: str, label: str) -> str:
    """Remove an image if it has a label; return why that failed or ""."""
    from docker.errors import APIError, ImageNotFound

    try:
        # Newer daemons leave out what is empty.
        if label in ((client.api.inspect_image(identifier).get("Config") or {}).get("Labels") or {}):
            client.api.remove_image(identifier, noprune=True)
    except ImageNotFound:
        return ""
    except APIError as error:
        return str(error.explanation)
    return ""


def tag(image: str, name: str) -> None:
    """Give an image one more name; raises `ContainerError`."""
    repository, _, word = name.rpartition(":") if ":" in name.rpartition("/")[2] else (name, "", "latest")
    with docker_client(f"image {image} cannot be named {name}") as client:
        client.images.get(image).tag(repository, word)


def push(image: str, name: str, *, login: Mapping[str, str] | None, on_line: OnLine) -> None:
    """Push an image to ``name``, a repository with its registry and a tag; raises `ContainerError`.

    ``login`` holds ``username`` and ``password``, else docker's own are taken. The name is the image's meanwhile.
    """
    is_new = not has_image(name)
    tag(image, name)
    try:
        with docker_client(f"pushing {name} failed") as client:
            client.api.timeout = _LONG_SECONDS
            repository, _, word = name.rpartition(":")
            given = {"auth_config": dict(login)} if login else {}
            answers = client.api.push(repository, tag=word, stream=True, decode=True, **given)
            _read_progress(answers, f"pushing {name} failed", on_line)
    finally:
        if is_new:
            with docker_client(f"name {name} of image {image} cannot be removed") as client:
                client.images.remove(name)


def _read_progress(answers: Iterable[Mapping[str, Any]], subject: str, on_line: OnLine) -> None:
    step = said = ""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    # To its end whatever it says: the client leaves a stream open that was not read so far.
    for answer in answers:
        said = _COLOUR.sub("", str(answer.get("error", said))).strip()
        for line in _lines(answer):
            on_line(line)
            if found := _STEP.match(line):
                step = found.group(1)
                last.clear()
            elif not _BUILDER_NOISE.match(line):
                last.append(line)
    if said:
        where = f" at {step!r}" if step else ""
        raise ContainerError("\n".join((f"{subject}{where}: {said}{_advice(said, *last)}", *last)))


def _lines(answer: Mapping[str, Any]) -> list[str]:
    # What changes all the time, the progress of each layer, is no line.
    text = answer.get("stream") or ("" if answer.get("progressDetail") else answer.get("status", ""))
    return [line for line in _COLOUR.sub("", str(text)).splitlines() if line.strip()]


def _file(content: bytes) -> Any:
    import io

    return io.BytesIO(content)


def _host() -> str:
    """Give where the daemon is: by the variable, else by docker's current context, as docker itself looks it up."""
    named = os.environ.get("DOCKER_HOST")
    if named:
        return named
    from docker.context import ContextAPI
    from docker.errors import DockerException

    try:
        context = ContextAPI.get_current_context()
    except (DockerException, OSError, ValueError):
        context = None
    return (context and context.Host) or f"{_SOCKET}/var/run/docker.sock"


def _check_socket(host: str) -> None:
    """Raise ``OSError`` where nobody listens at a socket of this machine: docker's client would leave its own open."""
    if sys.platform == "win32" or not host.startswith(_SOCKET):
        return
    with socket.socket(socket.AF_UNIX) as knocking:
        knocking.settimeout(_SECONDS)
        knocking.connect(host[len(_SOCKET) :])


def _unreachable(host: str, error: BaseException) -> str:
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    if isinstance(cause, PermissionError):
        return (
            f"this user, {_user()}, may not use the Docker daemon at {host}; add the user to the group that owns the "
            f"socket (sudo usermod -aG docker {_user()}), and log in again"
        )
    start = (
        "install Docker and start it (on Debian, as root: apt install docker.io), or name another daemon in DOCKER_HOST"
    )
    if isinstance(cause, FileNotFoundError):
        return f"no Docker daemon is there: {host} does not exist; {start}"
    if isinstance(cause, ConnectionRefusedError):
        return f"no Docker daemon answers at {host}; {start}"
    return f"the Docker daemon at {host} cannot be used: {error}; check DOCKER_HOST, or unset it"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A number that no name belongs to.
        return "$USER"


def _advice(*texts: str) -> str:
    if any(_NO_SPACE in text.lower() for text in texts):
        return "; make room where Docker keeps its images: docker image ls, docker system prune"
    return ""
