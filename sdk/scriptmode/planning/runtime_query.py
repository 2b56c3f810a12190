"""A query to the runtime: what the hosts of a job would run.

This process answers, unless the hosts have another interpreter: then one process of that interpreter, for all hosts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.errors import PlatformError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.spec.service_values import PlannedHost

_MODULE = "scriptmode_runtime.preview"
#: Seconds for the answer, and additional seconds for each host, on a loaded machine.
_SECONDS, _SECONDS_A_HOST = 30.0, 0.1


@dataclass(frozen=True)
class RuntimeQuery:
    """The hosts of a job, and what they have instead of this machine's files (see ``scriptmode_runtime.preview``)."""

    hosts: Mapping[str, PlannedHost]
    #: ``None`` if the hosts are processes of this machine.
    machine: Mapping[str, Any] | None = None
    #: By instance type.
    gpus: Mapping[str, int] = field(default_factory=dict)
    #: Texts of the source's files by their names.
    source: Mapping[str, str] = field(default_factory=dict)
    #: Returned without secrets: those of the hosts, and those in the mappings ``named``.
    shown: object = None
    named: Sequence[Mapping[str, Any]] = ()
    only_roles: bool = False
    #: Names of the hosts whose ``SM_*`` variables are returned.
    variables: Sequence[str] = ()


def query_runtime(question: RuntimeQuery) -> dict[str, Any]:
    """Return the runtime's answer: ``hosts`` and ``shown``.

    Raises `SpecError` with the runtime's message if it would refuse to run a host, and `PlatformError` if it cannot be
    run.
    """
    python = next((host.python for host in question.hosts.values()), "") or sys.executable
    answer = _query_here(question) if python == sys.executable else _query_process(question, python)
    if refused := answer.get("refused"):
        raise SpecError(f"{refused['host']} would refuse to run: {refused['message']}")
    return answer


def _query_here(question: RuntimeQuery) -> dict[str, Any]:
    from scriptmode_runtime.preview import preview

    try:
        return preview(_document(question))
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        # A job that another client described may have values of other types.
        raise PlatformError(f"the hosts' runtime cannot plan the job: {error!r}") from error


def _query_process(question: RuntimeQuery, python: str) -> dict[str, Any]:
    argv = (python, "-m", _MODULE)
    try:
        done = subprocess.run(
            argv,
            input=json.dumps(_document(question)).encode(),
            capture_output=True,
            cwd="/",
            timeout=_SECONDS + _SECONDS_A_HOST * len(question.hosts),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlatformError(
            f"the hosts' runtime does not run with {python}: {error}", advice="correct 'python'"
        ) from error
    return _answer(python, done)


def _answer(python: str, done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    """Parse the last line of the output: site packages may print lines before."""
    error_line = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    message = (
        f"the hosts' runtime does not run with {python}: {error_line or f'exit code {done.returncode}, no answer'}; "
    )
    if "No module named" in error_line:
        from scriptmode.machine.installation import install_command

        raise PlatformError(f"{message}install scriptmode for it: {install_command(python=python)}")
    message += f"see its output: echo '{{}}' | {python} -m {_MODULE}"
    if done.returncode:
        raise PlatformError(message)
    try:
        answer = json.loads(done.stdout.strip().rpartition(b"\n")[2])
    except ValueError as error:
        raise PlatformError(message) from error
    if not isinstance(answer, dict):
        raise PlatformError(message)
    return answer


def _document(question: RuntimeQuery) -> dict[str, Any]:
    shared = _shared(question.hosts)
    return {
        "files": shared,
        "hosts": {
            name: {
                "base_dir": host.base_dir,
                "files": {file: content for file, content in host.files.items() if file not in shared},
                "environ": dict(host.variables),
                **({"gpus": question.gpus[host.instance_type]} if host.instance_type in question.gpus else {}),
            }
            for name, host in question.hosts.items()
        },
        "machine": question.machine,
        "source": question.source,
        "shown": question.shown,
        "named": [dict(each) for each in question.named],
        "only_roles": question.only_roles,
        "variables": list(question.variables),
    }


def _shared(hosts: Mapping[str, PlannedHost]) -> dict[str, Any]:
    """Return the files that are equal on all hosts, which are sent once: for many hosts they are large."""
    first = next(iter(hosts.values()), None)
    if first is None:
        return {}
    return {
        file: content
        for file, content in first.files.items()
        if all(host.files.get(file) is content or host.files.get(file) == content for host in hosts.values())
    }
