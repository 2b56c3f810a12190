"""Which package may import which: the arrows of the architecture, with lazy imports and those for type checkers."""

from tests.house import imports, sources
from tests.house.offenders import expect_none

#: What every package of the SDK may use.
COMMON = ("errors", "core.machine", "core.text", "core.spec.job_failure")
#: What each package of the SDK may import besides itself and `COMMON`. The entry with the longest matching name counts, so
#: that "core.platforms.base" is not "platforms". "*" is everything but the command line.
SDK = {
    **dict.fromkeys(COMMON, COMMON),
    "core.spec": (),
    "core.source": ("core.spec",),
    "core.request": ("core.spec",),
    "core.aws": ("core.spec",),
    "data": ("core.aws", "core.spec"),
    "containers": ("core.aws",),
    "core": (),
    "aws": ("core.aws",),
    "core.platforms.base": ("core.spec",),
    "core.handle": ("core.aws", "core.platforms.base", "core.request", "core.source", "core.spec", "results"),
    "platforms": ("data", "core.platforms.base", "core.request", "core.spec"),
    "core.platforms.registry": (
        "platforms", "core.platforms.base", "platforms.local", "platforms.local.tuning", "core.platforms.sagemaker",
        "platforms.slurm.slurm_platform", "core.spec",
    ),
    "core.platforms.sagemaker": ("core.aws", "platforms", "core.platforms.base", "core.request", "core.spec"),
    "platforms.local": (
        "core.aws", "containers", "data", "platforms", "core.platforms.base", "platforms.local.agent", "platforms.local.hosts",
        "platforms.local.inputs", "platforms.local.outputs", "platforms.local.store", "platforms.local.system",
        "core.request", "core.spec",
    ),
    "platforms.local.system": ("data", "core.spec"),
    "platforms.local.store": ("data", "platforms", "core.platforms.base", "platforms.local.system", "core.request", "core.spec"),
    "platforms.local.inputs": (
        "core.aws", "data", "platforms", "core.platforms.base", "platforms.local.store", "platforms.local.system", "core.spec",
    ),
    "platforms.local.outputs": (
        "core.aws", "data", "platforms", "core.platforms.base", "platforms.local.store", "platforms.local.system", "core.spec",
    ),
    "platforms.local.hosts": (
        "core.aws", "containers", "data", "platforms", "core.platforms.base", "platforms.local.store", "platforms.local.system",
        "platforms.slurm", "core.spec",
    ),
    "platforms.local.agent": (
        "data", "platforms", "core.platforms.base", "platforms.local.hosts", "platforms.local.inputs",
        "platforms.local.outputs", "platforms.local.store", "platforms.local.system", "core.spec",
    ),
    "platforms.local.tuning": (
        "data", "core.platforms.base", "platforms.local", "platforms.local.hosts", "platforms.local.store",
        "platforms.local.system", "platforms.slurm.slurm_platform", "core.request", "core.spec",
    ),
    "platforms.slurm": (
        "data", "platforms", "core.platforms.base", "platforms.local", "platforms.local.hosts", "platforms.local.store",
        "platforms.local.system", "core.request", "core.spec",
    ),
    "platforms.slurm.slurm_platform": ("platforms.local", "platforms.slurm", "core.spec"),
    # What engines of other packages may use.
    "engines": (
        "platforms", "platforms.local", "platforms.local.hosts", "platforms.local.store", "platforms.local.system",
        "core.spec", "core.text", "data",
    ),
    "results": ("core.aws", "core.platforms.base", "core.request", "core.spec"),
    "planning": ("core.aws", "platforms", "core.platforms.base", "core.platforms.registry", "core.request", "core.source", "core.spec"),
    "display": ("core.handle", "planning", "core.platforms.base", "core.request", "results", "core.source", "core.spec"),
    "sagemaker_session": ("core.handle", "core.aws", "display", "core.platforms.base", "core.platforms.registry", "results", "core.spec"),
    "job": (
        "core.handle", "core.aws", "display", "core.platforms.base", "core.platforms.registry", "core.request", "results", "sagemaker_session", "core.spec",
    ),
    "rehearsal": (
        "core.handle", "data", "platforms", "platforms.local", "platforms.local.store", "job", "core.platforms.base", "core.spec",
    ),
    "estimator": (
        "core.handle", "display", "job", "planning", "rehearsal", "core.platforms.base", "core.platforms.registry", "core.request", "results",
        "sagemaker_session", "core.source", "core.spec",
    ),
    "tuning": (
        "core.handle", "core.aws", "display", "estimator", "job", "planning", "platforms", "core.platforms.base", "core.platforms.registry", "core.request",
        "results", "sagemaker_session", "core.spec",
    ),
    "doctor": ("core.aws", "core.spec", "containers", "data", "platforms.local.hosts", "platforms.local.store",
               "platforms.local.system", "platforms.slurm"),
    "serve": (
        "core.aws", "data", "core.platforms.base", "platforms.local", "platforms.local.system", "platforms.local.tuning",
        "platforms.slurm.slurm_platform", "core.request", "core.spec",
    ),
    "testing": (
        "core.aws", "estimator", "job", "platforms.local", "core.platforms.registry", "core.request", "results", "core.spec",
        "serve",  # the operations on logs and metrics, which the fake of the service has, too
    ),
    "v2": ("__init__", "core.aws", "core.spec"),  # its adapters use the public names, and look images up
    "__init__": ("*",),
    "__main__": ("cli",),
    "cli": ("*",),
}  # fmt: skip
#: The same for the runtime: values and their types first, then what acts on files, processes and hosts, then the launcher.
VALUES = ("contract", "errors", "failure", "plan", "cluster", "settings", "terminal_line", "variables")
RUNTIME = {
    **dict.fromkeys(VALUES, VALUES),
    "variables": (*VALUES, "environment"),
    "files": ("contract", "errors"),
    "processes": ("cluster", "contract", "errors", "failure", "peers", "plan"),
    "host": ("tensorflow",),
    "environment": (*VALUES, "host", "requirements"),
    "host_variables": (*VALUES, "environment", "strategies"),
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
THIN = ("__init__", "errors", "core", "estimator", "job")
#: Modules of `core` that do not belong to it: older SDKs' names, tuning jobs, transfers of `Session`, registries.
NOT_THIN = (
    "core.spec.older_names", "core.spec.tuning_configurations", "core.spec.tuning_job", "core.spec.tuning_description",
    "core.spec.parameter_ranges", "core.request.tuning", "core.platforms.sagemaker.sagemaker_tuning",
    "core.aws.local_bucket", "core.aws.s3_transfers", "core.aws.ecr",
)  # fmt: skip
EVERY_TIME = (imports.AT_ONCE, imports.LAZY, imports.TYPES)


def entry(module, table):
    """The table's entry for a module: the longest name that it is, or lies in."""
    name = module.partition(".")[2] or "__init__"
    return max((key for key in table if f"{name}.".startswith(f"{key}.")), key=len, default=None)


def is_thin(module):
    """Return whether a module of the SDK belongs to the thin core."""
    return entry(module, THIN) is not None and entry(module, NOT_THIN) is None


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


def test_engines_that_are_packages_import_nothing_but_the_published_protocol():
    """What another project's engine cannot use, ours does not use either."""
    public = ("scriptmode", "scriptmode.engines", "scriptmode.errors", "scriptmode_runtime.contract")
    offenders = [
        f"{source.path}:{item.line}: {item.dotted}"
        for folder in sources.ENGINES
        for source in sources.read(sources.ROOT, folder)
        for item in imports.imported(source)
        if item.module.startswith("scriptmode") and item.module not in public
        and not item.module.startswith(folder.rpartition("/")[2])
        and f"{item.module}.{item.dotted.rpartition('.')[2]}" not in public
    ]  # fmt: skip
    expect_none(offenders, "export the name from scriptmode.engines")
