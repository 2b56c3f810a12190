"""The speed of a training script by layout and number of hosts, measured with a real job at each size, and its cost."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scriptmode.core.aws.prices import find_training_price
from scriptmode.core.platforms.base import StartsHosts
from scriptmode.core.spec.distribution import KINDS, MPI, NAMES, ParameterServer
from scriptmode.core.spec.job_failure import describe_in_one_line
from scriptmode.core.spec.metric_definitions import LogPositions
from scriptmode.core.spec.whole_numbers import set_whole, whole_number
from scriptmode.core.text.messages import did_you_mean, format_bytes, pluralize
from scriptmode.core.text.terminal_text import align_columns, last_frame
from scriptmode.errors import DataError, ScriptmodeError, invalid
from scriptmode_runtime.host import machine

if TYPE_CHECKING:
    from scriptmode.core.spec.distribution import Distribution
    from scriptmode.core.spec.service_values import HostActivity, LogEvent

    _Point = tuple[float, HostActivity]

#: The layout without a distribution: each host runs the script by itself.
SINGLE = "single"
LAYOUTS = (SINGLE, "parameter-server", "multi-worker-mirrored", "mpi")
#: The part of the steps that is not measured: TensorFlow compiles and fills its caches in the first ones.
WARM_UP = 0.2
#: Seconds from SIGTERM to SIGKILL: these jobs have nothing to save, and MultiWorkerMirroredStrategy ignores SIGTERM.
_STOP_GRACE = 5.0
#: The precision below which a rate is reported with it.
_PRECISE = 0.05
#: The load of each core from which on the machine is called busy.
_BUSY = 0.5
#: Hosts whose memory is shown one by one.
_MOST_SHOWN = 4
#: What a cost is computed for.
_UNITS = {"images": 1_000_000, "batches": 1_000}
_BATCH_SIZE = re.compile(r"\bbatch[_ -]?size[\"']?\s{0,2}[=:]\s{0,2}(\d{1,9})\b", re.IGNORECASE)
_PRINT_STEPS = (
    "have the script call print(f'step {step}', flush=True) after each step, or define a metric 'step', whose value is "
    "the number of the step"
)
_NO_STEPS = f"names no step in its log; {_PRINT_STEPS}"
_FEW_STEPS = f"too few lines of the log name a step to measure them; {_PRINT_STEPS}"


@dataclass(frozen=True)
class ScalingOptions:
    """What to measure; the values are checked. ``layouts`` is empty for the estimator's own distribution."""

    hosts: Sequence[int]
    layouts: Sequence[str]
    steps: int
    batch_size: int | None
    prices: Mapping[str, float] | None
    price_as: str | None

    def __post_init__(self) -> None:
        hosts = (self.hosts,) if isinstance(self.hosts, int) else self.hosts
        sizes = tuple(dict.fromkeys(whole_number("hosts", each, 1) for each in hosts))
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

    def find_price(self, name: str) -> float | None:
        """Return the price of an instance type, from AWS where only ``price_as`` is given; ``None`` without both."""
        if self.prices is None:
            if self.price_as is None:
                return None
            if not str(name).startswith("ml."):
                step = "give prices by instance type, or name a type of SageMaker, such as 'ml.m5.xlarge'"
                raise invalid("price_as", f"is {name!r}, but prices are missing", step)
            return find_training_price(name, "price_as")
        if not isinstance(self.prices, Mapping) or name not in self.prices:
            what = f"has no price of {name!r}"
            raise invalid("prices", what, "add it, such as 'ml.m5.xlarge' = 0.23, or name another type with price_as")
        price = self.prices[name]
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < float("inf"):
            raise invalid("prices", f"has {price!r} for {name!r}", "give the price of a host an hour, such as 0.23")
        return float(price)


@dataclass(frozen=True)
class ScalingRow:
    """What was measured of one job; rates are ``None`` where ``problem`` says why.

    Attributes:
        layout: ``single``, ``parameter-server``, ``multi-worker-mirrored`` or ``mpi``.
        hosts: Number of hosts.
        job: Name of the job; "" for one that could not be started.
        steps: Number of steps that were measured, after the warm-up.
        seconds: Seconds that these steps took.
        precision: The largest error of the rate that comes from the times of the log lines, as a part of it.
        steps_per_second: Rate of the steps that the log names.
        batches_per_second: Rate of the batches of all trainers together.
        images_per_second: The same in images; ``None`` where the batch size is unknown.
        cpu_percent: Mean CPU usage of each host in the measured time, in percent of one core.
        memory_bytes: The most resident memory of each host.
        input_wait_percent: Mean part of the measured time in which an open FIFO of each host was empty; nothing for a
            host that opened none.
        received_bytes: Bytes a step that the network interface of each host received; nothing where hosts share it.
        problem: Why there are no rates; "" where there are.
    """

    layout: str
    hosts: int
    job: str = ""
    steps: int = 0
    seconds: float = 0.0
    precision: float | None = None
    steps_per_second: float | None = None
    batches_per_second: float | None = None
    images_per_second: float | None = None
    cpu_percent: Mapping[str, float] = field(default_factory=dict)
    memory_bytes: Mapping[str, int] = field(default_factory=dict)
    input_wait_percent: Mapping[str, float] = field(default_factory=dict)
    received_bytes: Mapping[str, float] = field(default_factory=dict)
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
        price: Price of a host an hour, in US dollars if it is AWS's; ``None`` without one.
        priced_type: The instance type of that price.
    """

    limitation: str
    rows: tuple[ScalingRow, ...]
    price: float | None = None
    priced_type: str = ""

    @property
    def unit(self) -> str:
        """``images`` where the batch size of every measured job is known, else ``batches``."""
        measured = [row for row in self.rows if not row.problem]
        return "images" if measured and all(row.images_per_second for row in measured) else "batches"

    def rate(self, row: ScalingRow) -> float | None:
        """Return the images, or the batches, that all hosts of a row train in a second."""
        return row.images_per_second if self.unit == "images" else row.batches_per_second

    def efficiency(self, row: ScalingRow) -> float | None:
        """Return the rate of one host of a row, compared with that of the smallest size of the same layout."""
        same = [each for each in self.rows if each.layout == row.layout and each.batches_per_second]
        if row.batches_per_second is None or not same:
            return None
        least = min(same, key=lambda each: each.hosts)
        return (row.batches_per_second / row.hosts) / (float(least.batches_per_second or 0) / least.hosts)

    def cost(self, row: ScalingRow) -> float | None:
        """Return the cost of a million images, or of a thousand batches, at a row's size; ``None`` without a price."""
        rate = self.rate(row)
        return None if self.price is None or not rate else self.price * row.hosts / 3600 * _UNITS[self.unit] / rate

    @property
    def fastest(self) -> ScalingRow | None:
        """The row with the highest rate, of equal ones that with the fewest hosts; ``None`` where nothing was measured.

        Rates that differ by less than their precision are equal.
        """
        measured = [row for row in self.rows if self.rate(row)]
        most = max(((self.rate(row) or 0) / (1 + max(_PRECISE, row.precision or 0)) for row in measured), default=0)
        return min((row for row in measured if (self.rate(row) or 0) >= most), key=lambda row: row.hosts, default=None)

    @property
    def cheapest(self) -> ScalingRow | None:
        """The row with the lowest cost; ``None`` without a price."""
        return min(
            (row for row in self.rows if self.cost(row) is not None), key=lambda row: self.cost(row) or 0, default=None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement as JSON can represent it, with the efficiency and the cost of each row."""

        def to_size(row: ScalingRow | None) -> dict[str, Any] | None:
            return None if row is None else {"layout": row.layout, "hosts": row.hosts}

        rows = [{**asdict(row), "efficiency": self.efficiency(row), "cost": self.cost(row)} for row in self.rows]
        return {
            "limitation": self.limitation,
            "rows": rows,
            "cost_of": f"{_UNITS[self.unit]} {self.unit}",
            "price": self.price,
            "priced_type": self.priced_type,
            "fastest": to_size(self.fastest),
            "cheapest": to_size(self.cheapest),
        }

    def plot(self) -> Any:
        """Draw the rate by the number of hosts, a line for each layout; return the ``matplotlib.figure.Figure``.

        Dotted lines are those of an efficiency of 100 %.

        Raises:
            DataError: Where nothing was measured.
            MissingPackageError: Where Matplotlib is not installed.
        """
        from scriptmode.results import metric_plot

        if self.fastest is None:
            raise DataError("no rate was measured, so there is nothing to draw", advice=self.rows[0].problem)
        figure = metric_plot.create_figure(1)
        axes = figure.subplots()
        metric_plot.style_axes(axes)
        for layout, colour in zip(
            dict.fromkeys(row.layout for row in self.rows if self.rate(row)), metric_plot.COLOURS
        ):
            line = {row.hosts: rate for row in self.rows if row.layout == layout and (rate := self.rate(row))}
            sizes = sorted(line)
            axes.plot(sizes, [line[size] for size in sizes], marker="o", label=layout, color=colour)
            axes.plot(sizes, [line[sizes[0]] / sizes[0] * size for size in sizes], ":", color=colour)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("hosts", color=metric_plot.TEXT)
        axes.set_title(f"{self.unit}/s", loc="left", fontsize="medium", color=metric_plot.TEXT)
        for text in axes.legend(frameon=False, fontsize="small").get_texts():
            text.set_color(metric_plot.TEXT)
        return figure

    def __str__(self) -> str:
        return "\n".join([self.limitation, *self._table(), *self._notes()])

    def _table(self) -> list[str]:
        head = ["LAYOUT", "HOSTS", "STEPS/S", f"{self.unit.upper()}/S", "EFFICIENCY"]
        head += ["INPUT WAIT", "NETWORK/STEP", "CPU", "MEMORY BY HOST"]
        rows = [
            [
                row.layout,
                str(row.hosts),
                _format_number(row.steps_per_second),
                _format_number(self.rate(row)),
                "-" if (efficiency := self.efficiency(row)) is None else f"{efficiency:.0%}",
                f"{max(row.input_wait_percent.values()):.0f}%" if row.input_wait_percent else "-",
                format_bytes(round(sum(row.received_bytes.values()))) if row.received_bytes else "-",
                f"{sum(row.cpu_percent.values()):.0f}%" if row.cpu_percent else "-",
                _format_memory(list(row.memory_bytes.values())),
            ]
            for row in self.rows
        ]
        if self.price is not None:
            cells = [f"COST OF {_UNITS[self.unit]:,} {self.unit.upper()}"]
            cells += [_format_number(self.cost(row)) for row in self.rows]
            for line, cell in zip([head, *rows], cells):
                line.insert(-1, cell)
        return align_columns([head, *rows], right=range(1, len(head) - 1))

    def _notes(self) -> Iterator[str]:
        for row in self.rows:
            if row.problem:
                yield f"{row.size}: {row.problem}"
            elif row.precision is not None and row.precision > _PRECISE:
                took = f"{row.size} was measured for {row.seconds:.2g} s"
                yield f"{took}, which is precise to {row.precision:.0%}; measure more steps"
        if (best := self.fastest) is not None:
            yield f"fastest: {best.size}, {_format_number(self.rate(best))} {self.unit}/s"
        if (best := self.cheapest) is not None:
            cost = f"{_format_number(self.cost(best))} for {_UNITS[self.unit]:,} {self.unit}"
            yield f"cheapest: {best.size}, {cost} at {self.price:g} an hour for each host ({self.priced_type})"


def _format_memory(found: Sequence[int]) -> str:
    if len(found) > _MOST_SHOWN:
        return f"{format_bytes(min(found))} to {format_bytes(max(found))}"
    return ", ".join(map(format_bytes, found)) or "-"


def _format_number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def measure(
    estimator: Any,
    change: Callable[..., Any],
    inputs: object,
    options: ScalingOptions,
    report: Callable[[str], None],
) -> Scaling:
    """Run a job of an `Estimator` for each layout and number of hosts, one after another; return what was measured.

    ``change`` returns the estimator with other arguments, and ``report`` gets a line when a job starts and ends. Each
    job is stopped at the last step of the options. Raises `SpecError` and `RequestError` for any of the jobs before
    the first one starts, and `DataError` if that names no step.
    """
    resources = estimator.spec.resources
    kind, priced = resources.host_kind, options.price_as or resources.types[0]
    if not kind.is_local or not isinstance(estimator.platform, StartsHosts):
        step = "measure on this machine or on Slurm, and name that type with price_as"
        raise invalid("instance_type", f"is {resources.types[0]!r}, whose jobs are billed", step)
    if resources.instance_groups:
        raise invalid("instance_groups", "have a number of hosts each", "measure an estimator with an instance_type")
    price = options.find_price(priced)
    layouts = options.layouts or (_layout_of(estimator.spec.distribution),)
    sizes = [ScalingRow(layout, hosts) for layout in layouts for hosts in options.hosts]
    jobs = [_resize(estimator, change, size) for size in sizes]
    for each in jobs:
        each.request(inputs)
    rows: list[ScalingRow] = []
    (load, *_), cores = os.getloadavg(), machine.inspect().cpus
    for each, size in zip(jobs, sizes):
        row = _measure_job(each, inputs, size, options, report)
        if not rows and row.problem == _NO_STEPS:
            raise DataError(f"training job {row.job} {row.problem}")
        report(f"{row.size}: {row.problem or f'{_format_number(row.steps_per_second)} steps/s'}")
        rows.append(row)
    limitation = f"The hosts are {kind.title}: the rates are those of this cluster."
    if kind.is_here:
        shared = pluralize(cores, "core")
        limitation = f"The hosts are {kind.title} and share its {shared}: the rates are not those of several machines."
        if load > cores * _BUSY:
            limitation += f" Its load was {load:.1f} when the first job started: other programs change the rates."
    if options.price_as:
        limitation += f" The cost assumes that a host of the type {priced} is as fast as a host here."
    return Scaling(limitation, tuple(rows), price, priced)


def _layout_of(distribution: Distribution | None) -> str:
    kinds = {kind: name for name, kind in reversed(NAMES.items())}
    return next((kinds[key] for key, each in KINDS.items() if isinstance(distribution, each.make)), SINGLE)


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
        usage = job.platform.usage_history(job.name)
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
    measured = {host: [each for each in points if begin <= each[0] <= end] for host, points in usage.items()}
    memory = {host: max((each.memory_bytes or 0 for _, each in points), default=0) for host, points in usage.items()}
    return replace(
        row,
        steps=count,
        seconds=end - begin,
        precision=job.platform.poll_seconds / (end - begin),
        steps_per_second=rate,
        batches_per_second=batches,
        images_per_second=batches * size if size else None,
        cpu_percent=_mean_by_host(measured, "cpu_percent"),
        memory_bytes={host: most for host, most in memory.items() if most},
        input_wait_percent=_mean_by_host(measured, "input_wait_percent"),
        received_bytes={host: received / rate for host, received in _receive_rates(measured).items()},
    )


def _receive_rates(usage: Mapping[str, Sequence[_Point]]) -> dict[str, float]:
    """Return the bytes a second that each host received from its first to its last point, where it has two."""
    found = {}
    for host, points in usage.items():
        known = [(moment, each.received_bytes) for moment, each in points if each.received_bytes is not None]
        if known and (seconds := known[-1][0] - known[0][0]) > 0:
            found[host] = (known[-1][1] - known[0][1]) / seconds
    return found


def _mean_by_host(usage: Mapping[str, Sequence[_Point]], name: str) -> dict[str, float]:
    found = {host: [getattr(each, name) for _, each in points] for host, points in usage.items()}
    known = {host: [each for each in values if each is not None] for host, values in found.items()}
    return {host: fmean(values) for host, values in known.items() if values}


def _trainers(row: ScalingRow, distribution: Distribution | None) -> int:
    """Return how many trainers make a step together, each with its own batch."""
    if row.layout == SINGLE or isinstance(distribution, ParameterServer):
        return 1
    return row.hosts * ((distribution.processes_per_host or 1) if isinstance(distribution, MPI) else 1)


def _follow(job: Any, steps: _Steps, last: int) -> None:
    """Read the log of a job until it has ended; stop the job at a step, and if this call is interrupted."""
    clock = job.platform.clock
    # The recorded usage has times of day.
    offset = clock.wall_time().timestamp() - clock.now()
    is_stopped = False
    try:
        for event in job.logs(follow=True):
            if not is_stopped:
                steps.read(event, clock.now() + offset)
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
        if self.batch_size is None and (found := _BATCH_SIZE.search(last_frame(event.message))):
            self.batch_size = int(found[1])
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
        begin, before = next(each for each in self.samples if each[1] >= first + WARM_UP * (last - first))
        return begin, end, last - before
