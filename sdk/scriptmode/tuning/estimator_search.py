"""One estimator of a tuning job with what is searched for it, and its part of the request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.core.request import tuning
from scriptmode.core.request.render import render_request
from scriptmode.errors import invalid
from scriptmode.estimator import Estimator

if TYPE_CHECKING:
    from scriptmode.core.spec.tuning_job import TuningJobSpec


@dataclass(frozen=True)
class EstimatorSearch:
    """An estimator and its search.

    Attributes:
        metrics: Names and regular expressions in place of the estimator's metric definitions; empty for those.
        tags: Tags of the tuning job beside those of the estimator.
        instances: The service's InstanceConfigs; ``None`` for the estimator's own hosts.
    """

    estimator: Estimator
    spec: TuningJobSpec
    metrics: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    instances: tuple[dict[str, Any], ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise invalid("estimator", f"is {self.estimator!r}", "give a scriptmode.Estimator or scriptmode.TensorFlow")

    def ranges(self) -> dict[str, Any]:
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
        what = f"is {objective!r}, which is not defined"
        if known:
            raise invalid("objective_metric_name", f"{what}: metric_definitions has {', '.join(known)}", "use one")
        example = f'metric_definitions=[{{"Name": {objective!r}, "Regex": "{objective}=([0-9.]+)"}}]'
        raise invalid("objective_metric_name", what, f"say how the log shows it: {example}")
