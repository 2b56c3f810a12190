"""What the handle of a job returns and prints.

- `job_results`: its methods on what the job leaves
- `outcome`: the description of a completed job, or the error of a failed or stopped one
- `activity`: what the hosts of a running job do, and what it lost
- `log_filter`: log lines of some hosts, or the last lines; `log_lines`: the log as plain lines
"""
