"""How the command ends: what it says of an error, and the exit code, which is the job's own where there was a job."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import click

from scriptmode import RequestError, ScriptmodeError, SpecError, TrainingJobError, TrainingJobFailed, TrainingJobStopped
from scriptmode.cli import output
from scriptmode.cli.error_translation import translate_advice
from scriptmode.cli.output import to_json_value

FAILED, USAGE, TIMED_OUT, STOPPED = 1, 2, 124, 143
#: In the help of the verbs that wait for a job.
EXIT_CODES_HELP = (
    "Exit code: 0 when the job completed; the script's own when it failed, or 1 where nobody knows it; 143 when it was "
    "stopped, 124 when it ran out of time; 130 after Ctrl-C, which leaves the job running; 2 where an option or "
    "argument is wrong or the platform refuses the job, before anything is started, 1 for any other error."
)
#: What the service ends a failure's reason with.
_CODE = re.compile(r"exit code: (\d{1,3})\s*\Z")
#: Secondary statuses of jobs that ran longer than they might: timeout(1)'s code.
_OUT_OF_TIME = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")


def exit_code(error: BaseException) -> int:
    """Give the exit code that an error ends the command with."""
    if isinstance(error, (click.UsageError, SpecError, RequestError)):
        return USAGE
    if isinstance(error, TrainingJobStopped):
        return TIMED_OUT if error.secondary_status in _OUT_OF_TIME else STOPPED
    found = _CODE.search(error.reason) if isinstance(error, TrainingJobFailed) else None
    code = int(found.group(1)) if found else FAILED
    return code if 0 < code < 256 else FAILED  # noqa: PLR2004 - what a process can end with


def report_error(error: click.ClickException | Exception, *, as_json: bool) -> int:
    """Write an error on stderr, for people or as one JSON object; give the exit code."""
    code = exit_code(error)
    if isinstance(error, click.ClickException):
        text = error.format_message()
    else:
        text = str(error) if isinstance(error, ScriptmodeError) or not isinstance(error, OSError) else _refusal(error)
    text = translate_advice(text)
    if as_json:
        output.echo(json.dumps(_object(error, text, code)), err=True)
        return code
    if isinstance(error, click.UsageError):
        # Click's sentences begin as sentences do; names of arguments are in capitals.
        text = text if text[1:2].isupper() else text[:1].lower() + text[1:]
    output.echo(f"scriptmode: {text}", err=True)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        output.echo(f"see {context.command_path} --help", err=True)
    return code


def discard_output() -> None:
    """Throw away what is yet to be written where it cannot be: the interpreter would try it again at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _refusal(error: OSError) -> str:
    """Say what the machine refused, and what to do."""
    said = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {said}; correct the path, or what lies there"
    if isinstance(error, FileNotFoundError):
        return "the folder in which this command runs is not there any more; go to another one"
    return f"what this command has to say cannot be written: {said}; give its output another place"


def _object(error: Exception, text: str, code: int) -> dict[str, Any]:
    said: dict[str, Any] = {"error": type(error).__name__, "message": text, "exit_code": code}
    if isinstance(error, TrainingJobError):
        said.update(
            job=error.job_name, status=error.status, secondary_status=error.secondary_status,
            reason=to_json_value(error.description.get("FailureReason")),
        )  # fmt: skip
    return said
