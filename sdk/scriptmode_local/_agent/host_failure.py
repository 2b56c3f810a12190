"""The failure of a host, from what it left: its failure files, or the end of its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode._core.spec import foreign_failure
from scriptmode_local._store import host_logs
from scriptmode_local._store.state import Outcome, failure_from_json
from scriptmode_local._system import full_disk
from scriptmode_runtime._terminal_line import readable

if TYPE_CHECKING:
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._store.job_store import JobFolder


def describe_host_failure(folder: JobFolder, sandboxes: Mapping[str, Sandbox], name: str, code: int) -> Outcome:
    """Return the end of a job whose host ``name`` failed with this exit code, ``-n`` for signal n."""
    exit_code = code if code >= 0 else 128 - code
    # Without what a terminal would obey, and NULs.
    text = readable(sandboxes[name].read_failure())
    if not foreign_failure.lacks_reason(text):
        return Outcome("Failed", algorithm_error(text, exit_code), _read_record(sandboxes, name, exit_code))
    log = readable(host_logs.last_lines(folder.log(name), foreign_failure.LINES, foreign_failure.CHARACTERS))
    reason, failure = foreign_failure.describe_foreign_failure(name, code, text, log)
    disk = folder.path.parent.parent
    if not log and not full_disk.has_space(disk):
        full = f"{full_disk.describe_full_disk(disk)}, so nothing more is known; delete some files"
        return Outcome("Failed", f"ClientError: {reason}; {full}, exit code: {exit_code}", failure)
    return Outcome("Failed", algorithm_error(reason, exit_code), failure)


def algorithm_error(message: str, exit_code: int) -> str:
    """Return the failure reason of a failed script, in the service's form; `describe` shortens it."""
    return f"AlgorithmError: {message}, exit code: {exit_code}"


def _read_record(sandboxes: Mapping[str, Sandbox], name: str, exit_code: int) -> Failure | None:
    """Return the failure that this project's runtime recorded on a host; None for a record that is not its own.

    Any process of the host can write the record, so the exit code is the one of the host, as its agent saw it.
    """
    content = sandboxes[name].read_failure_record()
    try:
        failure = failure_from_json(content)
    except ValueError:
        return None
    # A launcher that could not read its configuration does not know the host's name.
    failure = failure if failure.host else replace(failure, host=name)
    if failure.exit_code != exit_code:
        failure = replace(failure, exit_code=exit_code, signal="")
    return failure if failure.host in sandboxes else None
