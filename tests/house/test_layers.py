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

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.house import imports, sources
from tests.house.effects import used_of_os
from tests.house.offenders import expect_none

#: Distributions that the runtime imports where they are installed.
OPTIONAL = ("tensorflow", "horovod", "boto3", "botocore")
#: Modules that start processes.
STARTERS = (
    "entrypoints/scriptmode_runtime/_processes/children.py",
    "entrypoints/scriptmode_runtime/_processes/forks.py",
    "entrypoints/scriptmode_runtime/_requirements/overlay.py",
    "entrypoints/scriptmode_runtime/_launch/aws_programs.py",  # replaces itself by the installer
    "entrypoints/scriptmode_runtime/rank.py",
    "entrypoints/scriptmode_runtime/sagemaker_training.py",  # replaces itself by the launcher
    "entrypoints/scriptmode_runtime/tensorflow/binary.py",  # runs the compiler
    "sdk/scriptmode_local/_data/mounts.py",  # runs the setuid program that mounts for users who may not
    "sdk/scriptmode/_core/machine/programs.py",  # git, and what the doctor runs: they may hang
    "sdk/scriptmode_cli/_commands/horovod.py",  # runs the build, whose output the user sees
    "sdk/scriptmode_local/_hosts/",
    "sdk/scriptmode_local/_remote/",  # the agent of a host elsewhere
    "sdk/scriptmode_local/_system/",
    "sdk/scriptmode_slurm/_engine/steps.py",
    "sdk/scriptmode_serve/_http/seaweedfs.py",  # an S3 server beside the server
    "sdk/scriptmode/testing/_engine_suite.py",  # another process that reads a job
    "sdk/scriptmode/testing/_local_server.py",  # a server for tests
    "sdk/scriptmode_kubernetes/_engine/api.py",  # a kubeconfig's command that prints a token
)
#: Commands print by output.echo, which filters what a terminal would obey; click's own help and completion do not.
PRINTERS = ("sdk/scriptmode_cli/_program/group.py", "sdk/scriptmode_cli/_program/output.py")


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


def test_every_path_in_a_table_exists():
    unknown = {path for path in (*STARTERS, *PRINTERS) if not (sources.ROOT / path).exists()}
    expect_none(unknown, "a module was moved or removed: correct the table")


def test_the_runtime_imports_the_standard_library_alone():
    def check(path, item):
        root = item.module.partition(".")[0]
        is_known = root == "scriptmode_runtime" or root in OPTIONAL or is_standard(root)
        return path.startswith(sources.RUNTIME) and not is_known

    expect_none(offending(check), "the runtime is started in images that have nothing else")


def test_one_module_forks():
    """It refuses in a process that has threads."""
    forks = {"os.fork", "os.forkpty", "preexec_fn", "multiprocessing", "concurrent.futures.ProcessPoolExecutor"}
    found = [
        f"{source.path}: {name}"
        for source in sources.product()
        if source.path != "entrypoints/scriptmode_runtime/_processes/forks.py"
        for name in (
            *(f"os.{name}" for name in used_of_os(source)),
            *(node.arg or "" for node in source.nodes if isinstance(node, ast.keyword)),
            # The children of others can be listed.
            *(item.dotted for item in imports.imported(source) if item.name not in ("active_children", "BaseProcess")),
        )
        if name in forks or name.startswith("multiprocessing.")
    ]
    expect_none(found, "use scriptmode_runtime._processes.forks")


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


def test_every_package_is_built_checked_and_under_the_import_rules():
    settings = tomllib.loads((sources.ROOT / "pyproject.toml").read_text())["tool"]
    folders = {str(path.parent.relative_to(sources.ROOT)) for path in sources.ROOT.glob("*/scriptmode*/__init__.py")}
    names = {Path(folder).name for folder in folders}
    assert names == set(settings["importlinter"]["root_packages"]) == set(settings["mypy"]["packages"])
    assert folders <= set(settings["hatch"]["build"]["targets"]["wheel"]["packages"])


def test_the_command_line_prints_in_one_module():
    found = [
        source.path
        for source in sources.read(sources.ROOT, "sdk/scriptmode_cli")
        if "click.echo(" in source.text and not is_in(source.path, PRINTERS)
    ]
    expect_none(found, "print by output.echo, which filters what a terminal would obey")


#: What must not be imported before it is needed.
PROGRAM = """
import sys

def check(what):
    heavy = {"boto3", "botocore", "tensorflow", "numpy", "click"} & set(sys.modules)
    assert not heavy, f"{what} imports {heavy}"

import scriptmode
check("import scriptmode")
from scriptmode._core.spec.hosts import instance_kind
assert instance_kind("slurm").is_scheduled and "importlib.metadata" not in sys.modules
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


#: The engines, which alone ask for a kind of host.
ENGINES = ("sdk/scriptmode_local/_hosts/", "sdk/scriptmode_slurm/", "sdk/scriptmode/_core/spec/hosts.py")


def test_engines_alone_ask_for_the_kind_of_hosts():
    found = [
        f"{source.path}:{node.lineno}: {node.attr}"
        for source in sources.product()
        if not source.path.startswith(ENGINES)
        for node in source.nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "HostKind"
    ]
    expect_none(found, "ask for a fact of `HostKind`, or add one to it")
