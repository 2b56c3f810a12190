"""Hosts on machines that do not see the job's directory: their agent gets what it needs over one stream of bytes.

- `frames`: what is sent: files, commands and events
- `trees`: files that are sent and received
- `remote_host`: the program on the host's machine, which has a directory of its own and runs the host's agent
- `relay`: a process beside the job's agent that is the other end, and the agent's process for the job's agent
- `tls_stream`: a stream over TCP, for hosts that no program such as ``srun`` connects; `connection`: both ends of it
"""
