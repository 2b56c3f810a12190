"""What the fake Slurm prints of jobs and partitions: recorded output with other values."""

import re
import time
from pathlib import Path

from fakes.slurm_commands.steps import node_list, output_path

_RECORDS = Path(__file__).parents[1] / "slurm_records"
_FIELD = re.compile(r"([A-Z][\w:/]*)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)")
#: Of ``sinfo``, by the format that the SDK asks for.
PARTITIONS = (_RECORDS / "partitions.txt").read_text()
#: Of ``scontrol show config``, the settings that the SDK reads.
CONFIG = """\
ClusterName             = scriptmode-slurm
SLURM_VERSION           = 22.05.8
"""


def job_line(job):
    """Return ``scontrol --oneliner show job``."""
    name = "job_pending" if job["state"] == "PENDING" else "job_running"
    recorded = dict(_FIELD.findall((_RECORDS / f"{name}.txt").read_text()))
    for field in ("Comment", "TresPerNode"):
        recorded.pop(field, None)
    if "comment" in job["options"]:
        recorded["Comment"] = job["options"]["comment"]
    changed = {
        "JobId": job["id"], "JobName": job["name"], "UserId": f"{job['user']}({job['uid']})",
        "Account": job["account"], "JobState": job["state"], "Reason": job["reason"], "Requeue": int(job["requeue"]),
        "Restarts": job["restarts"], "ExitCode": f"{job['exit_code']}:{job['signal']}",
        "TimeLimit": job["options"].get("time", "UNLIMITED"), "SubmitTime": time_text(job["submitted"]),
        "EligibleTime": time_text(job["submitted"]), "StartTime": time_text(job["start"] or job.get("expected")),
        "EndTime": time_text(job["end"]), "Partition": job["partition"], "NodeList": node_list(job["nodes"]),
        "NumNodes": job["count"], "WorkDir": job["directory"], "StdOut": output_path(job), "StdErr": output_path(job),
    }  # fmt: skip
    if job["state"] == "PENDING":
        changed["NumNodes"] = f"{job['count']}-{job['count']}" if "nodes" in job["options"] else job["count"]
    else:
        changed["PreemptTime"] = time_text(job["preempted"], "None")
        changed["BatchHost"] = job["nodes"][0] if job["nodes"] else ""
    recorded.update({field: str(value) for field, value in changed.items()})
    return " ".join(f"{field}={value}" for field, value in recorded.items()) + " \n"


def squeue_line(job, template):
    """Return a job as ``squeue --format`` prints it; widths are not known."""
    fields = {
        "i": job["id"], "T": job["state"], "S": time_text(job["start"] or job.get("expected"), "N/A"),
        "P": job["partition"], "N": node_list(job["nodes"]), "r": job["reason"], "j": job["name"],
    }  # fmt: skip
    return re.sub(r"%([a-zA-Z])", lambda found: str(fields[found[1]]), template)


def _exit_code(job):
    """Return the exit code as sacct has it: without bit 7, and none of a job that Slurm ended."""
    return "0:0" if job["state"] in ("CANCELLED", "TIMEOUT") else f"{job['exit_code'] & 0x7F}:{job['signal']}"


SACCT = {
    "JobID": lambda job: str(job["id"]),
    "State": lambda job: f"CANCELLED by {job['by']}" if job["state"] == "CANCELLED" else job["state"],
    "ExitCode": _exit_code,
    "Start": lambda job: time_text(job["start"]),
    "Partition": lambda job: job["partition"],
    "NodeList": lambda job: node_list(job["nodes"]) or "None assigned",
    "Reason": lambda job: job["reason"] if job["state"] == "PENDING" else "None",
    "JobName": lambda job: job["name"],
}


def time_text(seconds, none="Unknown"):
    """Return a time as Slurm prints it, in the zone of the command."""
    return none if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))
