"""What a training job reads: a value for each kind of data source, and the channels made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from scriptmode.errors import SpecError, suggestion

INPUT_MODES = ("File", "Pipe", "FastFile")
DISTRIBUTIONS = ("FullyReplicated", "ShardedByS3Key")
DATA_TYPES = ("S3Prefix", "ManifestFile", "AugmentedManifestFile")
_CHANNEL_NAME = re.compile(r"[A-Za-z0-9.\-_]{1,64}")
#: The channel of an input that was given without a name (SageMaker SDK).
DEFAULT_CHANNEL = "training"


def _one_of(owner: str, argument: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SpecError(f"{owner} {argument} is {value!r}{suggestion(str(value), known)}")


@dataclass(frozen=True)
class ShuffleConfig:
    """Shuffle the order of a channel's objects anew each epoch, from ``seed``."""

    seed: int


@dataclass(frozen=True)
class TrainingInput:
    """A channel's data at an ``s3://`` (or, on the local platform, ``file://``) URI.

    Arguments are those of the SageMaker SDK's ``TrainingInput``. ``input_mode=None`` takes the job's.
    """

    s3_data: str
    distribution: str = "FullyReplicated"
    compression: str | None = None
    content_type: str | None = None
    record_wrapping: str | None = None
    s3_data_type: str = "S3Prefix"
    instance_groups: tuple[str, ...] | list[str] = ()
    input_mode: str | None = None
    attribute_names: tuple[str, ...] | list[str] = ()
    shuffle_config: ShuffleConfig | None = None

    def __post_init__(self) -> None:
        _check_uri("TrainingInput s3_data", self.s3_data)
        _one_of("TrainingInput", "distribution", self.distribution, DISTRIBUTIONS)
        _one_of("TrainingInput", "s3_data_type", self.s3_data_type, DATA_TYPES)
        if self.compression is not None:
            _one_of("TrainingInput", "compression", self.compression, ("None", "Gzip"))
        if self.record_wrapping is not None:
            _one_of("TrainingInput", "record_wrapping", self.record_wrapping, ("None", "RecordIO"))
        if self.input_mode is not None:
            _one_of("TrainingInput", "input_mode", self.input_mode, INPUT_MODES)
        if isinstance(self.instance_groups, str) or isinstance(self.attribute_names, str):
            raise SpecError("TrainingInput instance_groups and attribute_names are lists of names, not one string")
        object.__setattr__(self, "instance_groups", tuple(self.instance_groups or ()))
        object.__setattr__(self, "attribute_names", tuple(self.attribute_names or ()))


@dataclass(frozen=True)
class FileSystemInput:
    """A channel's data on an EFS or FSx for Lustre file system; the job needs a VPC."""

    file_system_id: str
    file_system_type: str
    directory_path: str
    file_system_access_mode: str = "ro"
    content_type: str | None = None

    def __post_init__(self) -> None:
        _one_of("FileSystemInput", "file_system_type", self.file_system_type, ("EFS", "FSxLustre"))
        _one_of("FileSystemInput", "file_system_access_mode", self.file_system_access_mode, ("ro", "rw"))


Input = Union[TrainingInput, FileSystemInput]


@dataclass(frozen=True)
class Channel:
    """One named input: ``SM_CHANNEL_<NAME>`` in the script."""

    name: str
    source: Input

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _CHANNEL_NAME.fullmatch(self.name):
            raise SpecError(f"channel name {self.name!r} is not 1 to 64 letters, digits, dots, hyphens or underscores")


def parse(inputs: object) -> tuple[Channel, ...]:
    """Give the channels of ``fit``'s argument: a string, an input, a dict of them, or ``None`` for no channel."""
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        return tuple(Channel(name, _parse_one(f"inputs[{name!r}]", value)) for name, value in inputs.items())
    return (Channel(DEFAULT_CHANNEL, _parse_one("inputs", inputs)),)


def _parse_one(where: str, value: object) -> Input:
    if isinstance(value, (TrainingInput, FileSystemInput)):
        return value
    if isinstance(value, (str, os.PathLike)):
        _check_uri(where, value)
        return TrainingInput(str(value))
    raise SpecError(f"{where} is {value!r}; give an 's3://' or 'file://' string, a TrainingInput or a FileSystemInput")


def _check_uri(where: str, uri: object) -> None:
    if not isinstance(uri, (str, os.PathLike)):
        raise SpecError(f"{where} is {uri!r}; give an 's3://...' or 'file://...' string")
    scheme, separator, rest = os.fspath(uri).partition("://")
    if not separator:
        here = f"file://{Path(scheme).absolute()}"
        raise SpecError(f"{where} is {os.fspath(uri)!r}, which names no scheme; for this machine's files say {here!r}")
    if scheme == "file" and not rest.startswith("/"):
        raise SpecError(f"{where} is {uri!r}; after file:// comes a whole path: 'file://{Path(rest).absolute()}'")
    if scheme not in ("s3", "https", "file"):
        raise SpecError(f"{where} is {uri!r}; its scheme is {scheme!r}, give an 's3://...' or 'file://...' URI")
    if not rest:
        raise SpecError(f"{where} is {uri!r}, which names no bucket or folder")
