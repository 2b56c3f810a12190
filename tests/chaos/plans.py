"""What is drawn from a seed: a job, a moment of its life and a fault, and which ends are true after that fault."""

import random
from typing import NamedTuple

from fakes.faulty_s3 import Fault
from faults.victims import TRUE

_SWITCH = "sagemaker_{}_enabled"
#: Hosts, hyperparameters, and whether the program is a shell script.
LAYOUTS = {
    "single": (1, {}, False),
    "shell": (1, {}, True),
    "hosts": (2, {}, False),
    "mirrored": (2, {_SWITCH.format("multi_worker_mirrored_strategy"): True}, False),
    "mpi": (2, {_SWITCH.format("mpi"): True, "sagemaker_mpi_num_of_processes_per_host": 2}, False),
    "ps": (2, {_SWITCH.format("parameter_server"): True}, False),
}
MODES = ("File", "FastFile", "Pipe")
PHASES = ("Pending", "Starting", "Downloading", "Training", "Uploading", "Stopping")
#: Faults and how often each is drawn. "garbled", "power cut", "disk full" and "read-only disk" are drawn with one host.
FAULTS = {
    "none": 8, "SIGKILL": 25, "SIGTERM": 10, "SIGSTOP": 8, "S3": 25,
    "garbled": 8, "power cut": 4, "disk full": 4, "read-only disk": 2, "stop": 4, "rm": 2,
}  # fmt: skip


class S3Fault(NamedTuple):
    fault: Fault
    #: What the reason says if the job fails; "" where it must complete.
    reason: str = ""
    #: GETs of an object that it meets; 0 for all of them.
    times: int = 0
    #: Whether only requests for a part of an object meet it, which a small object needs none of.
    of_parts: bool = False


_DAMAGED = r"damaged|checksum|ETag|MD5|CRC|does not match"
S3_FAULTS = {
    "cut at the start": S3Fault(Fault(cut=True, at=0), times=2),
    "cut in the middle": S3Fault(Fault(cut=True, at=20_000), times=2),
    "cut before the answer": S3Fault(Fault(cut=True), times=2),
    "500": S3Fault(Fault(status=500, code="InternalError"), times=2),
    "503": S3Fault(Fault(status=503, code="SlowDown"), times=2),
    "slow": S3Fault(Fault(rate=100_000), times=1),
    "damaged once": S3Fault(Fault(flip=77), times=1, reason=_DAMAGED),
    "damaged": S3Fault(Fault(flip=77), reason=_DAMAGED),
    "403": S3Fault(Fault(status=403, code="AccessDenied"), reason=r"AccessDenied|denied|403|allowed"),
    "404": S3Fault(Fault(status=404, code="NoSuchKey"), reason=r"NoSuchKey|no such object|there is no|404|deleted|changed"),
    "301": S3Fault(Fault(status=301, code="PermanentRedirect"), reason=r"PermanentRedirect|301|[Rr]egion|redirect"),
    "412": S3Fault(Fault(status=412, code="PreconditionFailed"), reason=r"changed|412|PreconditionFailed"),
    "another range": S3Fault(Fault(shift=1), reason=rf"[Rr]ange|{_DAMAGED}", of_parts=True),
    "another size": S3Fault(Fault(resize=5), reason=rf"[Rr]ange|size|changed|{_DAMAGED}", of_parts=True),
    "excess": S3Fault(Fault(excess=b"?" * 5), times=2),
}  # fmt: skip
_TERMINATED = r"SIGTERM|exit code:? 143"
#: What a script says whose input ended early.
_INPUT = r"Input/output error|OSError|Errno|the script did not read"


class Plan(NamedTuple):
    """What happens to one job; the same seed and index give the same plan.

    ``delay`` is the seconds from the beginning of the phase to the fault. ``role`` and ``number`` choose one of the processes
    that there are then, as parts of their numbers; roles first, so that many ranks are one role.
    """

    seed: str
    layout: str
    mode: str
    phase: str
    fault: str
    s3: str
    many: bool
    delay: float
    role: float
    number: float
    paused: float
    seconds: float
    #: How often the job may be started again.
    retries: int = 0

    @property
    def kind(self):
        return f"S3: {self.s3}, {'many' if self.many else 'one'}" if self.fault == "S3" else self.fault

    @property
    def is_signal(self):
        return self.fault.startswith("SIG")

    def allows(self, role):
        """Return by status which reasons are true, as a pattern; ``role`` is that of the process that was signalled."""
        allowed = {"Completed": r"\Z"}
        if self.phase == "Stopping" or self.fault == "stop" or (self.fault, role) == ("SIGTERM", "agent"):
            allowed["Stopped"] = r"\Z"
        if self.is_signal and role != "none":
            patterns = {"SIGKILL": TRUE.get(role, "$^"), "SIGTERM": rf"{_TERMINATED}|{TRUE.get(role, '$^')}"}
            if self.fault in patterns:
                allowed["Failed"] = patterns[self.fault]
                is_outside = self.fault == "SIGKILL" and role in ("agent", "host agent")
                if self.retries and is_outside and self.phase not in ("Pending", "Starting", "Stopping"):
                    # It starts again, and ends as if nothing had happened.
                    del allowed["Failed"]
            elif role in ("agent", "host agent", "launcher"):
                allowed["Failed"] = rf"{TRUE[role]}|silent"
        elif self.fault == "S3" and (reason := S3_FAULTS[self.s3].reason):
            allowed["Failed"] = rf"{reason}|{_INPUT}" if self.mode != "File" else reason
            is_certain = not S3_FAULTS[self.s3].times and not S3_FAULTS[self.s3].of_parts
            if is_certain and self.phase != "Stopping":
                del allowed["Completed"]
        elif self.fault == "disk full":
            allowed["Failed"] = r"[Dd]isk|No space left"
        return allowed


def plan_of(seed, index, fault=None):
    chance = random.Random(f"{seed}-{index}")
    drawn = chance.choices(list(FAULTS), list(FAULTS.values()))[0]
    fault = fault or drawn
    layout, mode, phase = chance.choice(list(LAYOUTS)), chance.choice(MODES), chance.choice(PHASES)
    if fault in ("garbled", "power cut", "disk full", "read-only disk"):
        layout, mode = "single", "File"
    if fault == "S3":
        phase = "Pending"
    elif not fault.startswith("SIG") and phase == "Stopping":
        phase = "Training"
    return Plan(
        f"{seed}-{index}", layout, mode, phase, fault, chance.choice(list(S3_FAULTS)), chance.random() < 0.5,
        delay=chance.choice((0.0, chance.uniform(0, 0.05), chance.uniform(0, 0.5))),
        role=chance.random(), number=chance.random(),
        paused=chance.uniform(0.1, 1.0) if fault == "SIGSTOP" else 0.0, seconds=chance.uniform(0.1, 0.5),
    )  # fmt: skip
