"""What a training job is: frozen values, validated when they are created. No module of this package has effects.

training_job        `TrainingJobSpec` and the values it consists of
job_request         `JobRequest`: a job as its request states it
job_description     `JobDescription`: a job as a platform describes it
job_failure         why a job failed
service_values      what a platform takes and returns beside that: filters, log lines, metrics, progress, events
hosts               instance types of this machine, groups and names of hosts
distribution        parameter servers, mirrored workers, MPI
inputs              channels and their data sources
hyperparameters     encoding and limits
metric_definitions  regular expressions that find metrics in log lines
monitoring          debugger, profiler, TensorBoard
git_source          a Git repository as a source
names               names of jobs
estimator_arguments  the arguments of an estimator; arguments: their conversion; older_names: those of older SDKs
whole_numbers       counts and times as callers pass them
"""
