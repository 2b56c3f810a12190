"""Jobs that the toolkit hands to AWS's TensorFlow adapter, as AWS's TensorFlow images are set up."""

from __future__ import annotations

from contract.toolkit.case import Case, encoded
from contract.toolkit.hosts import MIXED

IMAGE = {"SAGEMAKER_TRAINING_MODULE": "adapter:main"}
TUNING = {**IMAGE, "TRAINING_JOB_NAME": "tuning-7"}
#: A tuner sends one name with all its jobs; `TUNING` has the name that the platform gave this one.
TUNER = {"_tuning_objective_metric": "loss", "sagemaker_job_name": "tuner"}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
BESIDE = {**MIXED, "current_host": "algo-1", "current_group_name": "data"}

CASES = [
    Case("adapter: one host", encoded(epochs=2, model_dir="/opt/ml/model"), variables=IMAGE),
    Case("adapter: mirrored, one host", encoded(**MIRRORED), variables=IMAGE),
    Case("adapter: parameter servers, one host", encoded(sagemaker_parameter_server_enabled=True), variables=IMAGE),
    Case("adapter: beside the group", encoded(**MIRRORED, sagemaker_distribution_instance_groups=["trainers"]), BESIDE, variables=IMAGE),
    Case("adapter: tuning", encoded(**TUNER, model_dir="file:///shared"), variables=TUNING),
    Case("adapter: tuning in the host's folder", encoded(**TUNER, model_dir="/opt/ml/model"), variables=TUNING),
    Case("adapter: tuning without a model_dir", encoded(**TUNER, epochs=2), variables=TUNING),
    Case("adapter: ends badly", variables={**IMAGE, "END_WITH": "3"}, ends=3),
]  # fmt: skip
