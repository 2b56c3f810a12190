"""The operating system as the local platform uses it. It knows nothing of jobs, and imports no other local package.

- `full_disk`: recognition of full disks, and what a directory uses
- `forked_tasks`: slow work of the agent in forked children
- `detached`, `fork_server`: a module that runs in the background, in a new interpreter or in a fork
- `together`: waits at the same time
- `ports`: reservation of ports
- `certificates`: certificates for TLS
- `gpus`: use of this machine's GPUs by processes
- `file_systems`: directories that stand for EFS and FSx for Lustre file systems
"""
