"""Cases of what a job reads: every kind of input, alone and by channel."""

from __future__ import annotations

from sagemaker_sdk.matrix.case import LEFT_OUT, Case, Maker, image, script, tensorflow
from sagemaker_sdk.matrix.hosts import NO_INSTANCES, SERVERS, WORKERS

TrainingInput, FileSystemInput, ShuffleConfig = map(Maker, ("TrainingInput", "FileSystemInput", "ShuffleConfig"))

S3 = {
    "defaults": TrainingInput("s3://bucket/x"),
    "sharded": TrainingInput("s3://bucket/x", distribution="ShardedByS3Key"),
    "manifest": TrainingInput("s3://bucket/manifest", s3_data_type="ManifestFile"),
    "augmented manifest": TrainingInput(
        "s3://bucket/lines", s3_data_type="AugmentedManifestFile", attribute_names=["source-ref", "label"],
        input_mode="Pipe", record_wrapping="RecordIO", shuffle_config=ShuffleConfig(7),
    ),
    "content type": TrainingInput("s3://bucket/x", content_type="text/csv"),
    "compressed": TrainingInput("s3://bucket/x", compression="Gzip", input_mode="Pipe"),
    "FastFile mode": TrainingInput("s3://bucket/x", input_mode="FastFile"),
    "shuffled": TrainingInput("s3://bucket/x", shuffle_config=ShuffleConfig(1234567890123)),
    "model of a hub": TrainingInput(
        "s3://bucket/x", hub_access_config={"HubContentArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/h/Model/m/1"}
    ),
    "licence accepted": TrainingInput("s3://bucket/x", model_access_config={"AcceptEula": True}),
}  # fmt: skip
FILE_SYSTEMS = {
    "EFS": FileSystemInput("fs-0123456789", "EFS", "/data"),
    "EFS to be written": FileSystemInput("fs-0123456789", "EFS", "/data", "rw", content_type="text/csv"),
    "FSx": FileSystemInput("fs-0123456789", "FSxLustre", "/mount/data", file_system_access_mode="ro"),
}
VPC = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}


def cases() -> list[Case]:
    grouped = TrainingInput("s3://bucket/x", instance_groups=["workers"])
    groups = {**NO_INSTANCES, "instance_groups": [WORKERS, SERVERS]}
    return [
        *(script(f"input {name}", {}, inputs={"train": given}) for name, given in S3.items()),
        *(script(f"one input {name}", {}, inputs=given) for name, given in S3.items()),
        *(script(f"input {name} in a job in Pipe mode", {"input_mode": "Pipe"}, inputs={"train": S3[name]})
          for name in ("defaults", "FastFile mode", "compressed")),
        *(tensorflow(f"input {name}", VPC, inputs={"train": given}) for name, given in FILE_SYSTEMS.items()),
        script("input for one group", groups, inputs={"train": grouped, "eval": grouped}),
        image("no input", {}, inputs=None),
        script("no input under network isolation", {"enable_network_isolation": True}, inputs=None),
        script("channels", {}, inputs={"train": "s3://bucket/train", "eval-1.x_y": S3["sharded"]}),
        tensorflow("channels of every kind", VPC, inputs={
            "train": S3["augmented manifest"], "eval": "s3://bucket/eval", "labels": FILE_SYSTEMS["EFS"],
            "images": S3["FastFile mode"],
        }),
        script("one compressed input under network isolation", {"enable_network_isolation": True},
               inputs=S3["compressed"]),
        tensorflow("model beside the inputs", {"model_uri": "s3://bucket/m", "model_channel_name": "start"},
                   inputs={"train": "s3://bucket/train"}),
        tensorflow("model and no input", {"model_uri": "s3://bucket/m"}, inputs=None),
        tensorflow("model under network isolation", {"model_uri": "s3://bucket/m", "enable_network_isolation": True}),
        script("output path left out under isolation", {"output_path": LEFT_OUT, "enable_network_isolation": True}),
    ]  # fmt: skip
