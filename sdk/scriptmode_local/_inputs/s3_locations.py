"""A job's S3 locations before its start: the bucket that is a directory, and a check of what is in S3.

What does not exist is an error of the call, not of the job.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.aws.s3_uris import SCHEME, is_in_local_bucket, parse_s3_uri
from scriptmode._core.machine.data_dir import SERVER_FILE
from scriptmode._core.spec.inputs import Channel, TrainingInput
from scriptmode._core.spec.names import SERVER_TAGS
from scriptmode.errors import CredentialsError, DataError, DataNotFoundError, PlatformError
from scriptmode_local._system.directory_lock import try_lock
from scriptmode_local._system.together import run_together

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode_local._data.channel_source import ChannelSource
    from scriptmode_local._data.s3_store import S3Store

#: The job waits for longer: an endpoint that does not answer now may answer when the job reads from it.
_SECONDS = 3.0
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


def resolve_local_bucket(spec: TrainingJobSpec) -> TrainingJobSpec:
    """Replace the URIs of objects in the bucket that is a directory of this machine by ``file://`` URIs."""
    output, script, model = spec.output, spec.script, spec.model
    return replace(
        spec,
        channels=tuple(map(_resolve_channel, spec.channels)),
        output=replace(
            output,
            path=_resolve(output.path),
            code_location=_resolve(output.code_location),
            checkpoint_uri=_resolve(output.checkpoint_uri),
        ),
        script=replace(script, source_dir=_resolve(script.source_dir)) if script else None,
        model=replace(model, uri=_resolve(model.uri)) if model else None,
        model_dir=_resolve(spec.model_dir),
    )


def _resolve_channel(channel: Channel) -> Channel:
    if not isinstance(channel.source, TrainingInput):
        return channel
    return replace(channel, source=replace(channel.source, s3_data=_resolve(channel.source.s3_data)))


def _resolve(location: Any) -> Any:
    """Return the ``file://`` URI of a location in that bucket, and any other location as it is."""
    if not isinstance(location, str) or not is_in_local_bucket(location):
        return location
    from scriptmode._core.aws.local_bucket import to_file_uri

    return to_file_uri(location)


def check_s3(job: JobRequest, outputs: Mapping[str, str]) -> None:
    """Raise `DataNotFoundError` for data, a source archive or an output bucket that is not in S3.

    ``outputs`` are URIs by argument. Raises `CredentialsError` where there are none, and `DataError` for an endpoint
    where nothing listens. Other errors, such as access
    denied, are left to the job, which may read although it may not list.
    """
    from scriptmode_local._data.channel_source import source_of

    sources = [
        source for channel in job.channels if (source := source_of(job, channel)) and source.uri.startswith(SCHEME)
    ]
    buckets = {argument: uri for argument, uri in outputs.items() if uri.startswith(SCHEME)}
    archive = job.source_uri if job.source_channel is None and str(job.source_uri).startswith(SCHEME) else None
    from scriptmode._core.aws.s3 import require_credentials
    from scriptmode_local._data.object_store import require_data

    used = [("inputs", f"channel {source.name!r}", source.uri) for source in sources]
    for argument, what, uri in (*used, *((argument, argument, uri) for argument, uri in buckets.items())):
        with _refuse_missing(argument, what):
            require_credentials(uri)
    store = shared_store()
    # Those that have an object, of which S3 is not asked again.
    known = set()

    def check_source(source: ChannelSource) -> None:
        with _refuse_missing("inputs", f"channel {source.name!r}"):
            require_data(source, store)
            known.add(parse_s3_uri(source.uri).bucket)

    def check_archive(archive: str) -> None:
        with _refuse_missing("source_dir", "source_dir"):
            try:
                store.find(archive)
                known.add(parse_s3_uri(archive).bucket)
            except DataNotFoundError:
                # The answer about an object does not say which of both is missing.
                _require_bucket(store, archive)
                raise

    checks = [partial(check_source, source) for source in sources]
    run_together(*checks, *([partial(check_archive, archive)] if archive else []))
    for argument, uri in buckets.items():
        with _refuse_missing(argument, argument):
            if parse_s3_uri(uri).bucket not in known:
                _require_bucket(store, uri)


def shared_store() -> S3Store:
    """Return a store that does not try again, the same for the same settings: most of a create's time made it."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    # Without a key in the environment it may be one of a file, which changes.
    create = _store if "AWS_ACCESS_KEY_ID" in settings else _store.__wrapped__
    return create(frozenset(settings.items()))


@lru_cache(maxsize=1)
def _store(_settings: frozenset[tuple[str, str]]) -> S3Store:
    from scriptmode_local._data.s3_store import S3Store

    # Whether a prefix has an object is what is asked; the first key may be that of a directory.
    return S3Store(retry_seconds=0, stall=_SECONDS, page=2)


def _require_bucket(store: S3Store, uri: str) -> None:
    """Raise `DataNotFoundError` where there is no bucket: a list of what is in none is an error."""
    next(store.objects(uri), None)


@contextmanager
def advise_server(data_dir: Path) -> Iterator[None]:
    """Add to an error about an S3 object, where no endpoint is set, how objects of the server's jobs are reached."""
    try:
        yield
    except PlatformError as error:
        export, is_running = _server_variables(data_dir)
        if not (export and is_running) or SCHEME not in error.message or any(map(os.environ.get, _ENDPOINTS)):
            raise
        key = "" if "AWS_ACCESS_KEY_ID" in export else ", and an access key of that server"
        step = f"the objects of jobs of scriptmode serve are reached with what it prints{key}: {export}"
        # What a bucket of that name in Amazon S3 lacks says nothing of the job's.
        kind = CredentialsError if isinstance(error, CredentialsError) else DataError
        otherwise = f"; otherwise {error.advice}" if error.advice else ""
        raise kind(error.message, argument=error.argument, advice=f"{step}{otherwise}") from error


def require_server(job: JobRequest, data_dir: Path) -> None:
    """Raise `DataError` for a copy of a server's job that would use another S3 than the server's, under its URIs."""
    uris = (job.source_uri, job.output.path, job.output.checkpoint_uri)
    is_of_server = any(key.startswith(SERVER_TAGS) for key, _ in job.tags)
    if is_of_server and (uri := next((location for location in uris if location and location.startswith(SCHEME)), "")):
        with advise_server(data_dir):
            export, is_running = _server_variables(data_dir)
            if "AWS_ENDPOINT_URL=" in export and not any(map(os.environ.get, _ENDPOINTS)):
                what = f"{uri} is of a job of scriptmode serve, whose S3 is not that of this shell"
                raise DataError(what, None if is_running else "start it, and use the variables that it prints")


def _server_variables(data_dir: Path) -> tuple[str, bool]:
    """Return the command that sets the variables of clients of the last server, and whether it runs."""
    with suppress(OSError, ValueError), (data_dir / SERVER_FILE).open(encoding="utf-8") as file:
        return file.read().partition("\n")[2].strip(), not try_lock(file.fileno(), fcntl.LOCK_SH)
    return "", False


@contextmanager
def _refuse_missing(argument: str, what: str) -> Iterator[None]:
    try:
        yield
    except DataNotFoundError as error:
        raise DataNotFoundError(f"{what}: {error.message}", argument=argument, advice=error.advice) from error
    except PlatformError as error:
        from scriptmode._core.aws.s3_errors import is_unreachable

        if isinstance(error, CredentialsError) or is_unreachable(error):
            kind = CredentialsError if isinstance(error, CredentialsError) else DataError
            # Without the argument, which would call it wrong: an option's error has another exit code.
            raise kind(f"{what}: {error.message}", advice=error.advice) from error
