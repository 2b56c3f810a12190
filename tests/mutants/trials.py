"""A plugin of pytest that runs tests on one mutant after the other, each in a fork of the process that collected them.

A fork gives the functions of the changed file their new code, which takes no time; a fault outside functions needs a new
interpreter. The file is changed too, for the processes that tests start. The plugin is the init process of its namespace:
it ends all others between two mutants, and no mutant can end it.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import select
import shutil
import signal
import sys
import time
from collections import defaultdict
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

#: Where the plugin's input and output are: a file and a descriptor; of a new interpreter the descriptor alone.
INPUT, OUTPUT = "MUTANTS_INPUT", "MUTANTS_OUTPUT"

#: Seconds in which a new interpreter collects the tests, on a machine that does other work too.
RESTART = 240.0


def pytest_configure(config):
    if INPUT in os.environ:
        config.pluginmanager.register(Trials(Path(os.environ.pop(INPUT)), int(os.environ.pop(OUTPUT))))
    else:
        config.pluginmanager.register(Reporter(int(os.environ.pop(OUTPUT))))


class Reporter:
    """Reports which test begins, and the first that fails."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # noqa: FBT003
        self._descriptor = descriptor

    def report(self, event: str, test: str = "") -> None:
        os.write(self._descriptor, f"{event} {test}\n".encode())

    def pytest_runtest_logstart(self, nodeid):
        self.report("begin", nodeid)

    def pytest_runtest_logreport(self, report):
        if report.outcome == "failed":
            self.report("failed", report.nodeid)
            os._exit(1)

    def pytest_sessionfinish(self, exitstatus):
        self.report("end" if exitstatus in {0, 5} else "failed", "")


class Trials:
    """Runs the mutants of the input and writes a line of JSON for each."""

    def __init__(self, file: Path, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)  # noqa: FBT003
        self._jobs: list[dict[str, Any]] = json.loads(file.read_text())
        self._descriptor = descriptor
        self._items: dict[str, list[pytest.Item]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        for item in session.items:
            self._items[item.nodeid.partition("[")[0]].append(item)
        self._temporary = session.config._tmp_path_factory.getbasetemp()  # one for all forks
        # What needs a new interpreter comes last: it takes longest.
        for job in sorted(self._jobs, key=lambda each: changed_code(each) is None):
            found = self._run(session, job)
            os.write(self._descriptor, f"{json.dumps({'mutant': job['mutant'], **found})}\n".encode())
        return True

    def _run(self, session, job):
        """Find a test that fails with the fault and passes without it."""
        tried = 0
        for tests, limit in job["rounds"]:
            remaining = [test for test in tests if test in self._items]
            while remaining:
                killer = self._failing(session, job, remaining, limit)
                if killer is None:
                    break
                if self._failing(session, None, [killer], limit) is None:
                    return {"status": "killed", "test": killer}
                remaining.remove(killer)
            tried += len(remaining)
        return {"status": "survived" if tried else "not executed", "tried": tried}

    def _failing(self, session, job, tests, limit):
        """Return the first test that fails or does not end in time, None if all pass."""
        path = Path(job["path"]) if job else None
        if job:
            _write(path, job["content"].encode())
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setsid()
            self._run_tests(session, job, tests, Reporter(writing))
        os.close(writing)
        try:
            return _first_failure(reading, tests, limit)
        finally:
            os.close(reading)
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
            for folder in self._temporary.iterdir():
                shutil.rmtree(folder, ignore_errors=True)
            if job:
                _write(path, job["original"].encode())

    def _run_tests(self, session, job, tests, reporter):
        try:
            if job and not change_code(job):
                os.environ[OUTPUT] = str(reporter._descriptor)
                os.set_inheritable(reporter._descriptor, True)  # noqa: FBT003
                reporter.report("restart")
                options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "tests.mutants.trials"]
                os.execv(sys.executable, [sys.executable, "-m", "pytest", *options, *tests])
            session.config.pluginmanager.register(reporter)
            items = [item for test in tests for item in self._items[test]]
            for item, following in itertools.zip_longest(items, items[1:]):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            reporter.report("end")
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            reporter.report("failed")
        finally:
            os._exit(0)


def _first_failure(reading, tests, limit):
    current, text = tests[0], b""
    deadline = time.monotonic() + limit
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        data = os.read(reading, 65536)
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            event, _, test = line.decode().partition(" ")
            current = test.partition("[")[0] or current
            if event == "restart":
                deadline += RESTART
            elif event != "begin":
                return current if event == "failed" else None
        if not data:
            break
    return current


_moment = itertools.count(1_600_000_000)


def _write(path, content):
    """Write a file with a time of change that it never had, so that no bytecode of another content counts."""
    path.write_bytes(content)
    moment = next(_moment)
    os.utime(path, (moment, moment))


def change_code(job: dict[str, Any]) -> bool:
    """Give the functions of a module the code of its changed text; return False if a change is outside functions."""
    pairs = changed_code(job)
    if pairs is None:
        return False
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == job["path"]:
            code = pairs.get((each.__code__.co_name, each.__code__.co_firstlineno))
            try:
                each.__code__ = code or each.__code__
            except ValueError:  # it refers to fewer variables around it
                return False
        elif isinstance(each, _lru_cache_wrapper) and str(each.__module__).startswith("scriptmode"):
            each.cache_clear()
    return True


def changed_code(job: dict[str, Any]) -> dict[tuple[str, int], CodeType] | None:
    """Return the new code of each function by its name and line, None if a change is outside functions."""
    pairs: dict[tuple[str, int], CodeType] = {}
    old, new = (compile(job[text], job["path"], "exec") for text in ("original", "content"))
    return pairs if _pair(old, new, pairs) else None


def _pair(old: CodeType, new: CodeType, pairs: dict[tuple[str, int], CodeType], *, in_function: bool = False) -> bool:
    if not in_function and _instructions(old) != _instructions(new):
        return False
    for one, other in zip(*([each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new))):
        is_function = in_function or bool(one.co_flags & 2)  # CO_NEWLOCALS, which a class's body lacks
        if is_function:
            pairs[one.co_name, one.co_firstlineno] = other
        if not _pair(one, other, pairs, in_function=is_function):
            return False
    return True


def _instructions(code: CodeType) -> tuple[object, ...]:
    constants = tuple((type(each), each) for each in code.co_consts if not isinstance(each, CodeType))
    return code.co_code, constants, code.co_names
