"""The service's CreateTrainingJob request. The only package that spells AWS's field names; it has no effects.

fields         the table of the fields: where each is in a request, in the values of `spec` and among the arguments
render         from a `TrainingJobSpec`, or a `JobRequest`, to a request
parse          from a request to a `JobRequest`, from a description to a `JobDescription` or arguments of an estimator
job_inputs     the channels of the argument of `fit`, and of a described job
rerun          from a job's description to the request that starts it again
service_model  validation by Amazon SageMaker's own model, as botocore has it
"""
