"""The record of jobs on disk: one directory for each job, which outlives the client and the agent.

- `job_store`: the layout of the data directory and of a job's directory; the only module that knows it
- `state`: the state of a job as a value, and its JSON; `state_recorder` writes it, on a full disk too
- `job_record`: the record of a created job; `shapes`: validation of what is read back
- `heartbeat`: the sign of life of an agent in its lock file
- `host_logs`: reading hosts' logs while they are written; `agent_log`: what agents write
- `host_activity`: resources that the hosts use, and how their logs grow
- `job_response`: state and request rendered as Describe and List responses
- `data_dir_checks`: whether a directory can hold a store

The service and the agent import this package; it imports neither.
"""
