"""What a training job is: frozen values, validated when they are created. No module of this package has effects.

training_job        `TrainingJobSpec` and the values it consists of
job_request         `JobRequest`: a job as its request states it
job_description     `JobDescription`: a job as a platform describes it
hosts               instance types of this machine, groups and names of hosts
distribution        parameter servers, mirrored workers, MPI
inputs              channels and their data sources
hyperparameters     encoding and limits
metric_definitions  regular expressions that find metrics in log lines
monitoring          debugger, profiler, TensorBoard
git_source          a Git repository as a source
names               names of jobs
arguments           conversion of the estimator's arguments
whole_numbers       counts and times as callers pass them
"""

from typing import Any

#: Classes that the reference documented here; `training_job` defines them now.
_MOVED = frozenset(
    {
        "Algorithm",
        "Features",
        "InstanceGroup",
        "Limits",
        "Monitoring",
        "Network",
        "Output",
        "PretrainedModel",
        "Resources",
        "Script",
        "TrainingJobSpec",
    }
)


def __getattr__(name: str) -> Any:
    """Return a class from the module that defines it now, with a ``DeprecationWarning``."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import warnings

    from scriptmode.spec import training_job

    text = f"{__name__}.{name} was moved: import it from scriptmode, or from {training_job.__name__}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return getattr(training_job, name)
