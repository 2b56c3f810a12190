"""Reporting errors: the message on stderr, with options instead of arguments, and the exit code, a failed job's own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import click

from scriptmode import errors
from scriptmode_cli._program import output
from scriptmode_cli._program.usage_errors import usage_message

FAILED, USAGE, TIMED_OUT, STOPPED = 1, 2, 124, 143
#: The epilog of the help of each verb that waits for a job.
EXIT_CODES_HELP = """\b
Exit code: that of the script if it failed, otherwise
  0    The job completed.
  1    An error that is not in this list, or a failed job whose exit code is not known.
  2    An option or argument is wrong, or the platform rejects the request.
  124  The job exceeded its time limit.
  130  Ctrl-C was pressed. The job continues.
  143  The job was stopped."""
#: Secondary statuses of jobs that exceeded a time limit. Their exit code is that of timeout(1).
_OUT_OF_TIME = ("MaxRuntimeExceeded", "MaxWaitTimeExceeded")
#: Options that stand for what errors of every kind name.
_COMMON_OPTIONS = {"region": "--region", "profile": "--profile", "metric_definitions": "--metric NAME=REGEX"}


@contextmanager
def translate_errors_to_options(options: Mapping[str, str]) -> Iterator[None]:
    """Name the options in the advice of an error, and the one that stands for its argument; ``options`` by argument."""
    try:
        yield
    except errors.ScriptmodeError as error:
        option = options.get(error.argument or "")
        # `_message` appends the option of the others.
        if option is None or error.argument in _COMMON_OPTIONS:
            raise
        names = "|".join(name for name, other in options.items() if "_" in name and not other.startswith("--set "))
        # Not within the names of files and in what is quoted.
        named = rf"(?<![\w'\"/.-])({names or '(?!)'})(?![\w'\"/-]|\.\w)(?:=?\.\.\.|=(?=\s|$)|(=)?)"
        advice = re.sub(named, lambda word: options[word[1]] + " " * bool(word[2]), error.advice or "")
        raise errors.with_suffix(type(error)(error.message, advice, argument=error.argument), f"({option})") from error


def exit_code(error: BaseException) -> int:
    """Return the exit code of the command for an error."""
    # Whether a job exists is an answer, which does not depend on where it was looked for.
    is_other_error = isinstance(error, errors.PlatformError) and not isinstance(error, errors.JobNotFoundError)
    is_about_argument = is_other_error and getattr(error, "argument", None) is not None
    if is_about_argument or isinstance(
        error, (click.UsageError, errors.SpecError, errors.RequestError, errors.JobExistsError)
    ):
        return USAGE
    if isinstance(error, errors.TrainingJobStopped):
        return TIMED_OUT if error.secondary_status in _OUT_OF_TIME else STOPPED
    return (error.failure.exit_code if isinstance(error, errors.TrainingJobFailed) else None) or FAILED


def report_error(error: click.ClickException | Exception, *, as_json: bool) -> int:
    """Write an error to stderr, as text or as one JSON object; return the exit code."""
    code = exit_code(error)
    text = errors.shorten_values(_message(error))
    if as_json:
        output.echo(json.dumps(_to_object(error, text, code)), err=True)
        return code
    output.echo(f"{output.coloured('scriptmode:', 'red', err=True)} {text}", err=True)
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is not None:
        output.echo(f"see {context.command_path} --help", err=True)
    return code


def raise_errors(failures: Sequence[errors.ScriptmodeError], *, as_json: bool) -> None:
    """Raise the last of several errors, after the others were written to stderr."""
    for error in failures[:-1]:
        report_error(error, as_json=as_json)
    if failures:
        raise failures[-1]


def discard_output() -> None:
    """Discard buffered output that cannot be written; the interpreter would try to write it again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _message(error: click.ClickException | Exception) -> str:
    if isinstance(error, click.ClickException):
        return usage_message(error)
    if isinstance(error, errors.ScriptmodeError):
        option = _COMMON_OPTIONS.get(error.argument or "")
        return f"{error} ({option})" if option else str(error)
    return _os_error_message(error) if isinstance(error, OSError) else str(error)


def _os_error_message(error: OSError) -> str:
    """Return the operating system's error with the next step."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}; correct the path, or the file at that path"
    if isinstance(error, FileNotFoundError):
        return "the current directory does not exist any more; change to another directory"
    return f"the output of this command cannot be written: {reason}; redirect it to another file"


def _to_object(error: Exception, text: str, code: int) -> dict[str, object]:
    fields: dict[str, object] = {"error": type(error).__name__, "message": text, "exit_code": code}
    if isinstance(error, errors.TrainingJobError):
        fields.update(
            job=error.job_name, status=error.status, secondary_status=error.secondary_status,
            reason=output.to_json_value(error.description.get("FailureReason")),
        )  # fmt: skip
    if isinstance(error, errors.TrainingJobFailed):
        fields["failure"] = output.to_json_value(asdict(error.failure))
    return fields
