"""Which package may import which: the arrows of the architecture, with lazy imports and those for type checkers."""

from tests.house import imports, sources
from tests.house.offenders import expect_none

#: What every package of the SDK may use.
COMMON = ("errors", "machine", "text", "spec.job_failure")
#: What each package of the SDK may import besides itself and `COMMON`. The entry with the longest matching name counts, so
#: that "platforms.base" is not "platforms". "*" is everything but the command line.
SDK = {
    **dict.fromkeys(COMMON, COMMON),
    "spec": (),
    "source": ("spec",),
    "request": ("spec",),
    "aws": ("spec",),
    "data": ("aws", "spec"),
    "containers": ("aws",),
    "platforms.base": ("spec",),
    "platforms": ("data", "platforms.base", "request", "spec"),
    "platforms.registry": (
        "platforms", "platforms.base", "platforms.local", "platforms.local.tuning", "platforms.sagemaker",
        "platforms.slurm.slurm_platform", "spec",
    ),
    "platforms.sagemaker": ("aws", "platforms", "platforms.base", "request", "spec"),
    "platforms.local": (
        "aws", "containers", "data", "platforms", "platforms.base", "platforms.local.agent", "platforms.local.hosts",
        "platforms.local.inputs", "platforms.local.outputs", "platforms.local.store", "platforms.local.system",
        "request", "spec",
    ),
    "platforms.local.system": ("data", "spec"),
    "platforms.local.store": ("data", "platforms", "platforms.base", "platforms.local.system", "request", "spec"),
    "platforms.local.inputs": (
        "data", "platforms", "platforms.base", "platforms.local.store", "platforms.local.system", "spec",
    ),
    "platforms.local.outputs": (
        "aws", "data", "platforms", "platforms.base", "platforms.local.store", "platforms.local.system", "spec",
    ),
    "platforms.local.hosts": (
        "aws", "containers", "data", "platforms", "platforms.base", "platforms.local.store", "platforms.local.system",
        "platforms.slurm", "spec",
    ),
    "platforms.local.agent": (
        "data", "platforms", "platforms.base", "platforms.local.hosts", "platforms.local.inputs",
        "platforms.local.outputs", "platforms.local.store", "platforms.local.system", "spec",
    ),
    "platforms.local.tuning": (
        "data", "platforms.base", "platforms.local", "platforms.local.hosts", "platforms.local.store",
        "platforms.local.system", "platforms.slurm.slurm_platform", "request", "spec",
    ),
    "platforms.slurm": (
        "data", "platforms", "platforms.base", "platforms.local", "platforms.local.hosts", "platforms.local.store",
        "platforms.local.system", "request", "spec",
    ),
    "platforms.slurm.slurm_platform": ("platforms.local", "platforms.slurm", "spec"),
    "engines": ("platforms.local.hosts", "spec"),
    "results": ("aws", "platforms.base", "request", "spec"),
    "planning": ("aws", "platforms", "platforms.base", "platforms.registry", "request", "source", "spec"),
    "display": ("planning", "platforms.base", "request", "results", "source", "spec"),
    "sagemaker_session": ("aws", "display", "platforms.base", "platforms.registry", "results", "spec"),
    "job": (
        "aws", "display", "platforms.base", "platforms.registry", "request", "results", "sagemaker_session", "spec",
    ),
    "latest_job": ("job", "request", "results"),
    "estimator": (
        "display", "job", "latest_job", "planning", "platforms.base", "platforms.registry", "request", "results",
        "sagemaker_session", "source", "spec",
    ),
    "tuning": (
        "aws", "display", "estimator", "job", "planning", "platforms", "platforms.base", "platforms.registry", "request",
        "results", "sagemaker_session", "spec",
    ),
    "doctor": ("aws", "containers", "data", "platforms.local.hosts", "platforms.local.store",
               "platforms.local.system", "platforms.slurm"),
    "serve": (
        "aws", "data", "platforms.base", "platforms.local", "platforms.local.store", "platforms.local.system",
        "platforms.local.tuning", "platforms.slurm.slurm_platform", "request", "spec",
    ),
    "testing": ("aws", "estimator", "job", "platforms.local", "platforms.registry", "request", "results", "spec"),
    "v2": ("__init__", "aws", "spec"),  # its adapters use the public names, and look images up
    "__init__": ("*",),
    "__main__": ("cli",),
    "cli": ("*",),  # its names are those of COMMAND_LINE_USES in test_layers.py
}  # fmt: skip
#: The same for the runtime: values and their types first, then what acts on files, processes and hosts, then the launcher.
VALUES = ("contract", "errors", "failure", "plan", "cluster", "settings", "variables")
RUNTIME = {
    **dict.fromkeys(VALUES, VALUES),
    "variables": (*VALUES, "environment"),
    "files": ("contract", "errors"),
    "processes": ("cluster", "contract", "errors", "failure", "peers", "plan"),
    "host": ("tensorflow",),
    "environment": (*VALUES, "host", "requirements"),
    "peers": (*VALUES, "processes"),
    "strategies": (*VALUES, "environment", "host", "mpi"),
    "mpi": (*VALUES, "environment", "host", "peers", "processes"),
    "requirements": ("contract", "files", "processes"),
    "user_code": (*VALUES, "environment", "files", "requirements"),
    "report": (*VALUES, "environment", "files", "mpi", "strategies"),
    "supervisor": (*VALUES, "mpi", "peers", "processes"),
    "tensorflow": ("contract", "processes"),
    "rank": (*VALUES, "environment", "mpi", "processes", "report", "strategies", "user_code"),
    "script_process": (*VALUES, "environment", "report", "strategies", "user_code"),
    "sagemaker_training": ("processes",),
    "traceable": (),
    "fallback": ("tensorflow",),
    "preview": ("*",),
    "__main__": ("*",),
    "__init__": (),
}
#: The thin core: what a request for Amazon SageMaker and a job's verbs need. Everything else it imports on first use.
THIN = (
    "__init__", *COMMON, "spec", "source", "request", "aws", "platforms.base", "platforms.registry",
    "platforms.sagemaker", "estimator", "job", "latest_job", "display.log_lines", "results.activity",
    "results.job_results", "results.log_filter", "results.outcome",
)  # fmt: skip
#: Modules of these packages that do not belong to it: older SDKs' names, tuning jobs, transfers of `Session`, the registry of images.
NOT_THIN = (
    "spec.older_names", "spec.tuning_configurations", "spec.tuning_job", "spec.tuning_description", "spec.parameter_ranges",
    "request.tuning", "platforms.sagemaker.sagemaker_tuning", "aws.session_objects", "aws.local_bucket",
    "aws.s3_transfers", "aws.ecr",
)  # fmt: skip
EVERY_TIME = (imports.AT_ONCE, imports.LAZY, imports.TYPES)


def entry(module, table):
    """The table's entry for a module: the longest name that it is, or lies in."""
    name = module.partition(".")[2] or "__init__"
    return max((key for key in table if f"{name}.".startswith(f"{key}.")), key=len, default=None)


def is_thin(module):
    """Return whether a module of the SDK belongs to the thin core."""
    name = module.partition(".")[2] or "__init__"
    return name == "platforms" or (entry(module, THIN) is not None and entry(module, NOT_THIN) is None)


def arrows(prefix, when=EVERY_TIME):
    """Each import within one half, with the lines to show."""
    files = [source for source in sources.product() if source.path.startswith(prefix)]
    for begin, ends in imports.graph(files, when=when).items():
        for end in sorted(ends):
            yield begin, end


def forbidden(prefix, table):
    for begin, end in arrows(prefix):
        one, other = entry(begin, table), entry(end, table)
        allowed = (*table.get(one, ()), *(COMMON if table is SDK else ()), one)
        if one is None or other is None:
            yield f"{begin} imports {end}: name its package in the table"
        elif other not in allowed and ("*" not in allowed or other == "cli"):
            yield f"{begin} imports {end}: {one} may not know {other}"


def test_packages_of_the_sdk_import_what_lies_below_them():
    expect_none(forbidden(sources.SDK, SDK), "move the value down, or hand it over as an argument")


def test_the_thin_core_imports_everything_else_on_first_use():
    outside = [
        f"{begin} imports {end}"
        for begin, end in arrows(sources.SDK, when=(imports.AT_ONCE,))
        if is_thin(begin) and not is_thin(end)
    ]
    expect_none(outside, "import it in the function that needs it, or hand its value over")


def test_packages_of_the_runtime_import_what_lies_below_them():
    expect_none(forbidden(sources.RUNTIME, RUNTIME), "move the value down, or hand it over as an argument")


def test_every_entry_of_a_table_is_a_package_or_module():
    modules = {imports.module_name(source.path) for source in sources.product()}
    expected = {f"scriptmode.{name}" for name in SDK} | {f"scriptmode_runtime.{name}" for name in RUNTIME}
    unknown = {name for name in expected if name not in modules and not name.endswith("__init__")}
    expect_none(
        unknown - {"scriptmode_runtime.traceable", "scriptmode_runtime.fallback"},
        "a package was moved or removed: correct the table",
    )


def test_no_modules_import_one_another_in_a_circle():
    arrows_of = imports.graph(sources.product(), when=EVERY_TIME)
    expect_none((" -> ".join(circle) for circle in imports.circles(arrows_of)), "move what they share below them")
