"""What a job leaves, as its handle returns it.

outcome      the description of a completed job, or the error of a failed or stopped one
log_filter   log lines of some hosts, or the last lines
metrics      rows, a table, a DataFrame, a figure
activity     what the hosts of a running job do
artifacts    download and cache of the model and other outputs
event_files  TensorFlow's event files of a job in one directory
tensorboard  a TensorBoard server on them
"""
