"""A running ``scriptmode serve``, for tests of programs that start training jobs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scriptmode.errors import PlatformError

#: Seconds in which a server ends after SIGTERM.
_END_SECONDS = 10.0
#: What an AWS client needs beside the URL.
_CLIENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True)
class RunningServer:
    """A server of SageMaker's training API.

    Attributes:
        url: Its URL, for ``endpoint_url`` of a client.
        data_dir: The directory of its jobs.
        environment: The environment variables with which AWS clients use it.
    """

    url: str
    data_dir: Path
    environment: Mapping[str, str] = field(repr=False)
    process: subprocess.Popen[str] = field(repr=False)


@contextmanager
def server(
    *options: str, data_dir: str | os.PathLike[str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[RunningServer]:
    """Run ``scriptmode serve`` on a free port of this machine until the context ends; yield it.

    >>> @pytest.fixture(scope="session")
    ... def sagemaker():
    ...     with scriptmode.testing.server() as running:
    ...         yield boto3.client("sagemaker", endpoint_url=running.url, region_name="us-east-1")

    Args:
        options: More options of the command.
        data_dir: Directory of the jobs. Default: a temporary one, which is removed.
        environment: Variables of the server, and of its jobs, in addition to this process's.

    Raises:
        PlatformError: The server does not start.
    """
    with tempfile.TemporaryDirectory(prefix="scriptmode-") as folder:
        path = Path(folder if data_dir is None else data_dir)
        variables = {**os.environ, **(environment or {}), "SCRIPTMODE_DATA_DIR": str(path)}
        command = (sys.executable, "-m", "scriptmode", "serve", "--json", "--listen", "127.0.0.1:0", *options)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
            try:
                url = _read_url(process)
                yield RunningServer(url, path, {"AWS_ENDPOINT_URL": url, **_CLIENT}, process)
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()


def _read_url(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout else ""
    try:
        return str(json.loads(line)["url"])
    except ValueError as error:
        raise PlatformError("the server did not start", advice="its stderr has the cause") from error
