"""`Tuner`: arguments of the SageMaker SDK's ``HyperparameterTuner``, turned into a tuning job."""

from __future__ import annotations

import copy
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scriptmode._core.handle import log_lines
from scriptmode._core.platforms.job_platforms import find_tuning_platform
from scriptmode._core.request import tuning
from scriptmode._core.request.render import render_request
from scriptmode._core.spec import arguments, tuning_job
from scriptmode._core.spec.names import fresh_names
from scriptmode._core.spec.tuning_configurations import (
    WarmStartConfig,
    WarmStartTypes,
    parse_configuration,
    parse_instance_configs,
)
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode._display import tuning_lines
from scriptmode._estimator import Estimator
from scriptmode._tuning.started_tuning_job import TuningJob
from scriptmode.errors import DataError, SpecError, invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from typing_extensions import Self

    from scriptmode._core.platforms.registry import Platform
    from scriptmode._core.spec.parameter_ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from scriptmode._results.tuning_results import TuningResults
    from scriptmode._sagemaker_session import Session

_fresh_name = fresh_names(tuning_job.tuning_job_name, timedelta(seconds=1))


@dataclass(frozen=True)
class _EstimatorSearch:
    """An estimator and its search.

    Attributes:
        metrics: Names and regular expressions in place of the estimator's metric definitions; empty for those.
        tags: Tags of the tuning job beside those of the estimator.
        instances: The service's InstanceConfigs; ``None`` for the estimator's own hosts.
    """

    estimator: Estimator
    spec: tuning_job.TuningJobSpec
    metrics: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    instances: tuple[dict[str, object], ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise invalid("estimator", f"is {self.estimator!r}", "give a scriptmode.Estimator or scriptmode.TensorFlow")

    def ranges(self) -> tuning.Ranges:
        """Return the service's ParameterRanges of the search."""
        return tuning.render_ranges(self.spec.ranges, script_mode=self.estimator.spec.script is not None)

    def prepare(self, inputs: object, name: str) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return the tuning job's request, not validated, and the files that the estimator is to store for it."""
        submission = self.estimator._prepare(inputs, name, None)  # noqa: SLF001 - a tuning job is its request
        body = render_request(submission[0])
        definitions = [{"Name": metric, "Regex": regex} for metric, regex in self.check_objective()]
        algorithm = {**body["AlgorithmSpecification"], **({"MetricDefinitions": definitions} if definitions else {})}
        tags = {**{tag["Key"]: tag["Value"] for tag in body.get("Tags", ())}, **dict(self.tags)}
        training = {**body, "AlgorithmSpecification": algorithm}
        if tags:
            training["Tags"] = [{"Key": key, "Value": value} for key, value in tags.items()]
        request = tuning.render_tuning_request(training, self.spec)
        if self.instances is not None:
            request = tuning.with_instance_configs(request, self.instances)
        return request, submission

    def check_objective(self) -> tuple[tuple[str, str], ...]:
        """Return the metric definitions; raise `SpecError` for an objective that no log line is searched for.

        Built-in algorithms define their own.
        """
        definitions = tuple(self.metrics or self.estimator.spec.algorithm.metric_definitions)
        objective, known = self.spec.objective, [name for name, _ in definitions]
        if objective in known or (not known and self.estimator.spec.script is None):
            return definitions
        what = f"is {objective!r}, which is not one of metric_definitions, {known}"
        example = f'metric_definitions=[{{"Name": {objective!r}, "Regex": "{objective}=([0-9.]+)"}}]'
        raise invalid("objective_metric_name", what, f"say how the log shows it: {example}")


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
        estimator_name: A name of the estimator, as `create` has for several.
        random_seed: Seed of the search, for the same values again.
        warm_start_config: A `WarmStartConfig`: earlier tuning jobs to learn from.
        completion_criteria_config: A `TuningJobCompletionCriteriaConfig`: conditions that end the tuning job.
        autotune: Whether the service chooses ranges for the hyperparameters of the estimator that have none, and
            settings that were left out.
        hyperparameters_to_keep_static: Names of hyperparameters that ``autotune`` leaves as they are.

    ``warm_start_config``, ``completion_criteria_config``, ``autotune`` and several estimators need Amazon SageMaker.

    Raises:
        SpecError: For values that cannot make a tuning job.
        TypeError: For names that no version of the SDK knows.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments of the SageMaker SDK
        self,
        estimator: Estimator,
        objective_metric_name: str,
        hyperparameter_ranges: Mapping[str, IntegerParameter | ContinuousParameter | CategoricalParameter],
        metric_definitions: object = None,
        strategy: str = "Bayesian",
        objective_type: str = "Maximize",
        max_jobs: int | None = None,
        max_parallel_jobs: int = 1,
        max_runtime_in_seconds: int | None = None,
        tags: object = None,
        base_tuning_job_name: str | None = None,
        *,
        warm_start_config: object = None,
        strategy_config: object = None,
        completion_criteria_config: object = None,
        early_stopping_type: str = "Off",
        estimator_name: str | None = None,
        random_seed: int | None = None,
        autotune: bool = False,
        hyperparameters_to_keep_static: Iterable[str] | None = None,
    ) -> None:
        self._base_name = base_tuning_job_name
        #: The handle of the tuning job that `fit` started last, or that the tuner is attached to.
        self.latest_tuning_job: TuningJob | None = None
        spec = tuning_job.TuningJobSpec(
            objective=objective_metric_name,
            ranges=dict(hyperparameter_ranges) if isinstance(hyperparameter_ranges, Mapping) else hyperparameter_ranges,
            objective_type=objective_type,
            strategy=strategy,
            max_jobs=max_jobs,
            max_parallel_jobs=max_parallel_jobs,
            early_stopping=early_stopping_type,
            random_seed=random_seed,
            max_runtime=max_runtime_in_seconds,
            strategy_config=parse_configuration("strategy_config", strategy_config),
            warm_start=parse_configuration("warm_start_config", warm_start_config),
            completion_criteria=parse_configuration("completion_criteria_config", completion_criteria_config),
            autotune=autotune,
            kept_static=arguments.texts("hyperparameters_to_keep_static", hyperparameters_to_keep_static),
        )
        search = _EstimatorSearch(
            estimator, spec, arguments.metric_definitions(metric_definitions), arguments.tags(tags)
        )
        search.check_objective()
        #: What is searched for each estimator by its name, which is "" for a single one without a name. It is empty
        #: until the tuner of `attach` needs it.
        self._searches: dict[str, _EstimatorSearch] = {estimator_name or "": search}

    @classmethod
    def create(
        cls,
        estimator_dict: Mapping[str, Estimator],
        objective_metric_name_dict: Mapping[str, str],
        hyperparameter_ranges_dict: Mapping[str, object],
        metric_definitions_dict: Mapping[str, object] | None = None,
        *,
        hyperparameters_to_keep_static_dict: Mapping[str, Iterable[str]] | None = None,
        **settings: Any,
    ) -> Self:
        """Return a tuner of one tuning job whose training jobs are of several estimators; see the constructor.

        Args:
            estimator_dict: The estimators by names, which the other dicts have too. `fit` takes a dict of the inputs.
            objective_metric_name_dict: The objective of each.
            hyperparameter_ranges_dict: The ranges of each.
            metric_definitions_dict: Metric definitions of some.
            hyperparameters_to_keep_static_dict: ``hyperparameters_to_keep_static`` of some.
            settings: The constructor's other arguments, for all of them.
        """
        keys = sorted(estimator_dict)
        objectives = _by_name("objective_metric_name_dict", objective_metric_name_dict, keys, is_whole=True)
        ranges = _by_name("hyperparameter_ranges_dict", hyperparameter_ranges_dict, keys, is_whole=True)
        metrics = _by_name("metric_definitions_dict", metric_definitions_dict or {}, keys)
        static = _by_name("hyperparameters_to_keep_static_dict", hyperparameters_to_keep_static_dict or {}, keys)
        made = [
            cls(
                estimator_dict[name],
                objectives[name],
                ranges[name],
                metrics.get(name),
                estimator_name=name,
                hyperparameters_to_keep_static=static.get(name),
                **settings,
            )
            for name in keys
        ]
        made[0]._searches = {name: search for tuner in made for name, search in tuner._searches.items()}  # noqa: SLF001
        return made[0]

    @classmethod
    def attach(
        cls, tuning_job_name: str, sagemaker_session: object = None, *, platform: Platform | str | None = None
    ) -> Tuner:
        """Return a tuner for a tuning job that was started before, by this process or another.

        A tuning job of this machine whose process was killed is continued. The first look at ``estimator``, and `fit`,
        make the tuner and its estimator of the tuning job's description, which has all their arguments but the tags.
        Arguments and errors are those of `TrainingJob.attach`.
        """
        where = find_tuning_platform(tuning_job_name, sagemaker_session, platform)
        tuner = cls.__new__(cls)
        vars(tuner).update(_searches={}, latest_tuning_job=TuningJob(tuning_job_name, where))
        return tuner

    def _restored(self) -> dict[str, _EstimatorSearch]:
        """Return the searches, which an attached tuner gets of its tuning job's description."""
        if not self._searches:
            job = self._job
            for part in tuning.split_requests(job.describe()):
                request = tuning.estimator_request(part)
                name = part[tuning.DEFINITION].get("DefinitionName", "")
                search = _EstimatorSearch(
                    Estimator._of_job(request, {}, job.platform),  # noqa: SLF001
                    tuning.parse_spec(part, script_mode=contract.PROGRAM in request["HyperParameters"]),
                    arguments.metric_definitions(request["AlgorithmSpecification"].get("MetricDefinitions")),
                    instances=tuning.instance_configs_of(part),
                )
                vars(self).update(
                    _base_name=tuning_job.base_of_tuning_job(job.name), _searches={**self._searches, name: search}
                )
        return self._searches

    def __repr__(self) -> str:
        if not self._searches:
            return f"Tuner(attached to {self._job.name!r})"
        return f"Tuner({', '.join(repr(search.estimator) for search in self._searches.values())})"

    @property
    def sagemaker_session(self) -> Session:
        """The estimator's session; that of the tuning job's platform for a tuner that is attached."""
        origins = [*(search.estimator for search in self._searches.values()), self.latest_tuning_job]
        session: Session = next(origin for origin in origins if origin is not None).sagemaker_session
        return session

    @property
    def estimator(self) -> Estimator | None:
        """The estimator; ``None`` where there are several, `estimator_dict`."""
        search = self._restored().get("")
        return search.estimator if search else None

    @property
    def estimator_dict(self) -> dict[str, Estimator]:
        """The estimators of `create` by their names; none for a tuner of one estimator."""
        return {name: search.estimator for name, search in self._restored().items() if name}

    def hyperparameter_ranges(self) -> tuning.Ranges | None:
        """Return the ranges as the service describes them: its ParameterRanges; ``None`` for several estimators."""
        search = self._restored().get("")
        return search.ranges() if search else None

    def hyperparameter_ranges_dict(self) -> dict[str, tuning.Ranges] | None:
        """Return the ranges of each of several estimators; ``None`` for one."""
        return {name: search.ranges() for name, search in self._restored().items() if name} or None

    def override_resource_config(self, instance_configs: object) -> None:
        """Set the hosts that training jobs may have, in place of the estimator's.

        Amazon SageMaker chooses among them; this machine has no choice of hosts.

        Args:
            instance_configs: A list of up to six `InstanceConfig` in the order of preference, a dict of such lists by
                the names of `estimator_dict`, or ``None`` for the estimator's own hosts.

        Raises:
            SpecError: For another value.
        """
        searches = self._restored()
        is_for_each = instance_configs is None or "" in searches
        given = dict.fromkeys(searches, instance_configs) if is_for_each else instance_configs
        changed = {
            name: replace(searches[name], instances=parse_instance_configs(configs))
            for name, configs in _by_name("instance_configs", given, searches).items()
        }
        self._searches = {**searches, **changed}

    def transfer_learning_tuner(
        self, additional_parents: Iterable[str] | None = None, estimator: Estimator | None = None
    ) -> Self:
        """Return a tuner that learns from this one's tuning job, for another estimator or data.

        Args:
            additional_parents: Names of further tuning jobs to learn from.
            estimator: The other estimator; by default the same.

        Raises:
            SpecError: There is no tuning job yet, or there are several estimators.
        """
        return self._warm_started(WarmStartTypes.TRANSFER_LEARNING, additional_parents, estimator)

    def identical_dataset_and_algorithm_tuner(self, additional_parents: Iterable[str] | None = None) -> Self:
        """Return a tuner that continues this one's tuning job, with the same data; see `transfer_learning_tuner`."""
        return self._warm_started(WarmStartTypes.IDENTICAL_DATA_AND_ALGORITHM, additional_parents, None)

    def _warm_started(
        self, kind: WarmStartTypes, additional: Iterable[str] | None, estimator: Estimator | None
    ) -> Self:
        parents = {self._job.name, *(additional or ())}
        searches = self._restored()
        if len(searches) > 1:
            raise invalid("estimator_dict", "has several estimators, which have no warm start", "make a Tuner of one")
        ((name, search),) = searches.items()
        spec = replace(search.spec, warm_start=WarmStartConfig(kind, parents))
        made = copy.copy(self)
        search = replace(search, spec=spec, estimator=estimator or search.estimator)
        vars(made).update(_searches={name: search}, latest_tuning_job=None)
        return made

    def request(self, inputs: object = None, *, job_name: str | None = None) -> dict[str, Any]:
        """Return the CreateHyperParameterTuningJob request that `fit` would send, after the same checks.

        Nothing is stored: the source archives that it names may not exist. `stored_request` stores them. Arguments and
        errors are those of `fit`.
        """
        return self._prepare(inputs, job_name)[0]

    def stored_request(self, inputs: object = None, *, job_name: str | None = None) -> dict[str, Any]:
        """Store the sources and return the request of `request`, for another client that starts the tuning job."""
        request, submissions = self._prepare(inputs, job_name)
        for estimator, submission in submissions:
            estimator._store_files(*submission, shown=False)  # noqa: SLF001
        return request

    def fit(
        self,
        inputs: object = None,
        job_name: str | None = None,
        include_cls_metadata: bool = False,  # noqa: FBT001, FBT002, ARG002 - the SageMaker SDK's, without effect
        *,
        wait: bool = True,
        logs: bool | str = True,
    ) -> TuningJob:
        """Start a tuning job, and return its handle. Each call starts a new one.

        Args:
            inputs: The inputs of the training jobs, as the estimator's ``fit`` takes them.
            job_name: The tuning job's name, at most 32 characters; by default a new one.
            include_cls_metadata: Without effect; an argument of the SageMaker SDK.
            wait: Whether to wait until the tuning job has ended. An interrupt leaves it running.
            logs: Whether to display its progress while waiting.

        Raises:
            SpecError: For arguments that cannot make a tuning job.
            RequestError: With everything for which the service would refuse the request, before anything is stored.
            JobExistsError: Where a tuning job of that name exists; ``Tuner.attach`` continues it.
            MissingPackageError: Where Optuna is not installed and the training jobs are of this machine.
            TuningJobFailed: Where the tuning job failed, after waiting.
        """
        wait = truth_value("wait", wait)
        shown = arguments.shows_logs(logs) and wait
        from scriptmode._core.handle import early_checks

        request, submissions = self._prepare(inputs, job_name)
        at_once = request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"]
        for estimator, submission in submissions:
            warnings = early_checks.check_job(estimator.platform, *submission[:2], jobs=at_once)
            log_lines.warn(warnings, sys.stderr)
        for estimator, submission in submissions:
            estimator._store_files(*submission, shown=shown)  # noqa: SLF001 - the files of the estimator's own request
        job = TuningJob(request["HyperParameterTuningJobName"], submissions[0][0].platform)
        try:
            job.platform.tuning.create(request)
        except KeyboardInterrupt:
            sys.stderr.write(f"\nTuning job {job.name} may have been started: Tuner.attach({job.name!r})\n")
            raise
        self.latest_tuning_job = job
        if shown:
            log_lines.write_line(tuning_lines.describe_start(tuning.parse_tuning_description(request)))
        if wait:
            job.wait(logs=shown)
        return job

    def best_estimator(self, best_training_job: str | Mapping[str, object] | None = None) -> Estimator:
        """Return an estimator with the arguments and hyperparameters of the best training job.

        Its ``latest_training_job`` is that training job, whose ``model`` is its model.

        Args:
            best_training_job: Another training job, by name or as the service describes it.

        Raises:
            DataError: While no training job has ended with an objective.
        """
        best = best_training_job or self.best_training_job()
        name = best if isinstance(best, str) else str(best["TrainingJobName"])
        kinds = {type(search.estimator) for search in self._searches.values()}
        kind = kinds.pop() if len(kinds) == 1 else Estimator
        return kind.attach(name, platform=self._job.platform)

    @property
    def _job(self) -> TuningJob:
        if self.latest_tuning_job is None:
            raise SpecError(
                "this tuner has no tuning job yet", "call fit() or Tuner.attach(name) first", argument="job_name"
            )
        return self.latest_tuning_job

    def wait(self, *, logs: bool | str = True) -> dict[str, Any]:
        """Wait until the tuning job has ended, and display its progress; return its description.

        An interrupt leaves the tuning job running.

        Args:
            logs: Whether to display the progress.

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
        description = tuning.parse_tuning_description(self.describe())
        if description.best is None:
            what = f"tuning job {description.name} is {description.status} and has no best training job"
            raise DataError(what, "no training job that ended has a value of its objective: see analytics()")
        return description.best.name

    def analytics(self) -> TuningResults:
        """Return the training jobs so far, one row each: hyperparameters, status, objective, times.

        They are displayed as a table; ``dataframe()`` returns a ``pandas.DataFrame``.
        """
        from scriptmode._results.tuning_results import TuningResults

        return TuningResults(tuning.parse_tuning_description(self.describe()), self._job.training_jobs())

    def _prepare(
        self, inputs: Any, job_name: str | None
    ) -> tuple[dict[str, Any], list[tuple[Estimator, tuple[Any, ...]]]]:
        """Return the validated request, and each estimator with what it is to store for it."""
        searches = self._restored()
        first = next(iter(searches.values())).estimator
        name = tuning_job.check_tuning_job_name(job_name) if job_name is not None else ""
        name = name or _fresh_name(self._base_name or first.spec.base_job_name)
        channels = _by_name("inputs", {"": inputs} if "" in searches else inputs or {}, searches)
        prepared = {key: search.prepare(channels.get(key), name) for key, search in searches.items()}
        requests = {key: request for key, (request, _) in prepared.items()}
        request = requests[""] if "" in requests else tuning.combine_requests(requests)
        first.platform.tuning.validate(request)
        return request, [(searches[key].estimator, submission) for key, (_, submission) in prepared.items()]


def _by_name(argument: str, given: object, names: Collection[str], *, is_whole: bool = False) -> Mapping[str, Any]:
    """Return a dict by names of estimators; raise `SpecError` for another one, and one that is not ``is_whole``."""
    if not isinstance(given, Mapping) or not {*given} <= {*names} or (is_whole and len(given) < len(names)):
        raise invalid(argument, f"is {given!r}", f"give a dict by the names of the estimators: {', '.join(names)}")
    return given


class HyperparameterTuner(Tuner):
    """A `Tuner`, under the name of the SageMaker SDK v2."""
