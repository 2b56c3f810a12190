"""moto's server of S3 and SageMaker on loopback. All servers of one process have one account: names must differ."""

import warnings
from contextlib import contextmanager


@contextmanager
def aws_server(*buckets, region="eu-west-1"):
    """Start it, make the buckets, and give its endpoint."""
    import boto3

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moto's own deprecations
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        try:
            endpoint = "http://{}:{}".format(*server.get_host_and_port())
            s3 = boto3.Session("test", "test", region_name=region).client("s3", endpoint_url=endpoint)
            for bucket in buckets:
                s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
            yield endpoint
        finally:
            server.stop()
