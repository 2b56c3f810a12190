"""The service's CreateTrainingJob request. The only package that spells AWS's field names; it has no effects.

render         from a `TrainingJobSpec` to a request
parse          from a job's description to arguments of an estimator
rerun          from a job's description to the request that starts it again
service_model  validation by Amazon SageMaker's own model, as botocore has it
"""
