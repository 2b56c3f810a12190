"""What the platform's files and variables say: hyperparameters, hosts and channels; and AWS's TensorFlow adapter."""

import json

from contract.toolkit.case import Case, encoded, only_host

#: Any text and any name are compared in `test_variables_against_sagemaker_training.py`; these go through a real start.
TEXTS = {
    "blanks": " two  blanks ",
    "shell": 'it\'s "quoted" `here` $HOME; $(touch x) && a | b > c * ? [a-z] {1,2} ~ # ! back\\slash %s',
    "newline": "first\nsecond\r\n\tthird", "unicode": "données-図-😀-\u00a0-\u202e", "option": "--help", "empty": "",
    "long": "x" * 2500,
}  # fmt: skip
NAMES = ["a", "9", "learning-rate", "a.b.c", "UPPER", "with blank", "größe", "a/b", "-x", "--y", "semi;colon", "it's"]

#: A tuner sends one name with all its jobs; `TUNING` has the name that the platform gave this one.
TUNER = {"_tuning_objective_metric": "loss", "sagemaker_job_name": "tuner"}
TUNING = {"TRAINING_JOB_NAME": "tuning-7"}

OF_HYPERPARAMETERS = [
    Case("hyperparameters: none"),
    Case("hyperparameters: types", encoded(flag=False, none=None, rate=0.1, text="words", list=[1, "a b"], nested={"b": 2, "a": {"x": "'"}})),
    Case("hyperparameters: texts", encoded(**TEXTS)),
    Case("hyperparameters: not texts in the file", {"number": 3, "flag": True, "none": None, "list": [1, "a"], "object": {"a": 1}}),
    Case("hyperparameters: names", {name: json.dumps(name) for name in NAMES}),
    Case("hyperparameters: a name that is empty", {"": '"value"', "z": "1"}),
    Case("hyperparameters: a name with an equals sign", {"a=b": "1", "z": "2"}),
    Case("hyperparameters: names like variables of the toolkit's", encoded(hosts="mine", channels=1, num_cpus=99, hps="x")),
    Case("hyperparameters: surrogates that stand for bytes", {"text": '"\\udc80"'}),
    Case("hyperparameters: half a character", {"text": '"\\ud800"'}),
    Case("hyperparameters: a zero byte", {"text": '"a\\u0000b"'}),
    Case("hyperparameters: too many for one variable", {f"key{n}": json.dumps("x" * 2400) for n in range(90)}),
    Case("hyperparameters: reserved", {
        **encoded(sagemaker_enable_cloudwatch_metrics=False, sagemaker_instance_type="ml.m5.large", sagemaker_=1),
        **encoded(sagemaker_estimator_class_name="TensorFlow", sagemaker_mpi_enabled=False, default_user_module_name="m"),
    }),
    Case("hyperparameters: log level by name", encoded(sagemaker_container_log_level="DEBUG")),
    Case("hyperparameters: tuning with a model_dir", encoded(**TUNER, model_dir="s3://bucket/model"), variables=TUNING),
    Case("hyperparameters: tuning with a model_dir of the host's", encoded(**TUNER, model_dir="/opt/ml/model")),
]  # fmt: skip


NAMES = ["algo-1", "algo-2", "algo-3"]
GROUP = {"instance_group_name": "homogeneousCluster", "instance_type": "ml.c5.xlarge", "hosts": NAMES}
WHOLE = {
    "hosts": NAMES, "network_interface_name": "eth0", "current_instance_type": "ml.c5.xlarge",
    "current_group_name": "homogeneousCluster", "instance_groups": [GROUP],
}  # fmt: skip
MIXED = {
    "hosts": NAMES, "network_interface_name": "eth1", "current_instance_type": "ml.p3.2xlarge",
    "instance_groups": [
        {"instance_group_name": "trainers", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-2", "algo-3"]},
        {"instance_group_name": "data", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    ],
}  # fmt: skip
FILE = {"ContentType": "text/csv", "TrainingInputMode": "File", "RecordWrapperType": "None"}
TOGETHER = encoded(sagemaker_distribution_instance_groups=["trainers"])

OF_HOSTS = [
    Case("hosts: no more than names", resources=only_host()),
    Case("hosts: the first of three", resources={"current_host": "algo-1", "hosts": NAMES}),
    Case("hosts: one group, second", resources={"current_host": "algo-2", **WHOLE}),
    Case("hosts: groups, the larger", resources={"current_host": "algo-3", "current_group_name": "trainers", **MIXED}),
    Case("hosts: groups, without this one's", resources={"current_host": "algo-1", **MIXED}),
    Case("hosts: groups named, no distribution", TOGETHER, {"current_host": "algo-1", "current_group_name": "data", **MIXED}),
    Case("hosts: a name with dots", resources=only_host("ip-10-0-0-1.ec2.internal")),
    Case("hosts: fewer processors than the machine's", cpus=1),
    Case("channels: several", channels={"train": FILE, "eval": {**FILE, "TrainingInputMode": "Pipe"}, "code": {}}),
    Case("channels: odd names", channels={"a-b.c_d": FILE, "9": FILE, "UPPER": FILE}),
    Case("channels: names that differ in case", channels={"train": FILE, "TRAIN": FILE}),
    Case("variables: the platform's", variables={"TRAINING_JOB_NAME": "job-1", "TRAINING_JOB_ARN": "arn:aws:x", "AWS_REGION": "eu-west-1"}),
    Case("variables: two regions", variables={"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "eu-west-2"}),
    Case("variables: names that differ", encoded(sagemaker_job_name="job-2"), variables={"TRAINING_JOB_NAME": "job-1"}),
    Case("variables: the job's own", variables={"MINE": "a b\n'c' $HOME", "EMPTY": "", "SM_HP_OLD": "1", "TF_CONFIG": "{}"}),
    Case("variables: overwritten", encoded(rate=1), variables={"SM_HP_RATE": "old", "SM_HOSTS": "old", "CURRENT_HOST": "old"}),
    Case("variables: the program's place", variables={"PYTHONPATH": "/opt/mine:/opt/ours"}),
]  # fmt: skip


#: The toolkit hands the job to AWS's TensorFlow adapter, as AWS's TensorFlow images are set up.
IMAGE = {"SAGEMAKER_TRAINING_MODULE": "adapter:main"}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
BESIDE = {**MIXED, "current_host": "algo-1", "current_group_name": "data"}

OF_THE_ADAPTER = [
    Case("adapter: one host", encoded(epochs=2, model_dir="/opt/ml/model"), variables=IMAGE),
    Case("adapter: mirrored, one host", encoded(**MIRRORED), variables=IMAGE),
    Case("adapter: parameter servers, one host", encoded(sagemaker_parameter_server_enabled=True), variables=IMAGE),
    Case("adapter: beside the group", encoded(**MIRRORED, sagemaker_distribution_instance_groups=["trainers"]), BESIDE, variables=IMAGE),
    Case("adapter: tuning", encoded(**TUNER, model_dir="file:///shared"), variables={**IMAGE, **TUNING}),
    Case("adapter: tuning in the host's folder", encoded(**TUNER, model_dir="/opt/ml/model"), variables={**IMAGE, **TUNING}),
    Case("adapter: tuning without a model_dir", encoded(**TUNER, epochs=2), variables={**IMAGE, **TUNING}),
    Case("adapter: ends badly", variables={**IMAGE, "END_WITH": "3"}, ends=3),
]  # fmt: skip
CASES = [*OF_HYPERPARAMETERS, *OF_HOSTS, *OF_THE_ADAPTER]
