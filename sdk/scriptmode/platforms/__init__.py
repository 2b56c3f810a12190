"""Training platforms: Amazon SageMaker and this machine behind one protocol.

- `base`: the protocol, and the values that it takes and returns
- `registry`: chooses a platform by instance type, by name, or by which one has a job
- `requested_hosts`, `opt_ml`, `planned_containers`: what both platforms compute from a request
- `sagemaker`, `local`: the platforms

The estimator, the job handle and the command line get a platform from `registry` and use it by the protocol alone.
"""

from typing import Any

#: Names that the reference documented here, and the modules that define them now.
_MOVED = {
    **dict.fromkeys(
        ("Platform", "ChannelProgress", "JobFilter", "LogEvent", "Metric", "PlannedHost"), f"{__name__}.base"
    ),
    "get_execution_role": "scriptmode.aws.iam_role",
}


def __getattr__(name: str) -> Any:
    """Return a name from the module that defines it now, with a ``DeprecationWarning``."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings
    from importlib import import_module

    module = _MOVED[name]
    warnings.warn(f"{__name__}.{name} was moved: import it from {module}", DeprecationWarning, stacklevel=2)
    return getattr(import_module(module), name)
