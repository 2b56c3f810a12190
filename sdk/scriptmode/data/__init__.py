"""The data path: what a channel names, read from where it lies, as files or as a stream."""
