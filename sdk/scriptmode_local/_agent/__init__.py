"""The agents: the process that owns one running job, those that run its hosts, and the recovery of jobs without one.

- `agent_process`: the command that runs an agent, detached or in the foreground
- `start`: a job's folder and its agent, both or neither
- `job_agent`: one job from Starting to Completed, Failed or Stopped
- `supervision`: the hosts of a job while they train; `host_failure`: why one failed
- `host_agent`: the inputs and the hosts of one machine; `host_link`: the job's agent's connections to it;
  `host_messages`: what they send each other
- `progress`: recording how much of the inputs has arrived
- `usage`: sampling and recording the resources that the hosts use
- `cleanup`: removal of files after the end of a job
- `recovery`: reconciling the state of a job with where its agent is; `lost_agent`: one that died, does
  not answer, or waits in its engine's queue; `stop_request`: a user's
- `interruption`: a job that was interrupted and goes on; `artifact_delivery`: its artifacts, at its end
- `removal`: deleting a job
- `log_stream`: the agent's log

The service imports `start`, `recovery`, `stop_request` and `removal`; `_remote` imports `host_messages`; engines start
`agent_process` and `host_agent` by their names.
"""
