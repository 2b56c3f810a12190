"""The path of a rehearsal: the undisturbed job, then a job for each fault."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.spec.service_values import COMPLETED
from scriptmode.errors import ScriptmodeError, invalid
from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.rehearsal import advice
from scriptmode.rehearsal.faults import DEFAULT, Fault, parse_faults
from scriptmode.rehearsal.findings import ScriptFindings
from scriptmode.rehearsal.followed import FollowedJob, HungError
from scriptmode.rehearsal.steps import Count
from scriptmode.rehearsal.trial import Baseline, Trial
from scriptmode.rehearsal.verdict import Rehearsal
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scriptmode.core.platforms.base import Platform
    from scriptmode.core.spec.training_job import TrainingJobSpec
    from scriptmode.job import TrainingJob

_LOCAL_PROCESS = "local_process"
#: Seconds without output of any host after which a launcher reports what each process does, and ends the job. For a
#: disturbed job it is this part of the seconds in which it ends.
_SILENT_SECONDS, _SILENT_PART = 600.0, 1 / 3
_DAY = 86_400.0


def parse_all(faults: Iterable[Fault | str] | None, hosts: Sequence[str]) -> list[Fault]:
    """Return the faults of a rehearsal of a job with these hosts; some may be texts. Raise `SpecError`."""
    if isinstance(faults, (str, Fault)):
        faults = [faults]
    found: list[Fault] = []
    for each in DEFAULT if faults is None else faults:
        if isinstance(each, Fault):
            found.append(each)
        elif isinstance(each, str):
            found += parse_faults(each)
        else:
            raise invalid("faults", f"has {each!r}", "give faults of scriptmode.rehearsal, such as Kill(at=60)")
    if not found:
        raise invalid("faults", "is empty", "leave it out, or give faults of scriptmode.rehearsal")
    for each in found:
        if (host := getattr(each, "host", "")) and host not in hosts:
            raise invalid("faults", f"has the host {host!r}", f"use one of {', '.join(hosts)}")
    return found


class RehearsalRun:
    """The jobs of one rehearsal.

    ``start`` starts a job of the estimator with other arguments, by their names; ``tell`` is called with each line of
    the result as soon as it is known.
    """

    def __init__(
        self,
        spec: TrainingJobSpec,
        platform: Platform,
        start: Callable[..., TrainingJob],
        tell: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._start_job = start
        self._tell = tell
        settings = platform.arguments if isinstance(platform, LocalPlatform) else {}
        # Of a cluster, what is for this machine, too.
        own = {name: each for name, each in settings.items() if name not in ("platform", "options")}
        self._settings: Any = {**own, "queue": None}
        self._data_dir = Path(str(LocalPlatform(**self._settings).arguments["data_dir"]))
        path = Path(spec.script.source_dir or "", spec.script.entry_point) if spec.script else Path("the script")
        text = path.read_text("utf-8", "replace") if path.suffix == ".py" and path.is_file() else ""
        self._findings = ScriptFindings.read(path.name, text)

    def rehearse(self, faults: Iterable[Fault]) -> Rehearsal:
        """Run the undisturbed job, and one for each fault."""
        with self._checkpoints() as uri:
            rehearsal, baseline = self._run_undisturbed(uri)
        if baseline is None:
            return rehearsal
        for each in faults:
            with self._checkpoints() as uri:
                trial = Trial(each, baseline, self._data_dir, self._findings)
                job = self._start(uri, each.name, trial.bound * _SILENT_PART, getattr(each, "notice", None))
                self._tell(f"{trial.title}: training job {job.name} started")
                verdict = trial.run(job, lambda job: job.rerun())
            self._tell("  ".join(filter(None, verdict.cells())))
            rehearsal = replace(rehearsal, verdicts=(*rehearsal.verdicts, verdict))
        # The page shows it; the result counts more.
        with suppress(ScriptmodeError, OSError):
            JobStore(self._data_dir).find(rehearsal.job).write_rehearsal(rehearsal.to_dict())
        return rehearsal

    def _run_undisturbed(self, uri: str | None) -> tuple[Rehearsal, Baseline | None]:
        job = self._start(uri, "undisturbed", _SILENT_SECONDS)
        self._tell(f"undisturbed: training job {job.name} started")
        followed = FollowedJob(job, self._data_dir)
        resources = followed.description.job.resources
        hosts = f"{resources.count} x {_LOCAL_PROCESS}"
        if others := sorted({*self._spec.resources.types} - {_LOCAL_PROCESS}):
            hosts += f" in place of {', '.join(others)}"
        rehearsal = Rehearsal(job.name, hosts)
        try:
            followed.follow(_DAY)
        except HungError as error:
            return replace(rehearsal, problems=(str(error),)), None
        if followed.description.status != COMPLETED:
            problem = f"the undisturbed job did not complete: {advice.describe_failure(followed)}"
            if followed.watch.waits:
                problem += f"; {advice.describe_last_lines(followed)}"
            return replace(rehearsal, problems=(problem,)), None
        counts = {host: Count(runs[0]) for host, runs in followed.watch.runs.items() if runs[0]}
        training = followed.training_seconds()
        baseline = Baseline(counts, training, followed.whole_seconds(), followed.model(), followed.has_saved)
        count = baseline.count
        marks = next((runs[0] for runs in followed.watch.runs.values() if runs[0]), [])
        between = max(count.between_saves(marks, saves) for saves in followed.saves.values())
        steps, seconds = between if between[1] else (None, None)
        rehearsal = replace(
            rehearsal, steps=count.total, unit=count.unit, seconds=training, save_steps=steps, save_seconds=seconds,
            problems=tuple(followed.losses()),
        )  # fmt: skip
        self._tell(str(rehearsal).partition("\n")[0])
        return rehearsal, baseline

    def _start(self, checkpoints: str | None, name: str, silent: float, notice: float | None = None) -> TrainingJob:
        groups = [replace(each, instance_type=_LOCAL_PROCESS) for each in self._spec.resources.instance_groups]
        script = Path(self._spec.script.entry_point).stem if self._spec.script else self._spec.base_job_name
        settings = self._settings if notice is None else {**self._settings, "stop_grace": notice}
        return self._start_job(
            platform=LocalPlatform(**settings),
            sagemaker_session=None,
            output_path=None,
            code_location=None,
            checkpoint_s3_uri=checkpoints,
            base_job_name=f"rehearsal-{name}-{script}",
            environment={contract.HANG_SECONDS_VARIABLE: f"{silent:.0f}", **(self._spec.environment or {})},
            **({"instance_groups": groups} if groups else {"instance_type": _LOCAL_PROCESS}),
        )

    @contextmanager
    def _checkpoints(self) -> Iterator[str | None]:
        """Yield the checkpoint directory of a job and the one after it; None for an estimator without one."""
        if not self._spec.output.checkpoint_uri:
            yield None
            return
        folder = tempfile.TemporaryDirectory(prefix="scriptmode-rehearsal-")
        try:
            yield Path(folder.name).as_uri()
        finally:
            with suppress(OSError):
                folder.cleanup()
