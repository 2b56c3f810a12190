"""The input modes: how the data of a job's channels reaches its hosts.

- `file_mode`: copied before training
- `pipe_mode`: streamed through FIFOs, by a process for each channel and host
- `mounted_channels`: FastFile mode and file systems, mounted
- `fuse_mount`: one FUSE mount and the process that serves it

The agent imports this package, which imports `scriptmode_local._data` and `system`, but neither hosts nor the store.
"""
