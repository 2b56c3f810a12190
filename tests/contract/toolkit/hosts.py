"""Shapes of resourceconfig.json and inputdataconfig.json, and variables of the platform and of the job."""

from __future__ import annotations

from contract.toolkit.case import Case, encoded, only_host

NAMES = ["algo-1", "algo-2", "algo-3"]
GROUP = {"instance_group_name": "homogeneousCluster", "instance_type": "ml.c5.xlarge", "hosts": NAMES}
WHOLE = {
    "hosts": NAMES,
    "network_interface_name": "eth0",
    "current_instance_type": "ml.c5.xlarge",
    "current_group_name": "homogeneousCluster",
    "instance_groups": [GROUP],
}
MIXED = {
    "hosts": NAMES,
    "network_interface_name": "eth1",
    "current_instance_type": "ml.p3.2xlarge",
    "instance_groups": [
        {"instance_group_name": "trainers", "instance_type": "ml.p3.2xlarge", "hosts": ["algo-2", "algo-3"]},
        {"instance_group_name": "data", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    ],
}
TOPOLOGY = [{"hostName": "algo-1", "capacityUnitId": "unit-1"}]
FILE = {
    "ContentType": "text/csv",
    "TrainingInputMode": "File",
    "S3DistributionType": "FullyReplicated",
    "RecordWrapperType": "None",
}
TOGETHER = encoded(sagemaker_distribution_instance_groups=["trainers"])

CASES = [
    Case("hosts: no more than names", resources=only_host()),
    Case("hosts: the first of three", resources={"current_host": "algo-1", "hosts": NAMES}),
    Case("hosts: the third of three", resources={"current_host": "algo-3", "hosts": NAMES}),
    Case("hosts: not in order", resources={"current_host": "algo-2", "hosts": ["algo-3", "algo-2", "algo-1"]}),
    Case("hosts: one group, first", resources={"current_host": "algo-1", **WHOLE}),
    Case("hosts: one group, second", resources={"current_host": "algo-2", **WHOLE}),
    Case("hosts: groups, the larger", resources={"current_host": "algo-3", "current_group_name": "trainers", **MIXED}),
    Case("hosts: groups, the smaller", resources={"current_host": "algo-1", "current_group_name": "data", **MIXED}),
    Case("hosts: groups, without this one's", resources={"current_host": "algo-1", **MIXED}),
    Case("hosts: groups named, no distribution", TOGETHER, {"current_host": "algo-1", "current_group_name": "data", **MIXED}),
    Case("hosts: another interface", resources=only_host(network_interface_name="ethwe")),
    Case("hosts: topology", resources=only_host(topology=TOPOLOGY)),
    Case("hosts: empty topology and groups", resources=only_host(topology=[], instance_groups=[])),
    Case("hosts: members nobody knows", resources=only_host(later={"added": [1, None]})),
    Case("hosts: a name with dots", resources=only_host("ip-10-0-0-1.ec2.internal")),
    Case("hosts: fewer processors than the machine's", cpus=1),
    Case("channels: one", channels={"training": FILE}),
    Case("channels: several", channels={"train": FILE, "eval": {**FILE, "TrainingInputMode": "Pipe"}, "code": {}}),
    Case("channels: odd names", channels={"a-b.c_d": FILE, "9": FILE, "UPPER": FILE}),
    Case("channels: names that differ in case", channels={"train": FILE, "TRAIN": FILE}),
    Case("channels: names that differ in case, turned round", channels={"TRAIN": FILE, "train": FILE}),
    Case("variables: the platform's", variables={"TRAINING_JOB_NAME": "job-1", "TRAINING_JOB_ARN": "arn:aws:x", "AWS_REGION": "eu-west-1"}),
    Case("variables: the default region", variables={"AWS_DEFAULT_REGION": "eu-west-1"}),
    Case("variables: two regions", variables={"AWS_DEFAULT_REGION": "eu-west-1", "AWS_REGION": "eu-west-2"}),
    Case("variables: region of the request", encoded(sagemaker_region="us-west-2"), variables={"AWS_DEFAULT_REGION": "eu-west-1"}),
    Case("variables: name of the request", encoded(sagemaker_job_name="job-2")),
    Case("variables: names that differ", encoded(sagemaker_job_name="job-2"), variables={"TRAINING_JOB_NAME": "job-1"}),
    Case("variables: the job's own", variables={"MINE": "a b\n'c' $HOME", "EMPTY": "", "SM_HP_OLD": "1", "TF_CONFIG": "{}"}),
    Case("variables: overwritten", encoded(rate=1), variables={"SM_HP_RATE": "old", "SM_HOSTS": "old", "CURRENT_HOST": "old"}),
    Case("variables: log level", variables={"SAGEMAKER_CONTAINER_LOG_LEVEL": "40"}),
    Case("variables: the program's place", variables={"PYTHONPATH": "/opt/mine:/opt/ours"}),
]  # fmt: skip
