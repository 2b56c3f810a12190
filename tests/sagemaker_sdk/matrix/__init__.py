"""The calls that are compared: every argument of the SageMaker SDK v2 that ends in a CreateTrainingJob field."""

from __future__ import annotations

from sagemaker_sdk.matrix import hosts, inputs, monitoring, refused, scripts

#: Both send them.
CASES = [*hosts.cases(), *inputs.cases(), *scripts.cases(), *monitoring.cases()]
#: v2 alone sends them; with what scriptmode says instead.
REFUSED = refused.cases()
