"""What the cluster's daemons read: ``slurm.conf``, ``gres.conf``, ``slurmdbd.conf`` and the accounts.

* A node claims more than the machine has (``config_overrides``): ten jobs run at once on two cores.
* ``batch`` is the default partition; a job of ``urgent`` preempts its jobs, which are requeued after their grace.
  ``scavenge`` jobs are cancelled instead. ``short`` accepts what its limits never start, as EnforcePartLimits=NO, the
  default, makes it.
* ``cred_expire`` is also how long a requeued job waits before it may start again; the default is 120 s.
* ``ReturnToService=1``: a node that was set DOWN stays so until it is resumed.
* ``DefMemPerCPU`` leaves room for TensorFlow; only a job that asks for less memory is ended for exceeding it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakes.machines import CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NODES = ("node1", "node2")
CPUS = 16
MEMORY_MB = 64000
GPUS = 2
#: Between SIGCONT with SIGTERM and SIGKILL of a preempted job.
GRACE_SECONDS = 5
#: Between SIGTERM and SIGKILL of a job that is cancelled or exceeds its time limit; the default is 30 s.
KILL_WAIT_SECONDS = 5
#: How long a requeued job waits, and how long a step may take from slurmctld to slurmd on a busy machine.
REQUEUE_SECONDS = 10
#: How long a node may not answer until it is DOWN.
NODE_TIMEOUT_SECONDS = 20
#: ``short``'s time limit.
SHORT_MINUTES = 5
ACCOUNTS = ("research", "vision")
#: May submit, besides root.
OTHER_USER = "nobody"

_SLURM = """\
ClusterName={name}
SlurmctldHost={controller}({network}.254)
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire={requeue}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/own/state
SlurmdSpoolDir={folder}/own/%n
SlurmctldPidFile={folder}/own/slurmctld.pid
SlurmdPidFile={folder}/own/%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=1
KillWait={kill_wait}
SlurmdTimeout={node_timeout}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={network}.254
AccountingStoragePass={folder}/munge/socket
AccountingStorageEnforce=associations
AccountingStorageTRES=gres/gpu
GresTypes=gpu
DefMemPerCPU=4000
{nodes}
PartitionName=DEFAULT Nodes=ALL State=UP MaxTime=INFINITE GraceTime={grace}
PartitionName=batch Default=YES PriorityTier=10 PreemptMode=REQUEUE
PartitionName=urgent PriorityTier=20 PreemptMode=OFF
PartitionName=scavenge PriorityTier=1 PreemptMode=CANCEL
PartitionName=short PriorityTier=10 PreemptMode=REQUEUE MaxTime={short} MaxNodes=1
"""
_NODE = "NodeName={node} NodeAddr={network}.{number} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} Gres=gpu:{gpus}"
_GRES = "NodeName={node} Name=gpu File={folder}/devices/{node}/gpu[0-{last}]\n"
_ACCOUNTING = """\
DbdHost={controller}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
LogFile={folder}/log/slurmdbd
PidFile={folder}/own/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
"""
_USERS = """\
Cluster - '{name}':Fairshare=1
Parent - 'root'
User - 'root':DefaultAccount='{default}':AdminLevel='Administrator'
{accounts}
"""


def write(folder: Path, network: str, names: Sequence[str]) -> None:
    """Write all of it below ``folder``, for nodes ``network``.1 and so on."""
    known = {"folder": folder, "network": network, "controller": CONTROLLER, "name": name(folder)}
    nodes = "\n".join(
        _NODE.format(node=node, number=number, cpus=CPUS, memory=MEMORY_MB, gpus=GPUS, **known)
        for number, node in enumerate(names, 1)
    )
    limits = {
        "requeue": REQUEUE_SECONDS, "kill_wait": KILL_WAIT_SECONDS, "node_timeout": NODE_TIMEOUT_SECONDS,
        "grace": GRACE_SECONDS, "short": SHORT_MINUTES,
    }  # fmt: skip
    (folder / "slurm.conf").write_text(_SLURM.format(nodes=nodes, **limits, **known))
    (folder / "gres.conf").write_text("".join(_GRES.format(node=node, last=GPUS - 1, folder=folder) for node in names))
    accounting = folder / "slurmdbd.conf"
    accounting.touch(0o600)  # slurmdbd refuses a file that others can read
    accounting.write_text(_ACCOUNTING.format(**known))
    users = [f"User - '{user}':DefaultAccount='{ACCOUNTS[0]}'" for user in ("root", OTHER_USER)]
    accounts = [f"Account - '{account}'" for account in ACCOUNTS]
    accounts += [line for account in ACCOUNTS for line in (f"Parent - '{account}'", *users)]
    accounts = "\n".join(accounts)
    (folder / "accounts").write_text(_USERS.format(default=ACCOUNTS[0], accounts=accounts, name=name(folder)))


def name(folder: Path) -> str:
    """Return the cluster's name: Slurm knows it in lower case."""
    return folder.name.lower()
