"""The ``scriptmode`` command: the real program, or its verbs in this process."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from scriptmode_cli import scriptmode

PROGRAM = str(Path(sys.executable).with_name("scriptmode"))


def program(*words, timeout=600, **options):
    """Run the real program to its end."""
    return subprocess.run(
        [PROGRAM, *words], check=False, capture_output=True, text=True, timeout=timeout, env=os.environ, **options
    )


def invoke(*words):
    """Run a verb in this process; the result has ``exit_code``, ``stdout`` and ``stderr``."""
    # Before click 8.2 the two are one text unless asked apart.
    apart = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}
    with mock.patch.dict(os.environ):
        done = CliRunner(**apart).invoke(scriptmode, list(words), prog_name="scriptmode")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def documents(text):
    """Read JSON objects, one a line."""
    return [json.loads(line) for line in text.splitlines()]
