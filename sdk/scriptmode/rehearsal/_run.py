"""The path of a rehearsal: the undisturbed job, then a job for each fault."""

from __future__ import annotations

import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import invalid
from scriptmode.rehearsal._trial import FollowedJob, HungError, Trial
from scriptmode.rehearsal._verdict import Rehearsal
from scriptmode_local import LocalPlatform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scriptmode._core.platforms.base import Platform
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode._job import TrainingJob
    from scriptmode.rehearsal._faults import Fault

_LOCAL_PROCESS = "local_process"
_DAY = 86_400.0
#: A disturbed job ends within three times the seconds of the undisturbed one, and these.
_TIMES, _MARGIN_SECONDS = 3, 120.0


class RehearsalRun:
    """The jobs of one rehearsal.

    ``start`` starts a job of the estimator with other arguments, by their names; ``tell`` is called with each line of
    the result as soon as it is known; ``metric`` is the one whose values are the steps.
    """

    def __init__(
        self,
        spec: TrainingJobSpec,
        platform: Platform,
        start: Callable[..., TrainingJob],
        tell: Callable[[str], None],
        metric: str,
    ) -> None:
        names = [name for name, _ in spec.algorithm.metric_definitions]
        if metric not in names:
            advice = (
                did_you_mean(metric, names)
                or "define it: metric_definitions=[{'Name': 'step', 'Regex': 'step ([0-9]+)'}]"
            )
            raise invalid("step_metric", f"is {metric!r}, which is not a metric of the job", advice)
        self._spec = spec
        self._start_job = start
        self._tell = tell
        self._metric = metric
        settings = platform.arguments if isinstance(platform, LocalPlatform) else {}
        # Of a cluster, what is for this machine, too.
        own = {name: value for name, value in settings.items() if name not in ("platform", "options")}
        self._settings: Any = {**own, "queue": None}
        self._data_dir = Path(str(LocalPlatform(**self._settings).arguments["data_dir"]))

    def rehearse(self, faults: Iterable[Fault]) -> Rehearsal:
        """Run the undisturbed job, and one for each fault."""
        with self._checkpoints() as folder:
            rehearsal, undisturbed = self._run_undisturbed(folder)
        if rehearsal.problems:
            return rehearsal
        bound = _TIMES * rehearsal.seconds + _MARGIN_SECONDS
        for fault in faults:
            with self._checkpoints() as folder:
                job = self._start(folder, fault.name, getattr(fault, "notice", None))
                self._tell(f"{fault}: training job {job.job.name} started")
                trial = Trial(fault, undisturbed, bound, folder)
                verdict = trial.run(job, lambda ended: self._follow(ended.rerun()))
            self._tell("  ".join(filter(None, verdict.cells())))
            rehearsal = replace(rehearsal, verdicts=(*rehearsal.verdicts, verdict))
        return rehearsal

    def _run_undisturbed(self, folder: Path | None) -> tuple[Rehearsal, FollowedJob]:
        job = self._start(folder, "undisturbed")
        self._tell(f"undisturbed: training job {job.job.name} started")
        try:
            job.follow(_DAY)
            problem = job.problem()
        except HungError as error:
            problem = str(error)
        if not problem and not job.steps.numbers:
            problem = f"its log has no value of the metric {self._metric!r}: correct its regular expression"
        steps = max(job.steps.numbers, default=0)
        problems = (f"the undisturbed job: {problem}",) if problem else ()
        rehearsal = Rehearsal(job.job.name, steps, time.monotonic() - job.began, problems=problems)
        self._tell(rehearsal.head())
        return rehearsal, job

    def _follow(self, job: TrainingJob) -> FollowedJob:
        return FollowedJob(job, self._data_dir, self._metric)

    def _start(self, checkpoints: Path | None, name: str, notice: float | None = None) -> FollowedJob:
        groups = [replace(group, instance_type=_LOCAL_PROCESS) for group in self._spec.resources.instance_groups]
        script = Path(self._spec.script.entry_point).stem if self._spec.script else self._spec.base_job_name
        settings = self._settings if notice is None else {**self._settings, "stop_grace": notice}
        job = self._start_job(
            platform=LocalPlatform(**settings),
            sagemaker_session=None,
            output_path=None,
            code_location=None,
            checkpoint_s3_uri=checkpoints.as_uri() if checkpoints else None,
            base_job_name=f"rehearsal-{name}-{script}",
            **({"instance_groups": groups} if groups else {"instance_type": _LOCAL_PROCESS}),
        )
        return self._follow(job)

    @contextmanager
    def _checkpoints(self) -> Iterator[Path | None]:
        """Yield the checkpoint directory of a job and the one after it; None for an estimator without one."""
        if not self._spec.output.checkpoint_uri:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="scriptmode-rehearsal-") as folder:
            yield Path(folder)
