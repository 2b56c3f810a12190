"""What a host does with AWS, in processes of their own, because boto3 is large and slow to import.

``python -m scriptmode_runtime._launch.aws_programs PROGRAM ARGUMENTS...`` runs one of `_PROGRAMS`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import RuntimeFailure, UserCodeError
from scriptmode_runtime.plan import ProcessSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime.plan import LaunchPlan

S3 = "s3://"
#: The job's region, as the script sees it.
_REGION = "SAGEMAKER_REGION"
_REPOSITORY = re.compile("arn:[^:]+:codeartifact:([^:]+):([^:]+):repository/([^/]+)/(.+)")
#: Seconds for which a file must not have changed before it is uploaded, and those after an error.
_UNCHANGED, _RETRY = 1.0, 60.0
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
    return plan._replace(services=(*plan.services, *_uploads(environment)))


def upload_rest(environment: TrainingEnvironment) -> None:
    """Upload what the process beside the script has not uploaded, whatever the job's outcome, and wait for it."""
    from scriptmode_runtime._processes import children

    for spec in _uploads(environment, "last"):
        # Neither it nor a log that is closed changes the outcome.
        with contextlib.suppress(OSError, UserCodeError):
            pid, output = children.start(spec)
            with open(output, "rb") as lines:
                for line in lines:
                    os.write(2, line)
            os.waitpid(pid, 0)


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
    # The toolkit's variable; without it boto3's own settings apply.
    endpoint = os.environ.get("S3_ENDPOINT_URL") if service == "s3" else None
    try:
        yield boto3.client(service, region_name=region or None, endpoint_url=endpoint or None)
    except (Boto3Error, BotoCoreError, ClientError, OSError) as error:
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
        limits = source_limits(os.environ)
        unpack(path, os.path.join(base_dir, contract.CODE_DIR), title=f"the source {uri}", limits=limits)


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

    A file that cannot be uploaded does not fail the job, as in AWS's ``train``.
    """
    while True:
        try:
            with _client("s3", f"{contract.OUTPUT_INTERMEDIATE_DIR} cannot be uploaded to {uri}") as client:
                _upload_files(client, base_dir, uri, is_last=bool(words))
        except UserCodeError as error:
            sys.stderr.write(f"scriptmode: {error}\n")
        if words:
            return
        time.sleep(_RETRY)


def _upload_files(client: Any, base_dir: str, uri: str, *, is_last: bool) -> None:
    folder = os.path.join(base_dir, contract.OUTPUT_INTERMEDIATE_DIR)
    bucket, _, prefix = uri[len(S3) :].partition("/")
    before: set[tuple[Any, ...]] = set()
    with open(os.path.join(base_dir, _UPLOADED), "a+") as record:
        record.seek(0)
        uploaded = {tuple(json.loads(line)) for line in record}
        while True:
            found = set(_states(folder))
            for state in sorted((found if is_last else found & before) - uploaded):
                with contextlib.suppress(FileNotFoundError):
                    client.upload_file(os.path.join(folder, state[0]), bucket, f"{prefix}/{state[0]}")
                    uploaded.add(state)
                    record.write(f"{json.dumps(state)}\n")
                    record.flush()
            if is_last:
                return
            before = found
            time.sleep(_UNCHANGED)


def _states(folder: str) -> Iterator[tuple[Any, ...]]:
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != _COPIES]
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(os.path.join(path, name))
                yield os.path.relpath(os.path.join(path, name), folder), status.st_size, status.st_mtime_ns


_PROGRAMS: dict[str, Callable[..., None]] = {"source": _download_source, "install": _install, "upload": _upload}

if __name__ == "__main__":
    try:
        _PROGRAMS[sys.argv[1]](*sys.argv[2:])
    except RuntimeFailure as error:
        sys.exit(f"scriptmode: {error}")
