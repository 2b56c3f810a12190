"""The inputs of a training job: a value for each kind of data source, and the channels made of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Union

from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode._core.spec.whole_numbers import whole_number
from scriptmode._core.text.messages import did_you_mean_path
from scriptmode.errors import SpecError
from scriptmode_runtime import contract

DISTRIBUTIONS = ("FullyReplicated", "ShardedByS3Key")
#: Bytes per second below which a download counts as stalled, whatever trickles in.
LEAST_RATE = 1024
_CHANNEL_NAME = re.compile(r"[A-Za-z0-9.\-_]{1,64}")
#: The channel of an input that was given without a name (SageMaker SDK).
DEFAULT_CHANNEL = "training"
#: The content type of the channel that carries a model (SageMaker SDK).
MODEL_CONTENT_TYPE = "application/x-sagemaker-model"


def _error(what: str, advice: str) -> SpecError:
    return SpecError(what, advice, argument="inputs")


@dataclass(frozen=True)
class ShuffleConfig:
    """Shuffles the order of a channel's objects, differently in each epoch.

    Args:
        seed: The seed of the order, a whole number.
    """

    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", whole_number("ShuffleConfig seed", self.seed))


@dataclass(frozen=True)
class TrainingInput:
    """A channel's data in S3 or, on the local platform, in files of this machine.

    Args:
        s3_data: An ``s3://`` or ``file://`` URI, or a path of this machine.
        distribution: ``FullyReplicated`` (every host gets all objects) or ``ShardedByS3Key`` (each host gets a share).
        compression: ``Gzip`` or ``None``; in Pipe mode the objects are decompressed.
        content_type: The MIME type, for the algorithm.
        record_wrapping: ``RecordIO`` or ``None``; in Pipe mode each object becomes a record.
        s3_data_type: ``S3Prefix``, ``ManifestFile``, ``AugmentedManifestFile`` or ``Converse``.
        instance_groups: Names of the instance groups that get the channel; by default all do.
        input_mode: ``File``, ``Pipe`` or ``FastFile``; by default the job's.
        attribute_names: The attributes to read of each line of an augmented manifest.
        target_attribute_name: Refused: it belongs to AutoML jobs.
        shuffle_config: A `ShuffleConfig`.
        hub_access_config: The service's HubAccessConfig.
        model_access_config: The service's ModelAccessConfig.

    Raises:
        SpecError: For a wrong value.
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
    target_attribute_name: str | None = None
    shuffle_config: ShuffleConfig | None = None
    hub_access_config: Mapping[str, object] | None = None
    model_access_config: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        refuse_pipeline_variables({f"TrainingInput {name}": value for name, value in vars(self).items()}, "inputs")
        object.__setattr__(self, "s3_data", parse_uri("TrainingInput s3_data", self.s3_data))
        if self.distribution is None:
            object.__setattr__(self, "distribution", DISTRIBUTIONS[0])
        if self.target_attribute_name is not None:
            raise _error("TrainingInput target_attribute_name is for AutoML jobs", "leave it out of a training job's")
        if isinstance(self.instance_groups, str) or isinstance(self.attribute_names, str):
            raise _error(
                f"TrainingInput instance_groups is {self.instance_groups!r}, attribute_names {self.attribute_names!r}",
                "both are lists of names, put one string into a list too",
            )
        object.__setattr__(self, "instance_groups", tuple(self.instance_groups or ()))
        object.__setattr__(self, "attribute_names", tuple(self.attribute_names or ()))
        self._copy_access()

    @property
    def is_sharded(self) -> bool:
        """Whether each host gets a share of the objects."""
        return self.distribution == DISTRIBUTIONS[1]

    @property
    def is_gzipped(self) -> bool:
        """Whether the objects are decompressed in Pipe mode."""
        return self.compression == "Gzip"

    @property
    def is_wrapped(self) -> bool:
        """Whether each object becomes a RecordIO record in Pipe mode."""
        return self.record_wrapping == "RecordIO"

    @property
    def config(self) -> dict[str, Any]:
        """The service's fields of a channel, without its name, as the SageMaker SDK v2's input has them; a copy."""
        objects = _given(
            S3DataType=self.s3_data_type,
            S3Uri=self.s3_data,
            S3DataDistributionType=self.distribution,
            AttributeNames=list(self.attribute_names),
            InstanceGroupNames=list(self.instance_groups),
            HubAccessConfig=self.hub_access_config and dict(self.hub_access_config),
            ModelAccessConfig=self.model_access_config and dict(self.model_access_config),
        )
        return _given(
            DataSource={"S3DataSource": objects},
            ContentType=self.content_type,
            CompressionType=self.compression,
            RecordWrapperType=self.record_wrapping,
            InputMode=self.input_mode,
            ShuffleConfig=self.shuffle_config and {"Seed": self.shuffle_config.seed},
        )

    def _copy_access(self) -> None:
        if self.shuffle_config is not None and not hasattr(self.shuffle_config, "seed"):
            raise _error(f"TrainingInput shuffle_config is {self.shuffle_config!r}", "give ShuffleConfig(seed)")
        for name in ("hub_access_config", "model_access_config"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise _error(f"TrainingInput {name} is {value!r}", "give a dict of the service's fields")
            object.__setattr__(self, name, None if value is None else dict(value))


@dataclass(frozen=True)
class FileSystemInput:
    """A channel's data on an EFS or FSx for Lustre file system; on Amazon SageMaker the job needs a VPC.

    Args:
        file_system_id: The file system's ID, such as ``fs-0123456789abcdef0``.
        file_system_type: ``EFS`` or ``FSxLustre``.
        directory_path: An absolute path on the file system.
        file_system_access_mode: ``ro`` or ``rw``.
        content_type: The MIME type, for the algorithm.

    Raises:
        SpecError: For a wrong value.
    """

    file_system_id: str
    file_system_type: str
    directory_path: str
    file_system_access_mode: str = "ro"
    content_type: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.directory_path, str) or not self.directory_path.startswith("/"):
            what = f"FileSystemInput directory_path is {self.directory_path!r}"
            raise _error(what, f"give an absolute path on the file system: {'/' + str(self.directory_path)!r}")

    @property
    def config(self) -> dict[str, Any]:
        """The service's fields of a channel, without its name, as the SageMaker SDK v2's input has them; a copy."""
        directory = {
            "FileSystemId": self.file_system_id,
            "FileSystemType": self.file_system_type,
            "DirectoryPath": self.directory_path,
            "FileSystemAccessMode": self.file_system_access_mode,
        }
        return _given(DataSource={"FileSystemDataSource": directory}, ContentType=self.content_type)


class OtherInput(NamedTuple):
    """A channel's data that estimators do not have, such as datasets: the name of the field of its DataSource."""

    kind: str


Input = Union[TrainingInput, FileSystemInput]


@dataclass(frozen=True)
class Channel:
    """A named input, which the script finds by ``SM_CHANNEL_<NAME>``; `OtherInput` only in a job that exists."""

    name: str
    source: TrainingInput | FileSystemInput | OtherInput

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _CHANNEL_NAME.fullmatch(self.name):
            raise _error(
                f"channel name {self.name!r} is not 1 to 64 letters, digits, dots, hyphens or underscores", "rename it"
            )


def _given(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def parse_uri(where: str, value: object) -> str:
    """Return an input as a URI; text without a scheme is a directory or file of this machine, which must exist."""
    is_text = isinstance(value, (str, os.PathLike))
    if is_text and (problem := contract.text_problem(str(value), encoding_errors="surrogateescape")):
        raise _error(f"{where} is {str(value)!r}, which {problem}", "correct it")
    if isinstance(value, os.PathLike) and not re.match("[A-Za-z0-9]+:", str(value)):
        return f"file://{os.path.abspath(value)}"  # noqa: PTH100 - a path object need not be pathlib's
    if isinstance(value, str) and value and not re.match("[A-Za-z0-9]+:", value):
        return f"file://{_existing_path(where, value)}"
    _check_uri(where, value)
    return absolute_file_uri(str(value), from_current_directory=True)


def absolute_file_uri(uri: str, *, from_current_directory: bool = False) -> str:
    """Return a ``file://`` URI with an absolute path, as the SageMaker SDK reads ``file://./data``; others unchanged.

    With ``from_current_directory`` a path without ``./`` begins there as well.
    """
    scheme, _, rest = uri.partition("://")
    if scheme != "file" or rest.startswith(("/", "localhost/")):
        return uri
    if from_current_directory or rest.startswith(("./", "../")):
        return f"file://{os.path.abspath(rest)}"  # noqa: PTH100 - without resolving links
    return uri


def _existing_path(where: str, text: str) -> str:
    path = Path(text)
    with suppress(RuntimeError):
        # Another user's home directory, which may not exist.
        path = path.expanduser()
    absolute = os.path.abspath(path)  # noqa: PTH100 - without resolving links
    if not _exists(path):
        begins = "" if path.is_absolute() else f", which begins at the current directory {str(Path.cwd())!r},"
        correct = f"correct the path{begins} or create it" + ("; data in S3 begin with s3://" if begins else "")
        advice = did_you_mean_path(Path(absolute)) or correct
        raise _error(f"{where} {text!r}: there is no file or directory {absolute!r}", advice)
    return absolute


def _check_uri(where: str, uri: object) -> None:
    text = os.fspath(uri) if isinstance(uri, (str, os.PathLike)) else ""
    scheme, separator, rest = text.partition("://")
    if not separator:
        raise _error(f"{where} is {text or uri!r}", "give an s3:// URI or a path")
    if scheme == "file" and rest and not rest.startswith(("/", "localhost/")) and not _exists(Path(rest)):
        what = f"{where} is {text!r}"
        raise _error(what, f"there is no {str(Path(rest).absolute())!r}; give an absolute path: file:///directory")
    if scheme not in ("s3", "https", "file"):
        raise _error(f"{where} is {uri!r}, with the scheme {scheme!r}", "give an s3:// URI or a path")
    if not rest:
        raise _error(
            f"{where} is {uri!r}, which names no bucket or directory", "write 's3://bucket/prefix' or 'file:///folder'"
        )


def _exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises where it is too long or may not be searched
