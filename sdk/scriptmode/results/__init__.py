"""What a job leaves, as its handle returns it.

metrics      rows, a table, a DataFrame, a figure
artifacts    download and cache of the model and other outputs
event_files  TensorFlow's event files of a job in one directory
tensorboard  a TensorBoard server on them
"""
