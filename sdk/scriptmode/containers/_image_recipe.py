"""The files and arguments of a training image, and the name that follows from them. Needs no Docker."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from scriptmode.errors import SpecError
from scriptmode_runtime import contract

#: The versions with lock files (container/lock.sh); the last one is the default.
TENSORFLOW_VERSIONS = ("2.15.1", "2.21.0")
REPOSITORY = "scriptmode"
DEFAULT_BASE = "debian:bookworm-slim"
#: The base that ``base_image.sh`` makes if no registry has `DEFAULT_BASE`.
LOCAL_BASE = "scriptmode-base:bookworm"
#: The label of the stages that contain ``settings/``.
STAGE_LABEL = "scriptmode.build-stage"
#: The interpreter of that base.
PYTHON_VERSION = (3, 11)
#: The tag of NVIDIA's images without and with what builds against CUDA.
_CUDA_RUNTIME, _CUDA_DEVELOPMENT = "-runtime-", "-devel-"
_FILES = (
    "Dockerfile", "difference.sh", "environment.sh", "normalise.sh", "runtime.sh", "horovod/build_wheel.sh",
    "horovod/in_image.sh", "settings/use.sh",
)  # fmt: skip
_DIGEST_CHARACTERS = 12


@dataclass(frozen=True)
class Recipe:
    """One image: the values of the Dockerfile's arguments. Create it with `resolve_recipe`, which validates them."""

    tensorflow: str
    gpu: bool
    base: str

    @property
    def development_base(self) -> str:
        """The image in which packages are built; with CUDA, that of the same release which has its headers."""
        return self.base.replace(_CUDA_RUNTIME, _CUDA_DEVELOPMENT) if self.gpu else self.base

    @property
    def arguments(self) -> dict[str, str]:
        """The Dockerfile's arguments."""
        bases = {"BASE": self.base, "DEVELOPMENT_BASE": self.development_base}
        return {**bases, "TENSORFLOW": self.tensorflow, "VARIANT": "gpu" if self.gpu else "cpu"}

    @cached_property
    def digest(self) -> str:
        """The digest of the image's files and arguments, the same on every machine that builds it."""
        hasher = hashlib.sha256(repr(sorted(self.arguments.items())).encode())
        for name, content in sorted(self.files.items()):
            hasher.update(f"\n{name} {len(content)}\n".encode())
            hasher.update(content)
        return hasher.hexdigest()[:_DIGEST_CHARACTERS]

    @property
    def name(self) -> str:
        """The image's own name, such as ``scriptmode:2.21.0-0123456789ab``."""
        variant = "-gpu" if self.gpu else ""
        return f"{REPOSITORY}:{self.tensorflow}{variant}-{self.digest}"

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Files that the Dockerfile copies, by their names in the context; read once, so that they match the name."""
        here = recipe_directory()
        names = (*_FILES, f"locks/{self.tensorflow}-{'gpu' if self.gpu else 'cpu'}.txt")
        top = Path(contract.__file__).parent
        # Those of the runtime; compiled ones are compiled again for the image.
        paths = [path for path in top.rglob("*") if path.suffix not in (".so", ".pyc") and path.is_file()]
        runtime = {path.relative_to(top.parent).as_posix(): path for path in paths if "__pycache__" not in path.parts}
        return {name: path.read_bytes() for name, path in {**{name: here / name for name in names}, **runtime}.items()}

    def context(self, settings: Mapping[str, bytes]) -> bytes:
        """Return the build's context as a tar, with `package_indexes.index_settings`; equal for equal files."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            files = {**self.files, **{f"settings/{name}": content for name, content in settings.items()}}
            for name, content in sorted(files.items()):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return packed.getvalue()


def resolve_recipe(tensorflow: str | None = None, *, gpu: bool = False, base: str | None = None) -> Recipe:
    """Return the recipe for a TensorFlow version; ``2.15`` means ``2.15.1``. Raises `SpecError`.

    ``base`` is an image of Debian or a derivative, for GPUs with CUDA.
    """
    version = _version(tensorflow)
    if gpu and base is None:
        step = "name it with base= (--base), for example 'nvidia/cuda:12.5.1-cudnn-runtime-ubuntu22.04'"
        raise SpecError("an image for GPUs is made from one with CUDA", step, argument="base")
    return Recipe(version, gpu, base or DEFAULT_BASE)


def recipe_directory() -> Path:
    """Return the directory of the Dockerfile: beside this file if installed, ``container`` in a checkout."""
    installed = Path(__file__).with_name("image")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "container"


def _version(wanted: str | None) -> str:
    if wanted is None:
        return TENSORFLOW_VERSIONS[-1]
    if versions := [version for version in TENSORFLOW_VERSIONS if wanted in (version, version.rpartition(".")[0])]:
        return versions[0]
    what = f"there is no image with TensorFlow {wanted!r}, only with {' and '.join(TENSORFLOW_VERSIONS)}"
    raise SpecError(what, argument="tensorflow", advice="use one of them, or build FROM one and install yours")
