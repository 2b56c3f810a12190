"""What computes values has no effects, and nothing is opened or removed by a resolved path."""

from tests.house import sources
from tests.house.effects import effects, resolved
from tests.house.offenders import expect_none

#: Modules, and packages (with a slash at the end), without effects, by their folder.
PURE = {
    "entrypoints/scriptmode_runtime": "_launch/variables.py _strategies/ contract.py plan.py",
    "entrypoints/scriptmode_runtime/_values": "cluster.py secret_names.py settings.py",
    "entrypoints/scriptmode_runtime/_environment": "roles.py",
    "entrypoints/scriptmode_runtime/_mpi": "daemon_command.py mpirun_output.py",
    "entrypoints/scriptmode_runtime/_report": "hints.py redaction.py",
    "sdk/scriptmode/_core": "spec/ text/messages.py text/terminal_text.py",
    "sdk/scriptmode_local/_data": "channel_source.py fuse_protocol.py object_store.py",
    "sdk/scriptmode/_display": "collector.py formatting.py html_card.py snapshot.py status_panel.py",
    "sdk/scriptmode/planning": "_job_plan.py _plan_parts.py _plan_summary.py",
    "sdk/scriptmode_local/_opt_ml": "planned_containers.py",
    "sdk/scriptmode_local/_store": "job_record.py shapes.py state.py",
    "sdk/scriptmode_local/_tuning": "tuning_response.py",
    "sdk/scriptmode_slurm/_engine": "batch_script.py partitions.py problems.py",
    "sdk/scriptmode/_core/request": "parse.py render.py rerun.py tuning.py",
    "sdk/scriptmode/v2": "debugger.py _name_table.py",
    "sdk/scriptmode_serve/_http": "configuration.py s3_requests.py",
    "sdk/scriptmode_serve/_operations": "paging.py request_mapping.py",
}
PATHS = tuple(f"{folder}/{name}" for folder, names in PURE.items() for name in names.split())
#: The caller's own folders, or this program's own that are closed to others.
RESOLVED = {
    "sdk/scriptmode/_core/source/source_archive.py": {"resolve"},  # strictly, a dependency that the caller names
    "sdk/scriptmode_serve/_operations/allowed_paths.py": {"realpath"},  # a request must not lead out of them by a link
    "sdk/scriptmode_local/_data/mounts.py": {"realpath"},  # the job's folder as /proc/self/mountinfo spells it
    "entrypoints/scriptmode_runtime/_report/__init__.py": {"realpath"},  # the source's directory as tracebacks name it
    "entrypoints/scriptmode_runtime/_host/programs.py": {"realpath"},  # the installed mpirun's prefix
}


def test_every_path_in_a_table_exists():
    unknown = [path for path in (*PATHS, *RESOLVED) if not (sources.ROOT / path).exists()]
    expect_none(unknown, "a module was moved or removed: correct the table")


def test_what_computes_values_has_no_effects():
    found = [
        f"{source.path}: {effect}"
        for source in sources.product()
        if source.path in PATHS or source.path.startswith(tuple(path for path in PATHS if path.endswith("/")))
        for effect in effects(source)
    ]
    expect_none(found, "move the effect to the caller, or take the module out of PURE")


def test_nothing_is_resolved_or_removed_by_its_path():
    found = [
        f"{source.path}: {name}"
        for source in sources.product()
        for name in resolved(source) ^ RESOLVED.get(source.path, set())
    ]
    expect_none(
        found, "open it beneath a directory descriptor (scriptmode_runtime._files.beneath), or correct RESOLVED"
    )
