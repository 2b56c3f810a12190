"""AWS in memory: a boto3 session that records training jobs and answers calls without the network."""

from __future__ import annotations

ACCOUNT = "123456789012"
REGION = "us-east-1"

#: Status of the response of each operation that has an answer, and what botocore parses of it.
ANSWERS = {
    "iam.GetRole": (200, {"Role": {"Arn": f"arn:aws:iam::{ACCOUNT}:role/service-role/by-name"}}),
    "s3.HeadBucket": (200, {}),
    "s3.HeadObject": (404, {"Error": {"Code": "404", "Message": "Not Found"}}),
    "s3.ListBuckets": (200, {"Buckets": []}),
    "s3.ListObjectsV2": (200, {"KeyCount": 0}),
    "s3.PutObject": (200, {"ETag": '"1"'}),
    "sagemaker.CreateTrainingJob": (200, {"TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job"}),
    "sts.GetCallerIdentity": (200, {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/me"}),
}


class RecordedAws:
    """``training_jobs`` are the CreateTrainingJob requests in order."""

    def __init__(self):
        import boto3

        self.training_jobs = []
        self.session = boto3.Session(aws_access_key_id="recorded", aws_secret_access_key="recorded", region_name=REGION)
        self.session.events.register("before-parameter-build.sagemaker.CreateTrainingJob", self._note_job)
        self.session.events.register("before-call", self._answer)

    def _note_job(self, params, **_event):
        self.training_jobs.append(dict(params))

    def _answer(self, params, event_name, **_event):
        from botocore.awsrequest import AWSResponse

        operation = event_name.partition(".")[2]
        if operation not in ANSWERS:
            raise AssertionError(f"{operation}: {params['url']}")
        status, answer = ANSWERS[operation]
        return AWSResponse(params["url"], status, {}, None), {**answer, "ResponseMetadata": {"HTTPStatusCode": status}}
