"""Amazon SageMaker's training API over HTTP, whose jobs the local platform runs.

server           a server: its settings, its services and its life
http_server      the HTTP server
application      the WSGI application: which service a request is for, its limits, its answer
wsgi             requests and answers in WSGI's terms
aws_json         AWS JSON 1.1: requests, answers and errors
training_jobs    the operations on training jobs
request_mapping  from a request for SageMaker's instance types and images to one for hosts of this machine, and back
tuning_operations  the operations on tuning jobs
tag_operations   the operations on tags
other_services   S3, STS, IAM and the rest, which moto has
seaweedfs        S3 on disk: the program SeaweedFS
s3_proxy         S3 of another server
guard            what a request must meet before it is answered
access_keys      keys with which requests are signed; signatures: their validation
allowed_paths    directories of this machine that a request may name
configuration    the configuration file
cloudwatch       CloudWatch in the protocols of its clients; metric_operations: its operations
job_metrics      the metrics of training jobs
log_operations   the logs of training jobs as log streams
log_times        when each line of a log was first seen
log_pages        pages of a log
paging           filters, order and pages of lists
"""
