"""`FrameworkProfile` of ``sagemaker.debugger``: what AWS's images up to TensorFlow 2.10 profile. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar


class PythonProfiler(Enum):
    """A profiler of Python code."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"


class cProfileTimer(Enum):  # noqa: N801 - the SageMaker SDK's name
    """What cProfile measures."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"


@dataclass
class _Profiling:
    """A range of steps or of time to profile; times are in seconds."""

    start_step: int | None = None
    num_steps: int | None = None
    start_unix_time: int | None = None
    duration: float | None = None
    profile_default_steps: bool = False
    #: The steps of a profiling without a range: the first, and their number.
    default_steps: ClassVar[tuple[int, int]] = (0, 1)

    def __post_init__(self) -> None:
        if (self.start_step, self.num_steps) != (None, None) and self._range_of_time():
            raise ValueError(f"{type(self).__name__} has a range of steps and one of time; give one of them")

    def _range_of_time(self) -> dict[str, Any]:
        found = {"StartTimeInSecSinceEpoch": self.start_unix_time, "Duration": self.duration}
        return {name: value for name, value in found.items() if value is not None}

    def fields(self) -> dict[str, Any]:
        """Return the fields of the profiling."""
        steps = (self.start_step or 0, self.num_steps or 1)
        if self.profile_default_steps or (self.start_step is None and self.num_steps is None):
            steps = self.default_steps
        return self._range_of_time() or {"StartStep": steps[0], "NumSteps": steps[1]}

    def to_json_string(self) -> str:
        """Return the fields as AWS's images parse them: with a comma after the last one."""
        texts = (
            f'"{name}": ' + (f'"{value}"' if isinstance(value, str) else f"{value}")
            for name, value in self.fields().items()
        )
        return "{" + "".join(f"{text}, " for text in texts) + "}"


@dataclass
class DetailedProfilingConfig(_Profiling):
    """The operations of steps."""

    default_steps = (5, 1)


@dataclass
class DataloaderProfilingConfig(_Profiling):
    """The data loaders."""

    metrics_regex: str = ".*"
    default_steps = (7, 1)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the profiling."""
        return {**super().fields(), "MetricsRegex": self.metrics_regex}


@dataclass
class PythonProfilingConfig(_Profiling):
    """The Python code."""

    python_profiler: PythonProfiler = PythonProfiler.CPROFILE
    cprofile_timer: cProfileTimer = cProfileTimer.TOTAL_TIME
    default_steps = (9, 3)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the profiling."""
        found = {**super().fields(), "ProfilerName": self.python_profiler.value}
        if self.python_profiler is PythonProfiler.CPROFILE:
            timer = cProfileTimer.DEFAULT if self.profile_default_steps else self.cprofile_timer
            found["cProfileTimer"] = timer.value
        return found


@dataclass
class HorovodProfilingConfig(_Profiling):
    """The communication of Horovod."""

    default_steps = (13, 1)


@dataclass
class SMDataParallelProfilingConfig(_Profiling):
    """The communication of AWS's library for data parallelism."""

    default_steps = (15, 1)


_KINDS = (
    DetailedProfilingConfig, DataloaderProfilingConfig, PythonProfilingConfig, HorovodProfilingConfig,
    SMDataParallelProfilingConfig,
)  # fmt: skip


@dataclass
class FrameworkProfile:
    """What to profile, and the files of it; without any profiling, all of them over one range or their own steps."""

    local_path: str = "/opt/ml/output/profiler"
    file_max_size: int = 10485760
    file_close_interval: float = 60
    file_open_fail_threshold: int = 50
    detailed_profiling_config: DetailedProfilingConfig | None = None
    dataloader_profiling_config: DataloaderProfilingConfig | None = None
    python_profiling_config: PythonProfilingConfig | None = None
    horovod_profiling_config: HorovodProfilingConfig | None = None
    smdataparallel_profiling_config: SMDataParallelProfilingConfig | None = None
    start_step: int | None = None
    num_steps: int | None = None
    start_unix_time: int | None = None
    duration: float | None = None

    @property
    def profiling_parameters(self) -> dict[str, str]:
        """The service's ProfilingParameters."""
        given = (
            self.detailed_profiling_config, self.dataloader_profiling_config, self.python_profiling_config,
            self.horovod_profiling_config, self.smdataparallel_profiling_config,
        )  # fmt: skip
        span = (self.start_step, self.num_steps, self.start_unix_time, self.duration)
        is_default = all(each is None for each in span)
        chosen = [each for each in given if each is not None] or [kind(*span, is_default) for kind in _KINDS]
        return {
            "LocalPath": self.local_path,
            "RotateMaxFileSizeInBytes": str(self.file_max_size),
            "RotateFileCloseIntervalInSeconds": str(self.file_close_interval),
            "FileOpenFailThreshold": str(self.file_open_fail_threshold),
            **{type(each).__name__: each.to_json_string() for each in chosen},
        }
