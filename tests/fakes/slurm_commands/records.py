"""What the fake Slurm prints of jobs, nodes and partitions: recorded output with other values."""

import re
import signal
import time
from pathlib import Path

from fakes.slurm_commands.steps import node_list, output_path

_RECORDS = Path(__file__).parents[1] / "slurm_records"
_FIELD = re.compile(r"([A-Z][\w:/]*)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)")
_LIST = re.compile(r"(\w*?)\[(\d+)-(\d+)\]$")
_SHORT = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETED": "CD",
    "FAILED": "F",
    "CANCELLED": "CA",
    "TIMEOUT": "TO",
    "NODE_FAIL": "NF",
}
#: Fields that a job has only if it was asked for.
_GIVEN = {"Comment": "comment"}


def job_line(job):
    """Return ``scontrol --oneliner show job``."""
    name = "job_pending" if job["state"] == "PENDING" else "job_running"
    recorded = dict(_FIELD.findall((_RECORDS / f"{name}.txt").read_text()))
    if "offset" in job:
        last = job["id"] + len(job["others"])
        ids = {"HetJobId": job["id"], "HetJobOffset": job["offset"], "HetJobIdSet": f"{job['id']}-{last}"}
        recorded = {"JobId": "", **{field: str(value) for field, value in ids.items()}, **recorded}
    for field, option in _GIVEN.items():
        recorded.pop(field, None)
        if option in job["options"]:
            recorded[field] = job["options"][option]
    if not job["gpus"]:
        recorded.pop("TresPerNode", None)
    changed = {
        "JobId": job["number"],
        "JobName": job["name"],
        "UserId": f"{job['user']}({job['uid']})",
        "Account": job["account"],
        "JobState": job["state"],
        "Reason": job["reason"],
        "Requeue": int(job["requeue"]),
        "Restarts": job["restarts"],
        "ExitCode": f"{job['exit_code']}:{job['signal']}",
        "TimeLimit": job["options"].get("time", "UNLIMITED"),
        "SubmitTime": time_text(job["submitted"]),
        "EligibleTime": time_text(job["submitted"]),
        "StartTime": time_text(job["start"] or job.get("expected")),
        "EndTime": time_text(job["end"]),
        "Partition": job["partition"],
        "NodeList": node_list(job["nodes"]),
        "NumNodes": job["count"],
        "WorkDir": job["directory"],
        "StdOut": output_path(job, "output"),
        "StdErr": output_path(job, "error"),
    }
    if job["state"] == "PENDING":
        changed["NumNodes"] = f"{job['count']}-{job['count']}" if "nodes" in job["options"] else job["count"]
    else:
        changed["PreemptTime"] = time_text(job["preempted"], "None")
        changed["BatchHost"] = job["nodes"][0] if job["nodes"] else ""
    recorded.update({field: str(value) for field, value in changed.items()})
    if " PreemptMode=OFF " in partitions().get(job["partition"], ""):
        for field in ("PreemptTime", "PreemptEligibleTime"):
            recorded.pop(field, None)
    return " ".join(f"{field}={value}" for field, value in recorded.items()) + " \n"


def squeue_line(job, template):
    """Return a job as ``squeue --format`` prints it; widths are not known."""
    waits = job["state"] == "PENDING"
    nodes = node_list(job["nodes"])
    ended = job["end"] or time.time()
    fields = {
        "i": job["label"], "A": job["number"], "T": job["state"], "t": _SHORT.get(job["state"], job["state"][:2]), "r": job["reason"],
        "S": time_text(job["start"] or job.get("expected"), "N/A"), "V": time_text(job["submitted"]), "P": job["partition"],
        "D": job["count"], "N": nodes, "M": duration(ended - job["start"] if job["start"] else 0),
        "l": job["options"].get("time", "UNLIMITED"), "Q": 4294901760 - job["id"], "u": job["user"], "a": job["account"],
        "j": job["name"], "k": job["options"].get("comment", "(null)"), "e": time_text(job["end"], "N/A"),
        "p": 1 - job["id"] / 4294967296, "B": job["nodes"][0] if nodes else "n/a", "U": job["uid"],
        "R": nodes if nodes and not waits else f"({job['reason']})", "%": "%",
    }  # fmt: skip
    return re.sub(r"%([a-zA-Z%])", lambda found: str(fields[found[1]]), template)


def _exit_code(run):
    """Return the exit code as sacct has it: without bit 7, and none of a job that Slurm ended."""
    return "0:0" if run["state"] in ("CANCELLED", "TIMEOUT") else f"{run['exit_code'] & 0x7F}:{run['signal']}"


def _state(run):
    return f"CANCELLED by {run['by']}" if run["state"] == "CANCELLED" else run["state"]


#: Fields of sacct by their names in lower case.
SACCT = {
    "jobid": lambda run: run["label"],
    "jobidraw": lambda run: str(run["number"]),
    "jobname": lambda run: run["name"],
    "state": _state,
    "exitcode": _exit_code,
    "derivedexitcode": lambda _run: "0:0",
    "submit": lambda run: time_text(run["submitted"]),
    "eligible": lambda run: time_text(run["submitted"]),
    "start": lambda run: time_text(run["start"]),
    "end": lambda run: time_text(run["end"]),
    "elapsed": lambda run: duration((run["end"] or time.time()) - run["start"] if run["start"] else 0, full=True),
    "nodelist": lambda run: node_list(run["nodes"]) or "None assigned",
    "nnodes": lambda run: str(run["count"]),
    "alloccpus": lambda run: str(run["count"]),
    "partition": lambda run: run["partition"],
    "account": lambda run: run["account"],
    "user": lambda run: run["user"],
    "reason": lambda run: run["reason"] if run["state"] == "PENDING" else "None",
    "comment": lambda _run: "",
    "timelimit": lambda run: run["options"].get("time", "UNLIMITED"),
}


def node_line(name, state):
    """Return ``scontrol --oneliner show node``; all nodes are this machine."""
    recorded = dict(_FIELD.findall((_RECORDS / "node.txt").read_text()))
    recorded.update(NodeName=name, NodeHostName=name, NodeAddr="127.0.0.1", State=state)
    return " ".join(f"{field}={value}" for field, value in recorded.items()) + "\n"


def partitions():
    """Return the recorded lines of ``scontrol --oneliner show partition`` by the partitions' names."""
    lines = (_RECORDS / "partitions.txt").read_text().splitlines(keepends=True)
    return {line.split()[0].partition("=")[2]: line for line in lines}


def config():
    """Return the recorded ``scontrol show config``."""
    return (_RECORDS / "config.txt").read_text()


def sinfo_line(line, template):
    """Return a partition as ``sinfo --format`` prints it, from its line of scontrol."""
    found = dict(_FIELD.findall(line))
    default = "*" if found["Default"] == "YES" else ""
    limit = {"UNLIMITED": "infinite", "00:05:00": "5:00"}[found["MaxTime"]]
    fields = {
        "P": found["PartitionName"] + default, "R": found["PartitionName"], "a": found["State"].lower(), "l": limit,
        "D": found["TotalNodes"], "T": "idle", "t": "idle", "N": found["Nodes"], "G": "gpu:2", "c": 16, "m": 64000,
        "f": "(null)",
    }  # fmt: skip
    return re.sub(r"%([a-zA-Z])", lambda match: str(fields[match[1]]), template)


def expand(nodes):
    """Return the names of ``node[1-2]``."""
    match = _LIST.match(nodes)
    if not match:
        return [name for name in nodes.split(",") if name]
    return [f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1)]


def signal_number(text):
    """Return the number of ``USR1``, ``SIGUSR1`` or ``10``."""
    return int(text) if text.isdigit() else int(signal.Signals[f"SIG{text.upper().removeprefix('SIG')}"])


def time_text(seconds, none="Unknown"):
    """Return a time as Slurm prints it, in the zone of the command."""
    return none if seconds is None else time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def duration(seconds, *, full=False):
    """Return ``0:05``, or ``00:00:05``."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, rest = divmod(minutes, 60)
    if full or hours:
        return f"{hours:02}:{rest:02}:{seconds:02}"
    return f"{minutes}:{seconds:02}"
