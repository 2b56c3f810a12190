"""The speed of a training script by layout and number of hosts, measured with a real job at each size."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.distribution import KINDS, MPI, NAMES, ParameterServer
from scriptmode._core.spec.failure_text import describe_in_one_line
from scriptmode._core.spec.metric_definitions import LogPositions
from scriptmode._core.spec.whole_numbers import set_whole, whole_number
from scriptmode._core.text.messages import did_you_mean, pluralize
from scriptmode._core.text.terminal_text import align_columns
from scriptmode.errors import DataError, ScriptmodeError, invalid
from scriptmode_runtime._host import machine
from scriptmode_runtime._terminal_line import last_frame

if TYPE_CHECKING:
    from scriptmode._core.spec.distribution import Distribution
    from scriptmode._core.spec.host_values import HostActivity
    from scriptmode._core.spec.service_values import LogEvent

    _Point = tuple[float, HostActivity]

#: The layout without a distribution: each host runs the script by itself.
SINGLE = "single"
LAYOUTS = (SINGLE, "parameter-server", "multi-worker-mirrored", "mpi")
#: The part of the steps that is not measured: TensorFlow compiles and fills its caches in the first ones.
WARM_UP = 0.2
#: Seconds from SIGTERM to SIGKILL: these jobs have nothing to save, and MultiWorkerMirroredStrategy ignores SIGTERM.
_STOP_GRACE = 5.0
_BATCH_SIZE = re.compile(r"\bbatch[_ -]?size[\"']?\s{0,2}[=:]\s{0,2}(\d{1,9})\b", re.IGNORECASE)
_PRINT_STEPS = "print(f'step {step}', flush=True) after each step, or define a metric 'step'"
_NO_STEPS = f"names no step in its log; {_PRINT_STEPS}"
_FEW_STEPS = f"too few lines of the log name a step to measure them; {_PRINT_STEPS}"


@dataclass(frozen=True)
class ScalingOptions:
    """What to measure; the values are checked. ``layouts`` is empty for the estimator's own distribution."""

    hosts: Sequence[int]
    layouts: Sequence[str]
    steps: int
    batch_size: int | None

    def __post_init__(self) -> None:
        hosts = (self.hosts,) if isinstance(self.hosts, int) else self.hosts
        sizes = tuple(dict.fromkeys(whole_number("hosts", size, 1) for size in hosts))
        if not sizes:
            raise invalid("hosts", "is empty", "give the numbers of hosts, such as 1, 2 and 4")
        layouts = tuple(dict.fromkeys((self.layouts,) if isinstance(self.layouts, str) else self.layouts))
        for name in layouts:
            if name not in LAYOUTS:
                raise invalid("layouts", f"has {name!r}", did_you_mean(str(name), LAYOUTS))
        set_whole(self, "steps", "steps", 2)
        set_whole(self, "batch_size", "batch_size", 1, optional=True)
        object.__setattr__(self, "hosts", sizes)
        object.__setattr__(self, "layouts", layouts)


@dataclass(frozen=True)
class ScalingRow:
    """What was measured of one job; rates are ``None`` where ``problem`` says why.

    Attributes:
        layout: ``single``, ``parameter-server``, ``multi-worker-mirrored`` or ``mpi``.
        hosts: Number of hosts.
        job: Name of the job; "" for one that could not be started.
        steps: Number of steps that were measured, after the warm-up.
        seconds: Seconds that these steps took.
        steps_per_second: Rate of the steps that the log names.
        batches_per_second: Rate of the batches of all trainers together.
        images_per_second: The same in images; ``None`` where the batch size is unknown.
        problem: Why there are no rates; "" where there are.
    """

    layout: str
    hosts: int
    job: str = ""
    steps: int = 0
    seconds: float = 0.0
    steps_per_second: float | None = None
    batches_per_second: float | None = None
    images_per_second: float | None = None
    problem: str = ""

    @property
    def size(self) -> str:
        """The layout and the number of hosts as text."""
        return f"{self.layout} on {pluralize(self.hosts, 'host')}"


@dataclass(frozen=True)
class Scaling:
    """The speed of a script at several sizes; its text is a table.

    Attributes:
        limitation: What the rates do not show.
        rows: One for each job, in the order of the measurement.
    """

    limitation: str
    rows: tuple[ScalingRow, ...]

    def efficiency(self, row: ScalingRow) -> float | None:
        """Return the rate of one host of a row, compared with that of the smallest size of the same layout."""
        same = [other for other in self.rows if other.layout == row.layout and other.batches_per_second]
        if row.batches_per_second is None or not same:
            return None
        least = min(same, key=lambda other: other.hosts)
        return (row.batches_per_second / row.hosts) / (float(least.batches_per_second or 0) / least.hosts)

    def to_dict(self) -> dict[str, object]:
        """Return the measurement as JSON can represent it, with the efficiency of each row."""
        rows = [{**asdict(row), "efficiency": self.efficiency(row)} for row in self.rows]
        return {"limitation": self.limitation, "rows": rows}

    def __str__(self) -> str:
        head = ["LAYOUT", "HOSTS", "STEPS/S", "IMAGES/S", "EFFICIENCY"]
        rows = [
            [
                row.layout,
                str(row.hosts),
                _format_number(row.steps_per_second),
                _format_number(row.images_per_second),
                "-" if (efficiency := self.efficiency(row)) is None else f"{efficiency:.0%}",
            ]
            for row in self.rows
        ]
        problems = [f"{row.size}: {row.problem}" for row in self.rows if row.problem]
        return "\n".join([self.limitation, *align_columns([head, *rows], right=range(1, len(head))), *problems])


def _format_number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def measure(
    estimator: Any, change: Callable[..., Any], inputs: object, options: ScalingOptions, report: Callable[[str], None]
) -> Scaling:
    """Run a job of an `Estimator` for each layout and number of hosts, one after another; return what was measured.

    ``change`` returns the estimator with other arguments, and ``report`` gets a line when a job starts and ends. Each
    job is stopped at the last step of the options. Raises `SpecError` and `RequestError` for any of the jobs before
    the first one starts, and `DataError` if that names no step.
    """
    resources = estimator.spec.resources
    kind = resources.host_kind
    if not kind.is_local:
        raise invalid("instance_type", f"is {resources.types[0]!r}", "measure on this machine or on Slurm")
    if resources.instance_groups:
        raise invalid("instance_groups", "have a number of hosts each", "measure an estimator with an instance_type")
    layouts = options.layouts or (_layout_of(estimator.spec.distribution),)
    sizes = [ScalingRow(layout, hosts) for layout in layouts for hosts in options.hosts]
    jobs = [_resize(estimator, change, size) for size in sizes]
    for job in jobs:
        job.request(inputs)
    rows: list[ScalingRow] = []
    cores = machine.inspect().cpus
    for job, size in zip(jobs, sizes):
        row = _measure_job(job, inputs, size, options, report)
        if not rows and row.problem == _NO_STEPS:
            raise DataError(f"training job {row.job} {row.problem}")
        report(f"{row.size}: {row.problem or f'{_format_number(row.steps_per_second)} steps/s'}")
        rows.append(row)
    limitation = f"The hosts are {kind.title}: the rates are those of this cluster."
    if kind.is_here:
        shared = pluralize(cores, "core")
        limitation = f"The hosts are {kind.title} and share its {shared}: the rates are not those of several machines."
    return Scaling(limitation, tuple(rows))


def _layout_of(distribution: Distribution | None) -> str:
    kinds = {kind: name for name, kind in reversed(NAMES.items())}
    return next((kinds[key] for key, kind in KINDS.items() if isinstance(distribution, kind.make)), SINGLE)


def _resize(estimator: Any, change: Callable[..., Any], size: ScalingRow) -> Any:
    """Return a copy of an estimator with another size, whose jobs store no models and never start again.

    Another run would begin at the first step: its rate, and counters of another container or node, would be wrong.
    """
    changes: Any = dict.fromkeys(("checkpoint_local_path", "checkpoint_s3_uri", "output_path", "sagemaker_session"))
    changes.update(max_retry_attempts=None, use_spot_instances=False, max_wait=None)
    if size.layout != _layout_of(estimator.spec.distribution):
        changes["distribution"] = None if size.layout == SINGLE else {NAMES[size.layout]: {"enabled": True}}
    platform = copy.copy(estimator.platform)
    platform.stop_grace = _STOP_GRACE
    return change(**changes, instance_count=size.hosts, platform=platform)


def _measure_job(
    estimator: Any, inputs: object, row: ScalingRow, options: ScalingOptions, report: Callable[[str], None]
) -> ScalingRow:
    try:
        job = estimator.fit(inputs, wait=False, logs=False)
        report(f"{row.size}: training job {job.name} started")
        row = replace(row, job=job.name)
        steps = _Steps(estimator.spec.algorithm.metric_definitions, job.platform.poll_seconds)
        _follow(job, steps, options.steps)
        failure = job.failure if steps.last < options.steps else None
    except ScriptmodeError as error:
        return replace(row, problem=str(error))
    if failure is not None:
        what = f"training job {job.name} failed: {describe_in_one_line(failure)}"
        return replace(row, problem=f"{what}; read its log: scriptmode logs {job.name}")
    begin, end, count = steps.window()
    if not count:
        return replace(row, problem=_FEW_STEPS if steps.samples else _NO_STEPS)
    rate = count / (end - begin)
    batches = rate * _trainers(row, estimator.spec.distribution)
    size = options.batch_size or steps.batch_size
    return replace(
        row,
        steps=count,
        seconds=end - begin,
        steps_per_second=rate,
        batches_per_second=batches,
        images_per_second=batches * size if size else None,
    )


def _trainers(row: ScalingRow, distribution: Distribution | None) -> int:
    """Return how many trainers make a step together, each with its own batch."""
    if row.layout == SINGLE or isinstance(distribution, ParameterServer):
        return 1
    return row.hosts * ((distribution.processes_per_host or 1) if isinstance(distribution, MPI) else 1)


def _follow(job: Any, steps: _Steps, last: int) -> None:
    """Read the log of a job until it has ended; stop the job at a step, and if this call is interrupted."""
    clock = job.platform.clock
    is_stopped = False
    try:
        for event in job.logs(follow=True):
            if not is_stopped:
                steps.read(event, clock.now())
            if steps.last >= last and not is_stopped:
                job.stop()
                is_stopped = True
    except BaseException:
        with suppress(ScriptmodeError):
            job.stop()
        raise


class _Steps:
    """The steps that the log of a job names, with the times at which their lines were read.

    Lines are read in turns, ``seconds`` apart. Of the lines of one turn the last one counts: it was written right
    before, while the first one may have been written up to ``seconds`` earlier. So the time of a sample is late by
    less than a turn, and by less than a step where many steps are printed in a turn.
    """

    def __init__(self, definitions: Sequence[tuple[str, str]], seconds: float) -> None:
        self._positions = LogPositions(definitions)
        self._merged = seconds / 2
        self._began = float("-inf")
        #: The first host that names a step: the others may be at other steps.
        self._host = ""
        self.samples: list[tuple[float, int]] = []
        self.last = -1
        self.batch_size: int | None = None

    def read(self, event: LogEvent, now: float) -> None:
        """Keep the step that a line names, if it is the largest so far, and the first batch size."""
        if self.batch_size is None and (match := _BATCH_SIZE.search(last_frame(event.message))):
            self.batch_size = int(match[1])
        step, _ = self._positions.find(event.host, event.message)
        if step is None or step <= self.last or self._host not in ("", event.host):
            return
        self._host, self.last = event.host, step
        if self.samples and now - self._began < self._merged:
            self.samples[-1] = now, step
        else:
            self._began = now
            self.samples.append((now, step))

    def window(self) -> tuple[float, float, int]:
        """Return the times of the end of the warm-up and of the last step, and the number of steps between them."""
        if not self.samples:
            return 0.0, 0.0, 0
        (_, first), (end, last) = self.samples[0], self.samples[-1]
        begin, before = next(sample for sample in self.samples if sample[1] >= first + WARM_UP * (last - first))
        return begin, end, last - before
