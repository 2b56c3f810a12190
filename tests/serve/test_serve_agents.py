"""The agents of the server's jobs, which a process of the server forks: they need neither of the two."""

import os
import signal

import pytest
from fakes.processes import until
from serve.conftest import serving

from scriptmode_local._store.job_store import JobStore
from scriptmode_runtime._processes import proc

pytestmark = pytest.mark.slow


def test_jobs_outlive_what_forked_their_agents_and_the_server(tmp_path):
    store = JobStore(tmp_path / "data")
    with serving(tmp_path, "--s3", "memory") as api:
        name = api.start("import time; print('up', flush=True); time.sleep(600)")
        agent = until(lambda: store.folder(name).read_processes().get("agent"))
        assert agent == proc.identify(agent.pid)
        assert os.getsid(agent.pid) == agent.pid
        (first,) = children(api.server.process.pid)
        assert proc.processes()[agent.pid].parent == first
        os.kill(first, signal.SIGKILL)
        assert api.run("print('ran')")["TrainingJobStatus"] == "Completed"
        until(lambda: store.folder(name).read_state().secondary == "Training")
        (last,) = set(children(api.server.process.pid)) - {first}
        api.server.process.send_signal(signal.SIGKILL)
        api.server.process.wait()
        until(lambda: not (process := proc.processes().get(last)) or not process.running)
        api.names.clear()
    with serving(tmp_path, "--s3", "memory") as api:
        assert proc.is_running(agent)
        api.sagemaker.stop_training_job(TrainingJobName=name)
        assert api.wait(name)["TrainingJobStatus"] == "Stopped"


def children(pid):
    return [child for child, process in proc.processes().items() if process.parent == pid and process.running]
