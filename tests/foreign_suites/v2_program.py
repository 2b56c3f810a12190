"""Run programs and notebooks for the SageMaker SDK v2, each in its process, until they have requested a training job.

``python -m tests.foreign_suites.v2_program PROGRAMS RESULTS`` reads a list of programs and writes what happened in each.
Statements are executed one by one, so that one that fails for want of data, packages or a network does not end the
program. A result has the request, and the statements that failed before it: ``own`` says whether in scriptmode.
"""

from __future__ import annotations

import ast
import dis
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tests.foreign_suites.v2_account import REGION, Requested, account

from scriptmode import Session, TensorFlow
from scriptmode.v2 import _alias as alias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from scriptmode._core.spec.job_request import JobRequest

#: Seconds that a program may take, and how many run at once.
LIMIT, AT_ONCE = 120, 2
#: Shell commands that are run; others need a network, Docker or root.
COMMANDS = {"mkdir", "cp", "touch", "mv"}
#: Errors of scriptmode about what the program itself lacks here: an unavailable value, or an object that it downloads.
OTHERS = re.compile(r"\bUnavailable\b|unavailable |s3://\S+: there is no such object")
#: An assignment without a value.
BLANK = re.compile(r"(?m)^(\s*\w+\s*=)[ \t]*(#.*|<[^<>\n]*>[ \t]*|\[\w+[ _-][\w -]+\][ \t]*(?:#.*)?)?$")
#: Cell magics whose body is Python.
PYTHON_MAGICS = {"time", "capture", "timeit", "prun"}
#: A text that a program leaves to its reader: all of a string, beginning with "your", or a variable of a template.
PLACEHOLDER = re.compile(r"(?<=['\"])<[A-Za-z][\w -]{1,60}>(?=\\?['\"])|<+(?i:your)[^<>\n]{1,40}>+|\{\{\w+\}+")
#: An error that is raised in these directories is this project's own.
OWN = re.compile(r"/(sdk/scriptmode\w*|entrypoints/scriptmode_runtime)/")


class Unavailable:
    """A value of a package that is not installed, such as a data set or a model: whatever is done with it gives another."""

    def __init__(self, name: str = "value") -> None:
        self._name = name

    def __getattr__(self, name: str) -> Unavailable | str:
        if name.startswith("__"):
            raise AttributeError(name)
        # Such as those of an experiment and its trial, which fit sends.
        return "unavailable" if name.endswith("_name") else Unavailable(f"{self._name}.{name}")

    def __call__(self, *_: object, **__: object) -> Unavailable:
        return Unavailable(f"{self._name}()")

    def __iter__(self) -> Iterator[Unavailable]:
        # What an assignment to several names takes; nothing for a loop.
        code = sys._getframe(1)
        last = next(each for each in dis.get_instructions(code.f_code) if each.offset == code.f_lasti)
        count = last.argval if last.opname == "UNPACK_SEQUENCE" else 0
        return iter([Unavailable(f"{self._name}[{index}]") for index in range(count)])

    def __len__(self) -> int:
        return 1

    def __enter__(self) -> Self:
        return self

    def _operation(self, *_: object) -> Unavailable:
        return Unavailable(self._name)

    __getitem__ = __add__ = __sub__ = __mul__ = __truediv__ = __rtruediv__ = __floordiv__ = __mod__ = _operation
    __radd__ = __rmul__ = __lt__ = __gt__ = __le__ = __ge__ = __neg__ = __invert__ = __and__ = __or__ = _operation

    def __setitem__(self, *_: object) -> None:
        pass

    __exit__ = __setitem__

    def __repr__(self) -> str:
        return f"<unavailable {self._name}>"


class _UnavailableModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unavailable(f"{self.__name__}.{name}")


class UnavailablePackages(MetaPathFinder, Loader):
    """Provides the packages that a program imports and this environment lacks."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        frame = sys._getframe(1)
        while frame.f_back and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        importer = frame.f_code.co_filename
        is_part = isinstance(sys.modules.get(name.rpartition(".")[0]), _UnavailableModule)
        if name.partition(".")[0] in ("sagemaker", "scriptmode"):
            return None
        if not is_part and importer != "<program>" and not importer.startswith(str(Path.cwd())):
            return None
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _UnavailableModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class Shell:
    """What a notebook's ``get_ipython()`` is here."""

    def __init__(self, execute: Any) -> None:
        self._execute = execute

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        if name in PYTHON_MAGICS:
            self._execute(body)
        elif name in ("writefile", "file"):
            target = Path(line.rsplit(maxsplit=1)[-1].strip("'\""))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")

    def run_line_magic(self, name: str, line: str, *_: object, **__: object) -> None:
        if name == "time":
            self._execute(line)
        elif name == "cd":
            os.chdir(line)

    magic = run_line_magic

    def system(self, command: str) -> None:
        for line in command.splitlines():
            words = [] if re.search(r"[|&;<>$`'\"]", line) else shlex.split(line)
            if words and words[0] in COMMANDS:
                subprocess.run(words, check=False, capture_output=True)

    def getoutput(self, command: str) -> list[str]:
        self.system(command)
        return []

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class Execution:
    """The statements of a program, executed one by one in one namespace."""

    def __init__(self, program: Path, given: dict[str, Any]) -> None:
        from IPython.core.inputtransformer2 import TransformerManager

        self.failures: list[dict[str, Any]] = []
        self._main: list[ast.stmt] = []
        self._transform = TransformerManager().transform_cell
        shell = Shell(self.execute)
        own = {"get_ipython": lambda: shell, "input": lambda *_: "", "display": lambda *_: None}
        self._variables = {"__name__": "__main__", "__file__": str(program), **own, **given}

    def execute(self, text: str) -> None:
        try:
            self._execute_all(self._parse(text).body)
        except SyntaxError as error:
            self._failed(text, error)

    def _parse(self, text: str) -> ast.Module:
        try:
            return ast.parse(self._transform(text), "<program>")
        except SyntaxError:
            # Values that a notebook leaves to its reader.
            return ast.parse(BLANK.sub(_fill_in, self._transform(text)), "<program>")

    def _execute_all(self, nodes: list[ast.stmt]) -> None:
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.name == "main" and not node.args.args:
                self._main = node.body
            text = ast.unparse(node)
            if isinstance(node, ast.If) and text.startswith("if __name__ == '__main__':"):
                self._execute_all(node.body)
                continue
            if text == "main()" and self._main:
                self._execute_all(self._main)
                continue
            try:
                exec(compile(ast.Module([node], []), "<program>", "exec"), self._variables)
            except Requested:
                raise
            except BaseException as error:  # as in a notebook, where a failed cell does not end the program
                self._failed(ast.unparse(node), error)

    def _failed(self, statement: str, error: BaseException) -> None:
        is_own = any(OWN.search(frame.filename) for frame in traceback.extract_tb(error.__traceback__))
        is_own |= type(getattr(error, "obj", None)).__module__.startswith("scriptmode.")  # of an AttributeError
        is_own |= isinstance(error, ImportError) and (error.name or "").startswith("sagemaker")
        is_own &= not OTHERS.search(str(error))
        text = f"{type(error).__name__}: {error}"[:1500]
        self.failures.append({"statement": statement[:400], "error": text, "own": is_own})


def _fill_in(assignment: re.Match[str]) -> str:
    """Give a variable the value that the comment has as an example, or a text."""
    try:
        value = ast.literal_eval(assignment[2].lstrip("# "))
    except (SyntaxError, ValueError, AttributeError):
        value = "filled-in"
    return f"{assignment[1]} {value!r}"


def read_cells(program: Path) -> list[str]:
    """Return the texts of a notebook's cells of code, or that of a program."""
    text = program.read_text(encoding="utf-8")
    text = PLACEHOLDER.sub(lambda found: "s3://filled-in" if "s3-path" in found[0] else "filled-in", text)
    if program.suffix != ".ipynb":
        return [text]
    notebook = json.loads(text)
    cells = notebook.get("cells") or [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    return ["".join(cell.get("source", cell.get("input", ""))) for cell in cells if cell["cell_type"] == "code"]


def _replace_network_and_data() -> None:
    """Refuse connections; upload a placeholder where a program has not downloaded its data; end at a local request."""
    import scriptmode._job
    from scriptmode._core.request.render import render_request
    from scriptmode.aws import S3Uploader

    def refuse(*_: object, **__: object) -> None:
        raise OSError("this suite has no network")

    socket.getaddrinfo = socket.create_connection = refuse
    time.sleep = lambda _: None
    upload_data, upload = Session.upload_data, S3Uploader.upload
    Session.upload_data = lambda self, path, *rest, **named: upload_data(self, _with_data(path), *rest, **named)
    S3Uploader.upload = staticmethod(lambda local_path, *rest, **named: upload(_with_data(local_path), *rest, **named))

    fit, create = scriptmode.Estimator.fit, scriptmode._job.create_job

    def create_job(platform: Any, request: JobRequest, *rest: Any) -> Any:
        if hasattr(platform, "session"):
            return create(platform, request, *rest)
        from botocore.session import get_session
        from botocore.validate import validate_parameters

        model = get_session().get_service_model("sagemaker").operation_model("CreateTrainingJob")
        body = render_request(request)
        validate_parameters(body, model.input_shape)
        raise Requested("CreateTrainingJob", body)

    def fit_with_data(self: Any, inputs: Any = None, *rest: Any, **named: Any) -> Any:
        for each in inputs.values() if isinstance(inputs, dict) else [inputs]:
            uri = getattr(each, "s3_data", each)
            if isinstance(uri, str) and uri.startswith("file://"):
                _with_data(uri[len("file://") :])
        return fit(self, inputs, *rest, **named)

    scriptmode.Estimator.fit, scriptmode._job.create_job = fit_with_data, create_job


def _with_data(path: Any) -> Any:
    if not isinstance(path, (str, Path)):
        return path
    found = Path(path)
    if found.suffix and not found.is_dir():
        found.parent.mkdir(parents=True, exist_ok=True)
        found.touch()
    elif not any(file.is_file() for file in found.rglob("*")):
        found.mkdir(parents=True, exist_ok=True)
        (found / "placeholder").touch()
    return path


def run(program: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Run a program of the current directory; return its request, and the statements that failed before it."""
    sys.argv = [str(program), *given.pop("argv", ())]
    os.environ.update(given.pop("environment", {}))
    sys.path[:0] = [str(program.resolve().parent), str(Path.cwd())]
    for name in given.pop("files", ()):
        _with_data(name)
    sys.meta_path.append(UnavailablePackages())
    warnings.simplefilter("ignore")
    cells = read_cells(program)
    execution = Execution(program, given)
    done: dict[str, Any] = {"request": None}
    with account(set(re.findall(r"profile_name\s*=\s*['\"]([\w-]+)['\"]", "\n".join(cells)))):
        _replace_network_and_data()
        try:
            for cell in cells:
                execution.execute(cell)
        except Requested as requested:
            done = {"operation": requested.operation, "request": requested.request}
    return {**done, "failures": execution.failures}


def fork(folder: Path, program: str, given: dict[str, Any]) -> None:
    """Start a process that runs a program, whose directory is ``program`` in a folder."""
    if os.fork():
        return
    try:
        signal.alarm(LIMIT)
        with (folder / "log").open("wb") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
        (folder / "home").mkdir()
        os.environ.update(HOME=str(folder / "home"), SCRIPTMODE_DATA_DIR=str(folder / "data"), MPLBACKEND="agg")
        os.chdir(folder / "program")
        if program.endswith(".ipynb"):
            os.chdir(Path(program).parent)
            program = Path(program).name
        (folder / "result.json").write_text(json.dumps(run(Path(program), given), default=str), encoding="utf-8")
    finally:
        os._exit(0)


def read_result(folder: Path) -> dict[str, Any]:
    """Return what `run` returned for a program, or how its process ended."""
    if (folder / "result.json").exists():
        return json.loads((folder / "result.json").read_text(encoding="utf-8"))
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return {"request": None, "failures": [{"statement": "", "error": f"ended: {lines[-3:]}", "own": False}]}


def main() -> None:
    """Run the programs of a list, each in a child of this process, which has imported what they need."""
    import boto3
    import botocore.session
    import numpy as np  # noqa: F401 - nearly all programs import it
    from moto import mock_aws

    # One for all sessions of all programs: it keeps the models of services, which take a second to read.
    loader = botocore.session.create_loader()
    botocore.session.create_loader = lambda *_: loader
    with mock_aws():
        for service in ("iam", "logs", "s3", "sagemaker", "sts"):
            boto3.client(service, region_name=REGION)
        boto3.client("sts", region_name=REGION).get_caller_identity()
        boto3.client("s3", region_name=REGION).list_buckets()
        session = Session(boto3.Session("key", "secret", region_name=REGION))
        role = "arn:aws:iam::123456789012:role/notebook"
        kinds = [{"instance_type": "ml.m5.large", "sagemaker_session": session}, {"instance_type": "local_process"}]
        for kind in kinds:
            TensorFlow(entry_point=__file__, role=role, framework_version="2.12", py_version="py310", **kind).request()
    alias.activate()
    listed, results = (Path(word) for word in sys.argv[1:])
    programs = json.loads(listed.read_text(encoding="utf-8"))
    for index, each in enumerate(programs):
        if index >= AT_ONCE:
            os.wait()
        fork(Path(each["folder"]), each["program"], dict(each["given"]))
    for _ in programs[:AT_ONCE]:
        os.wait()
    found = [read_result(Path(each["folder"])) for each in programs]
    results.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
