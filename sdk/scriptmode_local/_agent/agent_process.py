"""The process of a job's agent: detached from the client, or in the foreground as the batch step of a cluster's job.

- ``<job folder> <lock>``, as `_system.detached` calls `main`: the descriptor ``lock`` is the job's lock, held.
- ``--foreground <job folder>``, as ``python -m scriptmode_slurm._engine`` calls `main`: the agent takes the job's lock
  itself. The process ends with the job, with 0 for a Completed one and 1 for any other, for the scheduler's records.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from scriptmode._core.spec.service_values import COMPLETED
from scriptmode.errors import ScriptmodeError
from scriptmode_local._agent import log_stream
from scriptmode_local._agent.job_agent import Agent
from scriptmode_local._hosts.local_agent import AGENT_MODULE, replace_agent
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system.directory_lock import above_streams, try_lock
from scriptmode_runtime._processes import forks, process_tree

FOREGROUND = "--foreground"
#: Seconds to wait for a lock that another process holds: a client that reads the state, for some milliseconds, or an
#: agent whose machine is lost. The server of an NFS export releases that one after its lease, 90 s by default.
_LOCK_SECONDS = 120.0


def main(arguments: list[str]) -> int:
    """Run the job of a directory; return the exit code."""
    if arguments[0] == FOREGROUND:
        return _run_in_foreground(JobFolder(Path(arguments[1])))
    return _run(JobFolder(Path(arguments[0])), int(arguments[1]))


def _run_in_foreground(folder: JobFolder) -> int:
    try:
        lock = _take_lock(folder)
        state = folder.read_state()
    except (OSError, ScriptmodeError) as error:
        sys.stderr.write(f"scriptmode: the agent of training job {folder.name} cannot start: {error}\n")
        return 1
    if state.ended:
        # It was stopped before the scheduler started it.
        return _exit_code(state.status)
    # A relative path that a program prints must not depend on where the job was submitted.
    os.chdir("/")
    return _run(folder, lock)


def _take_lock(folder: JobFolder) -> int:
    """Return the descriptor of the job's lock, which is held; raise ``OSError`` if that is not possible."""
    lock = above_streams(os.open(folder.lock_file, os.O_RDWR | os.O_CLOEXEC))
    if not process_tree.wait_until(lambda: try_lock(lock), _LOCK_SECONDS):
        raise TimeoutError(f"another agent has held its lock for {_LOCK_SECONDS:.0f} s")
    return lock


def _run(folder: JobFolder, lock: int) -> int:
    # Of a run before this one in the same process.
    os.set_inheritable(lock, False)  # noqa: FBT003
    sys.stderr = log_stream.open_log_stream(sys.stderr.fileno())
    agent = Agent(folder, lock, os.environ)
    try:
        agent.run()
    except Exception as error:  # noqa: BLE001 - a job must end with a reason whatever happens
        if agent.is_deleted():
            agent.abandon()
            return 1
        traceback.print_exc()
        agent.fail(error)
    finally:
        agent.leave_queue()
    if agent.runs_again:
        replace_agent(folder.path, lock)
    return _exit_code(agent.status)


def _exit_code(status: str) -> int:
    return 0 if status == COMPLETED else 1


if __name__ == "__main__":
    forks.restart_without_threads(AGENT_MODULE)
    sys.exit(main(sys.argv[1:]))
