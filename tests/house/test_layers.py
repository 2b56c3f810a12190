"""Which package may know which, and where boto3, processes and printing live.

Paths in tables are relative to the checkout; one that ends in a slash stands for everything below it.
"""

import ast
import importlib.util
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from tests.house import imports, sources
from tests.house.effects import used_of_os
from tests.house.offenders import expect_none

import scriptmode

EVERYWHERE = ("sdk/scriptmode/",)
#: What the SDK uses of the runtime, and where.
RUNTIME_NAMES = {
    "scriptmode_runtime.contract": EVERYWHERE,
    # One way to open what others wrote, beneath a directory descriptor.
    "scriptmode_runtime.files.beneath": EVERYWHERE,
    # One rule of what a terminal shows of a line, in views and in the reasons of failures.
    "scriptmode_runtime.terminal_line": ("sdk/scriptmode/core/text/terminal_text.py",),
    # Jobs wait for the processors that their hosts are told of.
    "scriptmode_runtime.host.machine": (
        "sdk/scriptmode/platforms/local/system/",
        "sdk/scriptmode/doctor/",
        "sdk/scriptmode/results/",
    ),
    # A request that launchers would refuse is refused before there is a job.
    "scriptmode_runtime.settings": ("sdk/scriptmode/core/request/render.py",),
    # A model is unpacked by the same rules as a source, and packed no deeper than it can be unpacked.
    "scriptmode_runtime.files.archive": ("sdk/scriptmode/platforms/local/outputs/", "sdk/scriptmode/results/"),
    "scriptmode_runtime.errors": EVERYWHERE,
    # A plan is the runtime's own.
    "scriptmode_runtime.preview": ("sdk/scriptmode/planning/",),
    "scriptmode_runtime.environment": ("sdk/scriptmode/planning/",),
    "scriptmode_runtime.report.redaction.Redaction": ("sdk/scriptmode/planning/",),
    "scriptmode_runtime.plan": ("sdk/scriptmode/planning/", "sdk/scriptmode/platforms/foreign_failure.py"),
    # A script under test gets what the launcher gives it.
    "scriptmode_runtime.script_process": ("sdk/scriptmode/platforms/local/", "sdk/scriptmode/testing/"),
    # One way to find the error in a traceback, and one rule of what is removed from the text of a failure.
    "scriptmode_runtime.failure": EVERYWHERE,
    # The log of an image without the runtime is read as the runtime reads its programs' output.
    "scriptmode_runtime.report.hints.hint": ("sdk/scriptmode/platforms/foreign_failure.py",),
    # One writer of logs on full disks.
    "scriptmode_runtime.processes.streams.Sink": ("sdk/scriptmode/platforms/local/",),
    # One way to identify, find and end processes of this machine.
    "scriptmode_runtime.processes.process_tree": EVERYWHERE,
    # One place that forks.
    "scriptmode_runtime.processes.forks": ("sdk/scriptmode/platforms/local/",),
    "scriptmode_runtime.processes.system": ("sdk/scriptmode/platforms/local/", "sdk/scriptmode/rehearsal/injection.py"),
    # A rank of another host enters its namespace as the host itself does.
    "scriptmode_runtime.processes.namespace": ("sdk/scriptmode/platforms/local/hosts/",),
    # Files that a killed launcher left are found by the launcher's own rule.
    "scriptmode_runtime.files.scratch": ("sdk/scriptmode/platforms/local/hosts/", "sdk/scriptmode/platforms/slurm/"),
}
#: Distributions, and the modules that import them.
DISTRIBUTIONS = {
    "tensorflow": ("entrypoints/scriptmode_runtime/tensorflow/", "entrypoints/scriptmode_runtime/fallback/"),
    "horovod": ("entrypoints/scriptmode_runtime/tensorflow/horovod.py",),  # its stand-in where it meets Keras
    "boto3": (
        "sdk/scriptmode/core/aws/s3.py",
        "sdk/scriptmode/core/aws/session.py",
        "entrypoints/scriptmode_runtime/user_code.py",
    ),
    "botocore": (
        "sdk/scriptmode/core/aws/s3.py",
        "sdk/scriptmode/core/aws/s3_errors.py",
        "sdk/scriptmode/core/aws/direct_endpoints.py",
        "sdk/scriptmode/core/aws/error_translation.py",
        "sdk/scriptmode/testing/",  # the fake raises its errors
        "sdk/scriptmode/serve/signatures.py",
        "entrypoints/scriptmode_runtime/user_code.py",
    ),
    "obstore": ("sdk/scriptmode/core/aws/s3_reader.py",),
    "optuna": ("sdk/scriptmode/platforms/local/tuning/search.py",),
    "cbor2": ("sdk/scriptmode/serve/cloudwatch.py", "sdk/scriptmode/serve/error_answers.py"),
    "waitress": (
        "sdk/scriptmode/serve/http_server.py",
        "sdk/scriptmode/serve/checked_request.py",
        "sdk/scriptmode/serve/connections.py",
    ),
    "moto": ("sdk/scriptmode/serve/other_services.py",),
}
#: Modules that start processes.
STARTERS = (
    "entrypoints/scriptmode_runtime/processes/children.py",
    "entrypoints/scriptmode_runtime/processes/forks.py",
    "entrypoints/scriptmode_runtime/requirements/overlay.py",
    "entrypoints/scriptmode_runtime/rank.py",
    "entrypoints/scriptmode_runtime/sagemaker_training.py",  # replaces itself by the launcher
    "entrypoints/scriptmode_runtime/tensorflow/binary.py",  # runs the compiler
    "sdk/scriptmode/data/mounts.py",  # runs the setuid program that mounts for users who may not
    "sdk/scriptmode/core/machine/programs.py",  # git, and what the doctor runs: they may hang
    "sdk/scriptmode/platforms/local/hosts/",
    "sdk/scriptmode/platforms/local/remote/",  # the agent of a host elsewhere
    "sdk/scriptmode/platforms/local/system/",
    "sdk/scriptmode/platforms/slurm/slurm_fleet.py",
    "sdk/scriptmode/serve/seaweedfs.py",  # an S3 server beside the server
    "sdk/scriptmode/testing/engine_suite.py",  # another process that reads a job
    "sdk/scriptmode/testing/local_server.py",  # a server for tests
)
#: Commands print by output.echo, which filters what a terminal would obey; click's own help and completion do not.
PRINTERS = ("sdk/scriptmode/cli/group.py", "sdk/scriptmode/cli/output.py")
TABLES = (*RUNTIME_NAMES.values(), *DISTRIBUTIONS.values(), STARTERS, PRINTERS)


def is_in(path, table):
    return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in table)


def offending(check):
    """What ``check`` says of each import of each file."""
    for source in sources.product():
        for item in imports.imported(source):
            if check(source.path, item):
                yield f"{source.path}:{item.line}: {item.dotted}"


@cache
def is_standard(name):
    """Python 3.9 has no sys.stdlib_module_names: look at where a module lies."""
    if name in sys.builtin_module_names:
        return True
    found = importlib.util.find_spec(name)
    folder = Path(sysconfig.get_path("stdlib"))
    origin = (found and found.origin) or ""
    return origin == "frozen" or (folder in Path(origin).parents and "site-packages" not in origin)


def test_every_path_and_name_in_a_table_exists():
    unknown = {path for table in TABLES for path in table if not (sources.ROOT / path).exists()}
    unknown |= {name for name in RUNTIME_NAMES if not exists(name)}
    expect_none(unknown, "a module or name was moved or removed: correct the table")


def exists(dotted):
    """Whether this is a module, or a name that a module's text has."""
    files = {imports.module_name(source.path): source for source in sources.product()}
    module, _, name = dotted.rpartition(".")
    return dotted in files or (module in files and name in files[module].text)


def test_the_runtime_imports_the_standard_library_alone():
    def check(path, item):
        root = item.module.partition(".")[0]
        is_known = root == "scriptmode_runtime" or root in DISTRIBUTIONS or is_standard(root)
        return path.startswith(sources.RUNTIME) and not is_known

    expect_none(offending(check), "the runtime is started in images that have nothing else")


def test_tensorflow_boto3_botocore_and_obstore_are_imported_in_few_modules():
    def check(path, item):
        table = DISTRIBUTIONS.get(item.module.partition(".")[0])
        return table is not None and not is_in(path, table)

    expect_none(offending(check), "use the module of DISTRIBUTIONS that wraps it")


def test_the_sdk_uses_values_and_primitives_of_the_runtime():
    def check(path, item):
        if not path.startswith(sources.SDK) or item.module.partition(".")[0] != "scriptmode_runtime":
            return False
        allowed = [table for name, table in RUNTIME_NAMES.items() if f"{item.dotted}.".startswith(f"{name}.")]
        return not any(is_in(path, table) for table in allowed)

    expect_none(offending(check), "share values by the contract")


def test_one_module_forks():
    """It refuses in a process that has threads."""
    forks = {"os.fork", "os.forkpty", "preexec_fn", "multiprocessing", "concurrent.futures.ProcessPoolExecutor"}
    found = [
        f"{source.path}: {name}"
        for source in sources.product()
        if source.path != "entrypoints/scriptmode_runtime/processes/forks.py"
        for name in (
            *(f"os.{name}" for name in used_of_os(source)),
            *(node.arg or "" for node in source.nodes if isinstance(node, ast.keyword)),
            # The children of others can be listed.
            *(item.dotted for item in imports.imported(source) if item.name not in ("active_children", "BaseProcess")),
        )
        if name in forks or name.startswith("multiprocessing.")
    ]
    expect_none(found, "use scriptmode_runtime.processes.forks")


def test_processes_are_started_in_few_modules():
    starting = ("fork", "exec", "spawn", "posix_spawn", "*")
    found = [
        f"{source.path}: {name}"
        for source in sources.product()
        if not is_in(source.path, STARTERS)
        for name in (
            *(
                item.dotted
                for item in imports.imported(source)
                if item.module.partition(".")[0] == "subprocess" and item.when != imports.TYPES
            ),
            *(f"os.{name}" for name in used_of_os(source) if name.startswith(starting)),
        )
    ]
    expect_none(found, "start processes in a module of STARTERS")


def test_the_command_line_prints_in_one_module():
    found = [
        source.path
        for source in sources.read(sources.ROOT, "sdk/scriptmode/cli")
        if "click.echo(" in source.text and not is_in(source.path, PRINTERS)
    ]
    expect_none(found, "print by output.echo, which filters what a terminal would obey")


#: What must not be imported before it is needed.
PROGRAM = """
import sys

def check(what):
    heavy = {"boto3", "botocore", "obstore", "tensorflow", "numpy", "click"} & set(sys.modules)
    assert not heavy, f"{what} imports {heavy}"

import scriptmode
check("import scriptmode")
from scriptmode import Estimator
Estimator(entry_point="x.py", instance_type="local_process").request("file:///x")
check("a local request")
Estimator("img", "arn:aws:iam::123456789012:role/r", 1, "ml.m5.large", output_path="s3://b").request("s3://b/x")
check("a request to SageMaker")
"""


def test_neither_boto3_nor_tensorflow_is_imported_before_it_is_needed(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-east-1", "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    (tmp_path / "x.py").touch()
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment, cwd=tmp_path)


def test_every_public_name_is_there_once():
    assert len(scriptmode.__all__) == len(set(scriptmode.__all__))
    assert [name for name in scriptmode.__all__ if not hasattr(scriptmode, name)] == []


#: The engines, which alone ask for a kind of host.
ENGINES = (
    "sdk/scriptmode/platforms/local/hosts/",
    "sdk/scriptmode/platforms/slurm/",
    "sdk/scriptmode/core/spec/hosts.py",
)


def test_engines_alone_ask_for_the_kind_of_hosts():
    found = [
        f"{source.path}:{node.lineno}: {node.attr}"
        for source in sources.product()
        if not source.path.startswith(ENGINES)
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "HostKind"
    ]
    expect_none(found, "ask for a fact of `HostKind`, or add one to it")
