"""What a host does with AWS, in processes of their own, because boto3 is large and slow to import.

``python -m scriptmode_runtime._launch.aws_programs PROGRAM ARGUMENTS...`` runs one of `_PROGRAMS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import RuntimeFailure, UserCodeError
from scriptmode_runtime.plan import LaunchPlan, ProcessSpec

if TYPE_CHECKING:
    from io import FileIO

    from scriptmode_runtime._environment import TrainingEnvironment

S3 = "s3://"
#: The job's region, as the script sees it.
_REGION = "SAGEMAKER_REGION"
_REPOSITORY = re.compile("arn:[^:]+:codeartifact:([^:]+):([^:]+):repository/([^/]+)/(.+)")
#: Seconds for which a file must not have changed before it is uploaded, those after an error, and of the last upload.
_UNCHANGED, _RETRY, _LAST = 1.0, 60.0, 120.0
#: What was uploaded, in the output directory: lines of a file's name, size and time of change.
_UPLOADED = f"{contract.OUTPUT_DIR}/.intermediate-uploaded"
#: A directory of the uploads of AWS's ``train``.
_COPIES = ".tmp.sagemaker_s3_sync"


def process(environment: TrainingEnvironment, name: str, *words: str) -> ProcessSpec:
    """Return the process ``name`` that runs a program with its arguments, ``words``."""
    env = {_REGION: environment.region} if environment.region else {}
    return ProcessSpec(name, (environment.python, "-m", __name__, *words), env, environment.path(contract.OUTPUT_DIR))


def with_upload(environment: TrainingEnvironment, plan: LaunchPlan) -> LaunchPlan:
    """Return the plan with the process that uploads while the script trains, if the job asks for it."""
    return plan._replace(services=(*plan.services, *_uploads(environment)), optional=("upload",))


def upload_rest(environment: TrainingEnvironment) -> None:
    """Upload what is left, whatever the job's outcome; wait for it until a signal to stop, or a deadline."""
    from scriptmode_runtime._processes import children, process_tree
    from scriptmode_runtime._processes.loop import Loop

    ended: set[int] = set()
    # Neither it nor a log that is closed changes the outcome.
    with contextlib.suppress(OSError, UserCodeError, StopIteration), Loop() as loop:
        loop.handle_signals(lambda number: ended.update(children.reap() if number == signal.SIGCHLD else {0}))
        pid, output = children.start(next(_uploads(environment, "last")))
        os.set_blocking(output, False)  # another process may hold the other end
        loop.selector.register(output, selectors.EVENT_READ, lambda: os.write(2, os.read(output, 1 << 16)))
        loop.until(lambda: not ended.isdisjoint((0, pid)), loop.clock() + _LAST)
        if pid not in ended:
            process_tree.signal_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            reason = f"is not uploaded to its end: {_LAST:g} s, or a signal"
            os.write(2, f"scriptmode: {contract.OUTPUT_INTERMEDIATE_DIR} {reason}\n".encode())
        while text := os.read(output, 1 << 16):
            os.write(2, text)


def _uploads(environment: TrainingEnvironment, *words: str) -> Iterator[ProcessSpec]:
    location = str(environment.framework_parameters.get(contract.S3_OUTPUT) or "")
    if location.startswith(S3):
        uri = "/".join(filter(None, (location.rstrip("/"), environment.job_name, contract.OUTPUT_INTERMEDIATE_DIR)))
        yield process(environment, "upload", "upload", environment.base_dir, uri, *words)


@contextlib.contextmanager
def _client(service: str, problem: str, region: str | None = None) -> Iterator[Any]:
    """Yield a client; raise `UserCodeError`, which begins with ``problem``, for the errors of its calls."""
    try:
        import boto3
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise UserCodeError(f"{problem}: boto3 is not installed in {sys.executable}") from error
    region = region or os.environ.get(contract.REGION_VARIABLE) or os.environ.get(_REGION)
    # The second one is the toolkit's, and s5cmd's; the first one is what the service of this job sets.
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("S3_ENDPOINT_URL") if service == "s3" else None
    try:
        yield boto3.client(service, region_name=region or None, endpoint_url=endpoint or None)
    except (Boto3Error, BotoCoreError, ClientError, OSError, ValueError) as error:
        raise UserCodeError(f"{problem}: {error}; check the address and that this host's role may use it") from error


def _download_source(base_dir: str, uri: str) -> None:
    """Download an archive and unpack it into the code directory."""
    import tempfile

    from scriptmode_runtime._files.archive import source_limits, unpack

    bucket, _, key = uri[len(S3) :].partition("/")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sourcedir.tar.gz")
        with _client("s3", f"{uri} cannot be downloaded") as client:
            client.download_file(bucket, key, path)
        code = os.path.join(base_dir, contract.CODE_DIR)
        unpack(path, code, title=f"the source {uri}", limits=source_limits(os.environ))


def _install(arn: str, folder: str, *words: str) -> None:
    """Run the interpreter with ``words`` in a folder, and pip's index of a repository of CodeArtifact.

    The index is a variable: it has a token, and every user of the host can see a command line.
    """
    if not (match := _REPOSITORY.fullmatch(arn)):
        form = "arn:aws:codeartifact:<region>:<account>:repository/<domain>/<repository>"
        raise UserCodeError(f"CA_REPOSITORY_ARN is {arn!r}; give the ARN of a repository: {form}")
    region, owner, domain, repository = match.groups()
    with _client("codeartifact", f"the index of CA_REPOSITORY_ARN {arn} cannot be used", region) as client:
        login = {"domain": domain, "domainOwner": owner}
        token = client.get_authorization_token(**login)["authorizationToken"]
        answer = client.get_repository_endpoint(**login, repository=repository, format="pypi")
    scheme, _, place = str(answer["repositoryEndpoint"]).rstrip("/").partition("://")
    os.environ["PIP_INDEX_URL"] = f"{scheme}://aws:{token}@{place}/simple/"
    os.chdir(folder)
    os.execv(sys.executable, (sys.executable, *words))  # noqa: S606 - never a shell


def _upload(base_dir: str, uri: str, *words: str) -> None:
    """Upload ``output/intermediate``: each file that does not change, again after a change; with ``last`` what is left.

    A file that cannot be uploaded does not fail the job, as in AWS's ``train``. An error is written once: a line counts
    as output of the host, and without output it hangs.
    """
    before: set[tuple[Any, ...]] = set()
    written = ""
    while True:
        found = set(_states(os.path.join(base_dir, contract.OUTPUT_INTERMEDIATE_DIR)))
        error = _upload_files(base_dir, uri, found if words else found & before)
        if error not in ("", written):
            sys.stderr.write(f"scriptmode: {error}\n")
            written = error
        if words:
            return
        before = found
        time.sleep(_RETRY if error else _UNCHANGED)


def _upload_files(base_dir: str, uri: str, states: set[tuple[Any, ...]]) -> str:
    """Upload files that the record does not have; return an error, or ""."""
    uploaded = set()
    with open(os.path.join(base_dir, _UPLOADED), "ab+", buffering=0) as record:
        record.seek(0)
        for line in record.read().splitlines():
            with contextlib.suppress(ValueError):  # a line that was not written to its end
                uploaded.add(tuple(json.loads(line)))
        errors = [_upload_file(base_dir, uri, state, record) for state in sorted(states - uploaded)]
    return next(filter(None, errors), "")


def _upload_file(base_dir: str, uri: str, state: tuple[Any, ...], record: FileIO) -> str:
    problem = f"{contract.OUTPUT_INTERMEDIATE_DIR} cannot be uploaded to {uri}: {state[0]!r}"
    bucket, _, prefix = uri[len(S3) :].partition("/")
    try:
        with _client("s3", problem) as client, contextlib.suppress(FileNotFoundError):
            client.upload_file(
                os.path.join(base_dir, contract.OUTPUT_INTERMEDIATE_DIR, state[0]), bucket, f"{prefix}/{state[0]}"
            )
            record.write(f"{json.dumps(state)}\n".encode())
    except UserCodeError as error:
        return str(error)
    return ""


def _states(folder: str) -> Iterator[tuple[Any, ...]]:
    """Yield name, size and time of change of regular files: a link may lead out of the directory."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != _COPIES]
        for name in names:
            with contextlib.suppress(OSError):
                if stat.S_ISREG((status := os.lstat(os.path.join(path, name))).st_mode):
                    yield os.path.relpath(os.path.join(path, name), folder), status.st_size, status.st_mtime_ns


_PROGRAMS: dict[str, Callable[..., None]] = {"source": _download_source, "install": _install, "upload": _upload}

if __name__ == "__main__":
    try:
        _PROGRAMS[sys.argv[1]](*sys.argv[2:])
    except (RuntimeFailure, OSError) as error:
        sys.exit(f"scriptmode: {error}")
