"""AWS in memory: a boto3 session that records training jobs and answers calls without the network."""

from __future__ import annotations

import io
import json

ACCOUNT = "123456789012"
REGION = "us-east-1"

_STS = f"""<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::{ACCOUNT}:user/me</Arn><UserId>ME</UserId><Account>{ACCOUNT}</Account></GetCallerIdentityResult>
<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetCallerIdentityResponse>"""
_ROLE = f"""<GetRoleResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><GetRoleResult><Role>
<Path>/service-role/</Path><RoleName>by-name</RoleName><RoleId>AROAEXAMPLEEXAMPLE</RoleId>
<Arn>arn:aws:iam::{ACCOUNT}:role/service-role/by-name</Arn><CreateDate>2020-01-01T00:00:00Z</CreateDate></Role>
</GetRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></GetRoleResponse>"""
_NO_BUCKETS = (
    """<ListAllMyBucketsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Buckets/></ListAllMyBucketsResult>"""
)
_NO_OBJECTS = (
    """<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><KeyCount>0</KeyCount></ListBucketResult>"""
)
_JOB = json.dumps({"TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/job"})

#: Status and body of each operation that has an answer.
ANSWERS = {
    "iam.GetRole": (200, _ROLE),
    "s3.HeadBucket": (200, ""),
    "s3.HeadObject": (404, ""),
    "s3.ListBuckets": (200, _NO_BUCKETS),
    "s3.ListObjectsV2": (200, _NO_OBJECTS),
    "s3.PutObject": (200, ""),
    "sagemaker.CreateTrainingJob": (200, _JOB),
    "sts.GetCallerIdentity": (200, _STS),
}


class _Body(io.BytesIO):
    def stream(self, **_options):
        yield self.read()


class RecordedAws:
    """``training_jobs`` are the CreateTrainingJob requests in order."""

    def __init__(self):
        import boto3

        self.training_jobs = []
        self.session = boto3.Session(aws_access_key_id="recorded", aws_secret_access_key="recorded", region_name=REGION)
        self.session.events.register("before-parameter-build.sagemaker.CreateTrainingJob", self._note_job)
        self.session.events.register("before-send", self._answer)

    def _note_job(self, params, **_event):
        self.training_jobs.append(dict(params))

    def _answer(self, request, event_name, **_event):
        from botocore.awsrequest import AWSResponse

        operation = event_name.partition(".")[2]
        if operation not in ANSWERS:
            raise AssertionError(f"{operation}: {request.method} {request.url}")
        status, text = ANSWERS[operation]
        return AWSResponse(request.url, status, {"ETag": '"1"'}, _Body(text.encode()))
