"""Which room may know what."""

import ast
import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import scriptmode
import scriptmode.containers
import scriptmode.doctor

ROOT = Path(__file__).parents[2]
SDK = ROOT / "sdk" / "scriptmode"
RUNTIME = ROOT / "entrypoints" / "scriptmode_runtime"
LOCAL = SDK / "platforms" / "local"
SOURCES = sorted([*SDK.rglob("*.py"), *RUNTIME.rglob("*.py")])


def label(path):
    return path.relative_to(ROOT).as_posix()


def imported(path):
    """Every module a file imports anywhere in it, with the names taken from it."""
    return imported_by(ast.parse(path.read_text()))


def imported_by(tree):
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "say the whole module's name"
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


def used_of_os(tree):
    """What of `os` is named, however it was imported; "*" where it goes by another name."""
    used = {module.split(".")[1] for module in imported_by(tree) if module.startswith("os.")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            used.add(node.attr)
        if isinstance(node, ast.Import) and any(alias.name == "os" and alias.asname for alias in node.names):
            used.add("*")
    return used


def roots(path):
    return {module.partition(".")[0] for module in imported(path)}


@pytest.mark.parametrize("path", sorted(RUNTIME.rglob("*.py")), ids=label)
def test_the_runtime_knows_only_the_standard_library(path):
    allowed = {"scriptmode_runtime"}
    if path.parent.name == "tensorflow":
        allowed.add("tensorflow")
    if path == RUNTIME / "tensorflow" / "horovod.py":
        allowed.add("horovod")  # its stand-in where it meets Keras
    if path.name == "user_code.py":
        allowed |= {"boto3", "botocore"}
    assert {root for root in roots(path) - allowed if not is_standard(root)} == set()


def is_standard(name):
    """Python 3.9 has no sys.stdlib_module_names: ask where a module lies."""
    if name in sys.builtin_module_names:
        return True
    found = importlib.util.find_spec(name)
    folder = Path(sysconfig.get_path("stdlib"))
    origin = (found and found.origin) or ""
    return origin == "frozen" or (folder in Path(origin).parents and "site-packages" not in origin)


@pytest.mark.parametrize("path", sorted(SDK.rglob("*.py")), ids=label)
def test_the_two_halves_meet_in_the_contract_alone(path):
    met = {module for module in imported(path) if module.partition(".")[0] == "scriptmode_runtime"}
    # One unpacker that lets nothing out of its folder, not two; one way to open what others wrote.
    met = {module for module in met if not f"{module}.".startswith("scriptmode_runtime.files.beneath.")}
    if path == SDK / "request/render.py":
        # What launchers would refuse is refused before there is a job.
        met -= {"scriptmode_runtime.settings"}
    if path == LOCAL / "outputs" / "artifacts.py":
        # No deeper than what it packs is unpacked.
        met -= {"scriptmode_runtime.files.archive.DEEPEST"}
    if path == SDK / "results/artifacts.py":
        met -= {f"scriptmode_runtime.files.archive.{name}" for name in ("MODEL_LIMITS", "place")}
        met -= {"scriptmode_runtime.errors.UserCodeError"}
    if path in (LOCAL / "hosts" / "container_host.py", LOCAL / "agent" / "log_stream.py"):
        # One writer of logs on full disks, not two.
        met -= {"scriptmode_runtime.processes.streams.Sink"}
    if path == LOCAL / "hosts" / "process_fleet.py":
        # What launchers leave is removed by those who made it, and found by the same rule.
        met -= {"scriptmode_runtime.files.scratch"}
    assert all(module.startswith("scriptmode_runtime.contract") for module in met), met


@pytest.mark.parametrize("path", sorted(SDK.rglob("*.py")), ids=label)
def test_boto3_lives_in_the_sagemaker_platform_and_in_s3(path):
    room = path.relative_to(SDK).as_posix()
    if room not in ("platforms/sagemaker/connection.py", "aws/s3.py"):
        assert "boto3" not in roots(path)
    # Its errors are translated in one more place; the fake raises them.
    if room not in (
        "platforms/sagemaker/connection.py",
        "platforms/sagemaker/error_translation.py",
        "aws/s3.py",
        "aws/s3_errors.py",
    ):
        assert "botocore" not in roots(path) or room.startswith("testing/")


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_processes_are_started_in_few_places(path):
    starters = {
        RUNTIME / "processes" / "children.py",
        RUNTIME / "mpi" / "rank.py",
        RUNTIME / "overlay.py",
        RUNTIME / "mpi" / "ssh_keys.py",
    }
    starters.add(RUNTIME / "tensorflow" / "binary.py")  # runs the compiler
    starters.add(RUNTIME / "sagemaker_training.py")  # gives its process to the launcher
    # The agent puts itself into the background.
    starters |= {*(LOCAL / "hosts").glob("*.py"), *(LOCAL / "system").glob("*.py"), LOCAL / "agent" / "job_agent.py"}
    starters.add(SDK / "source/git.py")
    starters.add(SDK / "data" / "mounts.py")  # runs the setuid program that mounts for users who may not
    starters.add(SDK / "planning" / "runtime_query.py")  # the runtime, what hosts would run: it knows, the SDK does not
    starters.add(SDK / "containers" / "package_indexes.py")  # asks apt where packages are
    starters.add(SDK / "results/tensorboard.py")  # a server for whoever looks at a job, and no part of it
    starters.add(SDK / "doctor" / "program_runner.py")  # imports what may crash, runs what may hang
    if path in starters:
        return
    assert "subprocess" not in roots(path)
    used = used_of_os(ast.parse(path.read_text()))
    assert not {name for name in used if name.startswith(("fork", "exec", "spawn", "posix_spawn", "*"))}


@pytest.mark.parametrize("path", sorted((SDK / "cli").rglob("*.py")), ids=label)
def test_the_command_line_uses_public_names(path):
    for module in imported(path):
        if module.startswith("scriptmode."):
            is_public = module.count(".") == 1 and module.partition(".")[2] in scriptmode.__all__
            # Public too, but not loaded by `import scriptmode`.
            is_public |= module in {f"scriptmode.containers.{name}" for name in scriptmode.containers.__all__}
            is_public |= module in {f"scriptmode.doctor.{name}" for name in scriptmode.doctor.__all__}
            # One wording, and one measure, of what was probably meant; one wording of times, and of jobs that go on.
            is_public |= module in (
                "scriptmode.errors.suggestion",
                "scriptmode.nearby.near",
                "scriptmode.display.formatting.duration",
            )
            # One filter of what a terminal would obey.
            is_public |= module == "scriptmode.display.terminal_text.safe"
            # One set of bounds for what is read from YAML.
            is_public |= module == "scriptmode.bounded_yaml"
            # And the views that there are, looked at before a job is started that one of them shall show.
            is_public |= module in ("scriptmode.aws.retry.goes_on", "scriptmode.display.kind")
            # A job that cannot be read cannot be attached to: it is deleted by its name.
            is_public |= module == "scriptmode.platforms.registry.delete_here"
            assert is_public or module.startswith("scriptmode.cli."), module


@pytest.mark.parametrize("path", sorted((SDK / "cli").rglob("*.py")), ids=label)
def test_the_command_line_prints_in_one_place(path):
    # Its own help and its completion script are no texts of others'.
    if path.name not in ("output.py", "group.py", "completion.py"):
        assert "click.echo(" not in path.read_text(), "output.echo filters what a terminal would obey"


PURE = [
    *(
        SDK / name
        for name in (
            "spec/training_job.py",
            "request/render.py",
            "spec/distribution.py",
            "request/parse.py",
            "spec/hyperparameters.py",
            "sizes.py",
        )
    ),
    *(RUNTIME / name for name in ("contract.py", "cluster.py", "roles.py", "plan.py", "settings.py")),
    *(
        RUNTIME / name
        for name in (
            "variables.py",
            "mpi/daemon_command.py",
            "mpi/mpirun_output.py",
            "mpi/efa.py",
            "mpi/ssh_files.py",
            "hints.py",
            "redaction.py",
        )
    ),
    *sorted((RUNTIME / "strategies").glob("*.py")),
    *(
        SDK / name
        for name in (
            "planning/job_plan.py",
            "planning/plan_text.py",
            "planning/assumptions.py",
            "platforms/planned_containers.py",
        )
    ),
    LOCAL / "hosts" / "job_variables.py",
    *(SDK / "data" / name for name in ("objects.py", "channel.py", "fuse.py")),
    *(
        SDK / "display" / f"{name}.py"
        for name in ("snapshot", "downsampled_series", "row_allocation", "formatting", "terminal_text", "status_panel")
    ),
    *(SDK / name for name in ("display/html_card.py", "display/html_charts.py", "spec/metric_definitions.py")),
    *(LOCAL / "store" / name for name in ("state.py", "shapes.py", "job_shape.py")),
    SDK / "platforms" / "requested_hosts.py",
]


def effects(source):
    tree = ast.parse(source)
    acting = {"subprocess", "socket", "time", "signal", "shutil", "tempfile", "threading", "multiprocessing", "io"}
    found = {module for module in imported_by(tree) if module.partition(".")[0] in acting}
    found |= {f"os.{name}" for name in used_of_os(tree) - {"path", "pathsep", "PathLike", "fspath"}}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "print", "input")
        ):
            found.add(node.func.id)
    return found


@pytest.mark.parametrize("path", PURE, ids=label)
def test_what_computes_values_has_no_effects(path):
    assert effects(path.read_text()) == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import subprocess", {"subprocess"}),
        ("import subprocess as s", {"subprocess"}),
        ("from subprocess import run", {"subprocess.run"}),
        ("def f():\n from time import sleep", {"time.sleep"}),
        ("import os; os.listdir()", {"os.listdir"}),
        ("from os import path, listdir", {"os.listdir"}),
        ("from os import environ as e", {"os.environ"}),
        ("from os import *", {"os.*"}),
        ("import os as o; o.listdir()", {"os.*"}),
        ("open('x')", {"open"}),
        ("import os.path, os; os.path.join()", set()),
        ("from os.path import join; from os import PathLike", set()),
        ("import timeit, osmium, socketserver", set()),
    ],
)
def test_an_effect_is_found_however_it_is_imported(source, found):
    assert effects(source) == found


WRITTEN = sorted([*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "notebooks").rglob("*.py")])


@pytest.mark.parametrize("path", WRITTEN, ids=label)
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) <= 500


@pytest.mark.parametrize("path", SOURCES, ids=label)
def test_functions_stay_small(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = node.end_lineno - node.body[0].lineno + 1
            is_constructor_of_v2 = path.name == "estimator.py" and node.name == "__init__"
            assert size <= (100 if is_constructor_of_v2 else 40), f"{node.name} has {size} lines"


@pytest.mark.parametrize(
    "statement",
    [
        "import scriptmode",
        (
            "from scriptmode import Estimator; Estimator('img', 'arn:aws:iam::123456789012:role/r', 1, 'ml.m5.large',"
            " output_path='s3://b').request('s3://b/x')"
        ),
        "from scriptmode import Estimator; Estimator(entry_point='x.py', instance_type='local_process').request('file:///x')",
    ],
    ids=["import", "a SageMaker request", "a local request"],
)
def test_neither_boto3_nor_tensorflow_is_imported_before_it_is_needed(statement, tmp_path):
    heavy = "{'boto3', 'botocore', 'tensorflow', 'numpy', 'click'}"
    code = f"import sys\n{statement}\nassert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    environment = {"PATH": "/usr/bin:/bin", "AWS_REGION": "us-east-1", "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    (tmp_path / "x.py").touch()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=tmp_path)


def test_every_public_name_is_there_once():
    assert len(scriptmode.__all__) == len(set(scriptmode.__all__))
    for name in scriptmode.__all__:
        assert hasattr(scriptmode, name)
