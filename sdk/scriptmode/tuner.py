"""`Tuner`: arguments of the SageMaker SDK's ``HyperparameterTuner``, turned into a tuning job."""

from __future__ import annotations

import inspect
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scriptmode.aws.retry import Retry
from scriptmode.display import log_lines, tuning_lines
from scriptmode.errors import DataError, ScriptmodeError, SpecError, TuningJobFailed, invalid
from scriptmode.estimator import Estimator
from scriptmode.job import TrainingJob
from scriptmode.messages import Problem, did_you_mean
from scriptmode.platforms.base import ENDED, FAILED
from scriptmode.platforms.registry import find_tuning_platform, resolve_platform, tuning_service
from scriptmode.request import tuning
from scriptmode.results.tuning_results import TuningResults
from scriptmode.spec import arguments, names
from scriptmode.spec.training_job import require_bool
from scriptmode.spec.tuning_job import TuningJobSpec
from scriptmode.tracebacks import hide_frames

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.base import Platform
    from scriptmode.platforms.tuning_jobs import TuningService
    from scriptmode.sagemaker_session import Session
    from scriptmode.spec.parameter_ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from scriptmode.spec.tuning_description import TunedJob, TuningDescription

_NAMES = names.JobNames(timedelta(seconds=1), names.tuning_job_name)
#: Seconds between two requests for the state of a tuning job, at least.
_POLL_SECONDS = 0.5
#: Arguments of the SageMaker SDK v2 that are not here, with what to do instead.
_UNSUPPORTED = {
    "warm_start_config": "give narrower hyperparameter_ranges",
    "completion_criteria_config": "give max_jobs or max_runtime_in_seconds",
    "estimator_name": "make one Tuner for each estimator",
    "autotune": "give hyperparameter_ranges",
    "hyperparameters_to_keep_static": "leave them out of hyperparameter_ranges",
}
#: Methods of the SageMaker SDK v2 that are not here, with what to do instead.
_MISSING_METHODS = {
    "deploy": "serve the best model with the SageMaker SDK: sagemaker.tensorflow.TensorFlowModel("
    "model_data=tuner.best_estimator().model_data, role=..., framework_version=...)",
    **dict.fromkeys(
        ("transfer_learning_tuner", "identical_dataset_and_algorithm_tuner"),
        "warm starts are not supported: make a Tuner with narrower hyperparameter_ranges",
    ),
}


@hide_frames(ScriptmodeError)
class Tuner:
    """A search for the best hyperparameters of an estimator; `fit` starts a tuning job.

    Arguments have the names, meanings and defaults of the SageMaker SDK v2 ``HyperparameterTuner``, which is another
    name of this class. A tuning job runs training jobs of the estimator with different hyperparameters, several at
    once, on the estimator's platform. On this machine it needs Optuna (``pip install 'scriptmode[tuner]'``).

    Args:
        estimator: The `Estimator` of the training jobs.
        objective_metric_name: The metric to optimize, one of ``metric_definitions``. The last value that a training
            job logs is its objective.
        hyperparameter_ranges: An `IntegerParameter`, a `ContinuousParameter` or a `CategoricalParameter` for each
            hyperparameter to search, by name.
        metric_definitions: Metrics to find in the log, as the estimator's argument, which is the default.
        strategy: ``Bayesian``, ``Random``, ``Grid`` (all combinations of categorical parameters) or ``Hyperband``
            (many training jobs, of which the worse ones are stopped early).
        objective_type: ``Maximize`` or ``Minimize``.
        max_jobs: Number of training jobs; by default 1, and for a grid all combinations.
        max_parallel_jobs: How many of them run at once.
        max_runtime_in_seconds: Time limit of the tuning job, after which its training jobs are stopped.
        tags: Tags of the tuning job and its training jobs, beside those of the estimator.
        base_tuning_job_name: The beginning of the names of tuning jobs.
        strategy_config: The service's StrategyConfig: for Hyperband, the least and the greatest number of values of
            the objective that a training job logs,
            ``{"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 27}}``.
        early_stopping_type: ``Auto`` stops training jobs whose objective is worse than the median of the others at the
            same point; ``Off`` does not.
        random_seed: Seed of the search, for the same values again.
        others: Other arguments of the SageMaker SDK; they are refused unless they have no effect.

    Raises:
        SpecError: For values that cannot make a tuning job.
        TypeError: For names that no version of the SDK knows.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments of the SageMaker SDK
        self,
        estimator: Estimator,
        objective_metric_name: str,
        hyperparameter_ranges: Mapping[str, IntegerParameter | ContinuousParameter | CategoricalParameter],
        metric_definitions: Any = None,
        strategy: str = "Bayesian",
        objective_type: str = "Maximize",
        max_jobs: int | None = None,
        max_parallel_jobs: int = 1,
        max_runtime_in_seconds: int | None = None,
        tags: Any = None,
        base_tuning_job_name: str | None = None,
        *,
        strategy_config: Any = None,
        early_stopping_type: str = "Off",
        random_seed: int | None = None,
        **others: Any,
    ) -> None:
        _refuse(others)
        if not isinstance(estimator, Estimator):
            raise invalid("estimator", f"is {estimator!r}", "give a scriptmode.Estimator or scriptmode.TensorFlow")
        if base_tuning_job_name is not None and (not isinstance(base_tuning_job_name, str) or not base_tuning_job_name):
            raise invalid("base_tuning_job_name", f"is {base_tuning_job_name!r}", "give the beginning of a name")
        self.estimator: Estimator | None = estimator
        self._base_name = base_tuning_job_name
        self._metrics = arguments.metric_definitions(metric_definitions)
        self._tags = arguments.tags(tags)
        self._spec: TuningJobSpec | None = TuningJobSpec(
            objective=objective_metric_name,
            ranges=dict(hyperparameter_ranges) if hasattr(hyperparameter_ranges, "keys") else hyperparameter_ranges,  # type: ignore[arg-type]
            objective_type=objective_type,
            strategy=strategy,
            max_jobs=max_jobs,
            max_parallel_jobs=max_parallel_jobs,
            early_stopping=early_stopping_type,
            random_seed=random_seed,
            max_runtime=max_runtime_in_seconds,
            strategy_config=strategy_config,
        )
        self._latest: TuningJob | None = None
        self._check_objective(self._definitions(estimator))

    @classmethod
    def attach(
        cls, tuning_job_name: str, sagemaker_session: object = None, *, platform: Platform | str | None = None
    ) -> Tuner:
        """Return a tuner for a tuning job that was started before, by this process or another.

        A tuning job of this machine whose process was killed is continued. The tuner has no estimator; `best_estimator`
        returns one.

        Args:
            tuning_job_name: The tuning job's name.
            sagemaker_session: A session as the estimators take it; only its account, or its machine, is asked then.
            platform: ``"local"``, ``"sagemaker"`` or a platform; by default this machine is asked, then Amazon
                SageMaker.

        Raises:
            JobNotFoundError: Where no such tuning job exists.
            SpecError: For arguments that contradict each other.
        """
        if not isinstance(tuning_job_name, str) or not tuning_job_name:
            raise invalid("tuning_job_name", f"is {tuning_job_name!r}", "give a tuning job's name")
        if platform is not None and sagemaker_session is not None:
            raise invalid("platform", "and sagemaker_session both say where the tuning job is", "keep one")
        if platform is None:
            where = find_tuning_platform(tuning_job_name, sagemaker_session)
        else:
            where = resolve_platform(platform)
            tuning_service(where).describe(tuning_job_name)
        tuner = cls.__new__(cls)
        vars(tuner).update(estimator=None, _spec=None, _latest=TuningJob(tuning_job_name, where))
        return tuner

    def __getattr__(self, name: str) -> Any:
        """Raise the error of an attribute that does not exist, with what to do instead."""
        hint = _MISSING_METHODS.get(name) or did_you_mean(name, [each for each in dir(self) if each[0] != "_"])
        raise AttributeError(str(Problem(f"Tuner has no attribute {name!r}", hint)))

    def __repr__(self) -> str:
        if self._spec is None:
            return f"Tuner(attached to {self._job.name!r})"
        ranges = ", ".join(self._spec.ranges)
        return f"Tuner({self.estimator!r}, {self._spec.objective_type.lower()} {self._spec.objective!r} by {ranges})"

    @property
    def latest_tuning_job(self) -> TuningJob | None:
        """The handle of the tuning job that `fit` started last, or that the tuner is attached to."""
        return self._latest

    @property
    def sagemaker_session(self) -> Session:
        """The estimator's session; that of the tuning job's platform for a tuner that is attached."""
        found: Session = self._job.sagemaker_session if self.estimator is None else self.estimator.sagemaker_session
        return found

    @property
    def _job(self) -> TuningJob:
        if self._latest is None:
            raise SpecError(
                "this tuner has no tuning job yet",
                argument="job_name",
                advice="call fit() or Tuner.attach(name) first",
            )
        return self._latest

    def hyperparameter_ranges(self) -> dict[str, Any]:
        """Return the ranges as the service describes them: its ParameterRanges."""
        if self._spec is None:
            found: dict[str, Any] = self.describe()["HyperParameterTuningJobConfig"]["ParameterRanges"]
            return found
        is_script = self.estimator is not None and self.estimator.spec.script is not None
        return tuning.render_ranges(self._spec.ranges, script_mode=is_script)

    def request(self, inputs: object = None, *, job_name: str | None = None) -> dict[str, Any]:
        """Return the CreateHyperParameterTuningJob request that `fit` would send, after the same checks.

        Nothing is stored.

        Args:
            inputs: The inputs, as the estimator's ``fit`` takes them.
            job_name: The tuning job's name; by default a new one.

        Raises:
            SpecError: For arguments that cannot make a tuning job.
            RequestError: With everything for which the service would refuse the request.
        """
        return self._prepare(inputs, job_name)[0]

    def fit(
        self,
        inputs: object = None,
        job_name: str | None = None,
        include_cls_metadata: bool = False,  # noqa: FBT001, FBT002, ARG002 - the SageMaker SDK's, without effect
        *,
        wait: bool = True,
        logs: bool | str = True,
    ) -> TuningJob:
        """Start a tuning job. Each call starts a new one.

        Args:
            inputs: The inputs of the training jobs, as the estimator's ``fit`` takes them.
            job_name: The tuning job's name, at most 32 characters; by default a new one.
            include_cls_metadata: Without effect; an argument of the SageMaker SDK.
            wait: Whether to wait until the tuning job has ended. An interrupt leaves it running.
            logs: Whether to display its progress while waiting.

        Returns:
            The handle of the tuning job.

        Raises:
            SpecError: For arguments that cannot make a tuning job.
            RequestError: With everything for which the service would refuse the request, before anything is stored.
            JobExistsError: Where a tuning job of that name exists; ``Tuner.attach`` continues it.
            MissingPackageError: Where Optuna is not installed and the training jobs are of this machine.
            TuningJobFailed: Where the tuning job failed, after waiting.
        """
        require_bool("wait", wait)
        shown = arguments.shows_logs(logs) and wait
        request, estimator, submission = self._prepare(inputs, job_name)
        estimator._store_files(*submission, shown=shown)  # noqa: SLF001 - the files of the estimator's own request
        job = TuningJob(request["HyperParameterTuningJobName"], estimator.platform)
        try:
            tuning_service(job.platform).create(request)
        except KeyboardInterrupt:
            sys.stderr.write(f"\nTuning job {job.name} may have been started: Tuner.attach({job.name!r})\n")
            raise
        self._latest = job
        if shown:
            log_lines.write_line(tuning_lines.describe_start(tuning.parse_tuning_description(request)))
        if wait:
            job.wait(logs=shown)
        return job

    def wait(self, *, logs: bool | str = True) -> dict[str, Any]:
        """Wait until the tuning job has ended, and display its progress.

        An interrupt leaves the tuning job running.

        Args:
            logs: Whether to display the progress.

        Returns:
            The description of the tuning job, which completed or was stopped.

        Raises:
            TuningJobFailed: Where the tuning job failed.
        """
        return self._job.wait(logs=arguments.shows_logs(logs))

    def stop_tuning_job(self) -> None:
        """Request that the tuning job and its running training jobs stop, and return at once."""
        self._job.stop()

    def describe(self) -> dict[str, Any]:
        """Return the description of the tuning job: the response of DescribeHyperParameterTuningJob."""
        return self._job.describe()

    def best_training_job(self) -> str:
        """Return the name of the training job with the best objective so far.

        Raises:
            DataError: While no training job has ended with an objective.
        """
        return self._job.best_training_job()

    def best_estimator(self, best_training_job: str | Mapping[str, Any] | None = None) -> Estimator:
        """Return an estimator with the arguments and hyperparameters of the best training job.

        Its ``latest_training_job`` is that training job, whose ``model`` is its model.

        Args:
            best_training_job: Another training job, by name or as the service describes it.

        Raises:
            DataError: While no training job has ended with an objective.
        """
        name = best_training_job or self.best_training_job()
        if not isinstance(name, str):
            name = name["TrainingJobName"]
        kind = Estimator if self.estimator is None else type(self.estimator)
        return kind.attach(name, platform=self._job.platform)

    def analytics(self) -> TuningResults:
        """Return the training jobs so far, one row each: hyperparameters, status, objective, times.

        They are displayed as a table; ``dataframe()`` returns a ``pandas.DataFrame``, ``plot()`` a figure.
        """
        return self._job.analytics()

    def plot(self) -> Any:
        """Draw the objective of each training job, the best one so far, and the objective by each hyperparameter.

        Returns:
            A ``matplotlib.figure.Figure``, which a notebook displays.

        Raises:
            DataError: While no training job has an objective.
            MissingPackageError: Where Matplotlib is not installed.
        """
        return self.analytics().plot()

    def _prepare(self, inputs: object, job_name: str | None) -> tuple[dict[str, Any], Estimator, Any]:
        """Return the validated request, the estimator, and what the estimator is to store for it."""
        if self.estimator is None or self._spec is None:
            raise SpecError(
                f"this tuner is attached to tuning job {self._job.name} and has no estimator",
                argument="estimator",
                advice="make a new Tuner(estimator, ...) for another tuning job",
            )
        estimator = self.estimator
        service = tuning_service(estimator.platform)
        base = self._base_name or estimator.spec.base_job_name
        name = _NAMES.fresh(base) if job_name is None else names.check_tuning_job_name(job_name)
        submission = estimator._prepare(inputs, name, None)  # noqa: SLF001 - a tuning job is the estimator's request
        body = submission[0]
        definitions = self._definitions(estimator)
        self._check_objective(definitions)
        given = [{"Name": name, "Regex": regex} for name, regex in definitions]
        algorithm = {**body["AlgorithmSpecification"], **({"MetricDefinitions": given} if given else {})}
        tags = {**{tag["Key"]: tag["Value"] for tag in body.get("Tags", ())}, **dict(self._tags)}
        training = {**body, "AlgorithmSpecification": algorithm}
        if tags:
            training["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        request = tuning.render_tuning_request(training, self._spec)
        service.validate(request)
        return request, estimator, submission

    def _definitions(self, estimator: Estimator) -> tuple[tuple[str, str], ...]:
        return tuple(self._metrics or estimator.spec.algorithm.metric_definitions)

    def _check_objective(self, definitions: tuple[tuple[str, str], ...]) -> None:
        """Raise `SpecError` for an objective that no log line is searched for; built-in algorithms define their own."""
        if self._spec is None or self.estimator is None:
            return
        objective, known = self._spec.objective, [name for name, _ in definitions]
        if objective in known or (not known and self.estimator.spec.script is None):
            return
        what = f"is {objective!r}, which is not defined"
        if known:
            raise invalid("objective_metric_name", f"{what}: metric_definitions has {', '.join(known)}", "use one")
        example = f'metric_definitions=[{{"Name": {objective!r}, "Regex": "{objective}=([0-9.]+)"}}]'
        raise invalid("objective_metric_name", what, f"say how the log shows it: {example}")


@hide_frames(ScriptmodeError)
class TuningJob:
    """A tuning job that was started, identified by its name on a platform.

    Args:
        name: The tuning job's name.
        platform: The platform that has it.
    """

    def __init__(self, name: str, platform: Platform) -> None:
        self.name = name
        self.platform = platform

    def __repr__(self) -> str:
        return f"TuningJob({self.name!r})"

    @property
    def job_name(self) -> str:
        """The name, under the attribute's name of the SageMaker SDK."""
        return self.name

    @property
    def sagemaker_session(self) -> Session:
        """The session of the platform, or the one that the platform was given."""
        from scriptmode.sagemaker_session import session_of_platform

        return session_of_platform(self.platform)

    @property
    def _service(self) -> TuningService:
        return tuning_service(self.platform)

    def describe(self) -> dict[str, Any]:
        """Return the description of the tuning job: the response of DescribeHyperParameterTuningJob."""
        return self._service.describe(self.name)

    def stop(self) -> None:
        """Request that the tuning job and its running training jobs stop, and return at once."""
        self._service.stop(self.name)

    def best_training_job(self) -> str:
        """Return the name of the training job with the best objective so far; raise `DataError` without one."""
        description = tuning.parse_tuning_description(self.describe())
        if description.best is None:
            has_ended = description.status in ENDED
            raise DataError(
                f"tuning job {self.name} is {description.status} and has no best training job",
                advice="see analytics()" if has_ended else "wait until a training job has ended",
            )
        return description.best.name

    def analytics(self) -> TuningResults:
        """Return the training jobs so far, as `Tuner.analytics` does."""
        return TuningResults(tuning.parse_tuning_description(self.describe()), self._training_jobs())

    def training_jobs(self) -> list[TrainingJob]:
        """Return the handles of the training jobs so far, in the order of their creation."""
        return [TrainingJob(each.name, self.platform) for each in self._training_jobs()]

    def _training_jobs(self) -> list[TunedJob]:
        return [tuning.parse_training_summary(each) for each in self._service.training_jobs(self.name)]

    def wait(self, *, logs: bool = True) -> dict[str, Any]:
        """Wait until the tuning job has ended, as `Tuner.wait` does."""
        try:
            description = self._follow(shown=logs)
        except KeyboardInterrupt:
            attached = f"Tuner.attach({self.name!r})"
            sys.stderr.write(
                f"\nTuning job {self.name} is still running. Follow it again: {attached}.wait(). "
                f"Stop it: {attached}.stop_tuning_job()\n"
            )
            raise KeyboardInterrupt from None  # the traceback of the waiting loop does not help the user
        if description.status == FAILED:
            raise TuningJobFailed(
                f"tuning job {self.name} failed: {description.failure_reason or 'no reason is known'}",
                description.response,
                advice=f"see Tuner.attach({self.name!r}).analytics()",
            )
        return dict(description.response)

    def _follow(self, *, shown: bool) -> TuningDescription:
        clock = self.platform.clock
        retry = Retry(clock, f"Tuning job {self.name} is still running. Follow it: Tuner.attach({self.name!r}).wait()")
        pause = max(_POLL_SECONDS, self.platform.poll_seconds)
        with tuning_lines.TuningLines(self._training_jobs) as lines:
            while True:
                description = tuning.parse_tuning_description(retry.call(self.describe))
                if shown:
                    lines.update(description)
                if description.status in ENDED:
                    if shown:
                        lines.end(description)
                    return description
                clock.sleep(pause)


def _refuse(others: Mapping[str, Any]) -> None:
    """Raise for arguments that the tuner does not have; those of the SageMaker SDK may have their default."""
    for name, value in others.items():
        if name not in _UNSUPPORTED:
            known = inspect.signature(Tuner).parameters.keys() - {"others"}
            raise TypeError(str(Problem(f"Tuner has no argument {name!r}", did_you_mean(name, known))))
        if value is not None and value is not False:
            instead = _UNSUPPORTED[name]
            raise invalid(name, f"is {value!r}, but scriptmode does not support it", instead)


class HyperparameterTuner(Tuner):
    """A `Tuner`, under the name of the SageMaker SDK v2."""
