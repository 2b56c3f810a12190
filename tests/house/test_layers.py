"""Which package may know which, and where boto3, processes and printing live.

Paths in tables are relative to the checkout; one that ends in a slash stands for everything below it.
"""

import importlib.util
import sys
import sysconfig
from functools import cache
from pathlib import Path

from tests.house import imports, sources
from tests.house.effects import used_of_os
from tests.house.offenders import expect_none

import scriptmode
import scriptmode.containers
import scriptmode.doctor

EVERYWHERE = ("sdk/scriptmode/",)
#: What the SDK uses of the runtime, and where.
RUNTIME_NAMES = {
    "scriptmode_runtime.contract": EVERYWHERE,
    # One way to open what others wrote, beneath a directory descriptor.
    "scriptmode_runtime.files.beneath": EVERYWHERE,
    # A request that launchers would refuse is refused before there is a job.
    "scriptmode_runtime.settings": ("sdk/scriptmode/request/render.py",),
    # A model is unpacked by the same rules as a source, and packed no deeper than it can be unpacked.
    "scriptmode_runtime.files.archive.DEEPEST": ("sdk/scriptmode/platforms/local/outputs/artifacts.py",),
    "scriptmode_runtime.files.archive.MODEL_LIMITS": ("sdk/scriptmode/results/artifacts.py",),
    "scriptmode_runtime.files.archive.unpack": ("sdk/scriptmode/results/artifacts.py",),
    "scriptmode_runtime.errors.UserCodeError": ("sdk/scriptmode/results/artifacts.py",),
    # A plan is the runtime's own, of the same interpreter without a process.
    "scriptmode_runtime.preview.preview": ("sdk/scriptmode/planning/runtime_query.py",),
    # One way to find the error in a traceback.
    "scriptmode_runtime.failure.exception_type": ("sdk/scriptmode/failure.py",),
    "scriptmode_runtime.failure.last_error": ("sdk/scriptmode/failure.py",),
    # The log of an image without the runtime is read as the runtime reads its programs' output.
    "scriptmode_runtime.failure": ("sdk/scriptmode/platforms/foreign_failure.py",),
    "scriptmode_runtime.report.hints.hint": ("sdk/scriptmode/platforms/foreign_failure.py",),
    "scriptmode_runtime.plan.ProcessSpec": ("sdk/scriptmode/platforms/foreign_failure.py",),
    # One writer of logs on full disks.
    "scriptmode_runtime.processes.streams.Sink": (
        "sdk/scriptmode/platforms/local/hosts/container_host.py",
        "sdk/scriptmode/platforms/local/agent/log_stream.py",
    ),
    # One way to identify, find and end processes of this machine.
    "scriptmode_runtime.processes.process_tree": EVERYWHERE,
    "scriptmode_runtime.processes.system": ("sdk/scriptmode/platforms/local/",),
    # A rank of another host enters its namespace as the host itself does.
    "scriptmode_runtime.processes.namespace": ("sdk/scriptmode/platforms/local/hosts/process_host.py",),
    # Environments that launchers installed are removed by the launcher's own rule.
    "scriptmode_runtime.requirements.environment_cache": ("sdk/scriptmode/platforms/local/",),
    # Files that a killed launcher left are found by the launcher's own rule.
    "scriptmode_runtime.files.scratch": (
        "sdk/scriptmode/platforms/local/hosts/process_fleet.py",
        "sdk/scriptmode/platforms/slurm/fleet.py",  # a host's agent has a directory of the same kind on its node
    ),
    "scriptmode_runtime.errors.ClusterError": ("sdk/scriptmode/platforms/slurm/fleet.py",),
}
#: Distributions, and the modules that import them.
DISTRIBUTIONS = {
    "tensorflow": ("entrypoints/scriptmode_runtime/tensorflow/", "entrypoints/scriptmode_runtime/fallback/"),
    "horovod": ("entrypoints/scriptmode_runtime/tensorflow/horovod.py",),  # its stand-in where it meets Keras
    "boto3": (
        "sdk/scriptmode/aws/s3.py",
        "sdk/scriptmode/aws/session.py",
        "entrypoints/scriptmode_runtime/user_code.py",
    ),
    "botocore": (
        "sdk/scriptmode/aws/s3.py",
        "sdk/scriptmode/aws/s3_errors.py",
        "sdk/scriptmode/aws/session.py",
        "sdk/scriptmode/aws/error_translation.py",
        "sdk/scriptmode/testing/",  # the fake raises its errors
        "sdk/scriptmode/serve/signatures.py",
        "entrypoints/scriptmode_runtime/user_code.py",
    ),
    "obstore": ("sdk/scriptmode/aws/s3_reader.py",),
    "optuna": ("sdk/scriptmode/platforms/local/tuning/search.py",),
    "waitress": ("sdk/scriptmode/serve/http_server.py",),
    "moto": ("sdk/scriptmode/serve/other_services.py",),
}
#: Modules that start processes.
STARTERS = (
    "entrypoints/scriptmode_runtime/processes/children.py",
    "entrypoints/scriptmode_runtime/requirements/overlay.py",
    "entrypoints/scriptmode_runtime/rank.py",
    "entrypoints/scriptmode_runtime/sagemaker_training.py",  # replaces itself by the launcher
    "entrypoints/scriptmode_runtime/mpi/ssh_keys.py",
    "entrypoints/scriptmode_runtime/tensorflow/binary.py",  # runs the compiler
    "sdk/scriptmode/data/mounts.py",  # runs the setuid program that mounts for users who may not
    "sdk/scriptmode/programs.py",  # git, and what the doctor runs: they may hang
    "sdk/scriptmode/planning/runtime_query.py",  # asks the runtime what hosts would run
    "sdk/scriptmode/platforms/local/agent/agent_process.py",  # puts itself into the background
    "sdk/scriptmode/platforms/local/hosts/",
    "sdk/scriptmode/platforms/local/system/",
    "sdk/scriptmode/platforms/local/tuning/tuning_agent.py",  # puts itself into the background
    "sdk/scriptmode/platforms/slurm/fleet.py",
    "sdk/scriptmode/results/tensorboard.py",  # a server beside the job
    "sdk/scriptmode/serve/object_store.py",  # an S3 server beside the server
    "sdk/scriptmode/testing/local_server.py",  # a server for tests
)
#: What the command line uses beside the names that `scriptmode`, its containers and its doctor export.
COMMAND_LINE_USES = {
    "scriptmode.messages.did_you_mean",
    "scriptmode.messages.did_you_mean_path",
    # One decision whether an output has colours, and one table of them.
    "scriptmode.colours.RUNNING",
    "scriptmode.colours.STATUS_COLOURS",
    "scriptmode.colours.colours_enabled",
    "scriptmode.messages.suggest_similar",
    "scriptmode.messages.format_bytes",
    "scriptmode.messages.pluralize",
    "scriptmode.messages.format_duration",
    "scriptmode.messages.validate_keys",
    "scriptmode.terminal_text.sanitize",  # one filter of what a terminal would obey
    "scriptmode.terminal_text.wrap_words",
    "scriptmode.terminal_text.escape_unprintable",
    "scriptmode.display.job_list.JobList",  # what `TrainingJob.list` returns
    "scriptmode.progress_line.ProgressLine",  # one line that is replaced while something takes long
    "scriptmode.bounded_yaml",  # one set of bounds for YAML
    "scriptmode.messages.still_running",
    "scriptmode.failure.summarize_error",
    "scriptmode.errors.with_suffix",  # the option that stands for the argument of an error
    "scriptmode.display.choose_view",  # the views, validated before a job is started
    # The resources of hosts as the live view shows them.
    "scriptmode.display.usage_table.usage_lines",
    "scriptmode.display.usage_table.watch_lines",
    "scriptmode.display.formatting.format_silence",
    "scriptmode.display.formatting.format_usage",
    # The types of the arguments that a job file may have.
    "scriptmode.spec.estimator_arguments.EstimatorArguments",
    "scriptmode.spec.estimator_arguments.INSTEAD_IN_TEXT",
    # A description as a value, which `TrainingJob.describe` returns as the service's JSON.
    "scriptmode.request.parse.parse_description",
    "scriptmode.spec.inputs.Channel",
    "scriptmode.spec.inputs.INPUT_MODES",
    "scriptmode.spec.job_description.JobDescription",
    "scriptmode.spec.job_description.JobStatus",
    "scriptmode.spec.job_request.JobRequest",
    "scriptmode.platforms.registry.delete_local_job",  # a job that cannot be read can still be deleted
    "scriptmode.platforms.registry.prune_local_jobs",
    "scriptmode.platforms.registry.execute_on_local_host",
    "scriptmode.platforms.registry.queue_position",
    "scriptmode.platforms.local.LocalPlatform",  # public, as a submodule
    "scriptmode.spec.metric_definitions.PRESETS",
    "scriptmode.results.job_files.AREAS",
    "scriptmode.source.archive.file_versions",  # what --watch looks at
    "scriptmode.results.comparison.Comparison",
    "scriptmode.results.job_files.copy_job_files",
    "scriptmode.platforms.local.pruning.PruneReport",
    # A server is a program, not a library.
    "scriptmode.serve.access_keys.AccessKeys",
    "scriptmode.serve.configuration.parse_configuration",
    "scriptmode.serve.request_mapping.HOSTS",
    "scriptmode.serve.request_mapping.HostTable",
    "scriptmode.serve.request_mapping.require_hosts",
    "scriptmode.serve.server.DEFAULT_HOST",
    "scriptmode.serve.server.DEFAULT_PORT",
    "scriptmode.serve.server.Server",
    "scriptmode.serve.server.Settings",
    "scriptmode.serve.server.parse_address",
    "scriptmode.serve.tls.load_certificate",
}
#: Commands print by output.echo, which filters what a terminal would obey; click's own help and completion do not.
PRINTERS = (
    "sdk/scriptmode/cli/commands/completion.py",
    "sdk/scriptmode/cli/group.py",
    "sdk/scriptmode/cli/output.py",
)
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
    unknown |= {name for name in (*RUNTIME_NAMES, *COMMAND_LINE_USES) if not exists(name)}
    expect_none(unknown, "a module or name was moved or removed: correct the table")


def exists(dotted):
    """Whether this is a module, or a name that a module's text has."""
    files = {imports.module_name(source.path): source for source in sources.product()}
    module, _, name = dotted.rpartition(".")
    return dotted in files or (module in files and name in files[module].text)


def test_imports_name_the_whole_module():
    expect_none(offending(lambda _, item: item.module.startswith(".")), "write the absolute name")


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


def test_the_command_line_uses_public_names():
    public = {f"{package.__name__}.{name}" for package in PUBLIC for name in package.__all__}

    def check(path, item):
        is_ours = item.module.partition(".")[0] == "scriptmode" and path.startswith("sdk/scriptmode/cli/")
        known = item.dotted in public | COMMAND_LINE_USES or item.dotted.startswith("scriptmode.cli.")
        return is_ours and not known

    expect_none(offending(check), "users' programs need it too: make it public, or add it to COMMAND_LINE_USES")


PUBLIC = (scriptmode, scriptmode.containers, scriptmode.doctor)


def test_the_command_line_prints_in_one_module():
    found = [
        source.path
        for source in sources.read(sources.ROOT, "sdk/scriptmode/cli")
        if "click.echo(" in source.text and not is_in(source.path, PRINTERS)
    ]
    expect_none(found, "print by output.echo, which filters what a terminal would obey")
