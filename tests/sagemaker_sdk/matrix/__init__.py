"""The calls that are compared: every argument of the SageMaker SDK v2 that ends in a CreateTrainingJob field."""

from __future__ import annotations

from sagemaker_sdk.matrix import hosts, inputs, monitoring, scripts

#: Both send them.
CASES = [*hosts.cases(), *inputs.cases(), *scripts.cases(), *monitoring.cases()]
