"""The thin core: what a request for Amazon SageMaker and the handle of a job need. Internal; `scriptmode` is its face.

- `spec`: what a training job is, as values
- `request`: the service's JSON, in both directions
- `source`: the user's source code on its way to the hosts
- `platforms`: the protocols of platforms, the choice of one, and Amazon SageMaker
- `aws`: sessions, S3, roles, images and the SageMaker config file
- `handle`: what the handle of a job returns and prints
- `text`, `machine`: texts that people read, and this machine

Everything else is imported on first use.
"""
