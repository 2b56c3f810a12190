"""Real jobs of the local platform whose hosts are containers, and their objects in Docker."""

import subprocess

from fakes.local_jobs import LocalJobs
from fakes.processes import until

#: Docker's lists, in which "{}" is what is wanted of each entry.
LISTS = (("ps", "--all", "--no-trunc"), ("network", "ls", "--no-trunc"))
LABEL = "scriptmode.job"
#: The beginning of a script of two hosts: they hold on to each other, for a name is known while its host runs.
MEET = """
import os, socket, time

def meet():
    if os.environ["SM_CURRENT_HOST"] == "algo-1":
        with socket.create_server(("algo-1", 7777)) as server:
            server.settimeout(600)
            return server.accept()[0]
    deadline = time.monotonic() + 600
    while True:
        try:
            return socket.create_connection(("algo-1", 7777), 5)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)

partner = meet()
"""


class ContainerJobs(LocalJobs):
    """Starts jobs on containers of ``image`` and knows what they left in Docker, too."""

    instance_type = "local"

    def __init__(self, folder, image, **platform):
        super().__init__(folder, **platform)
        self.image = image

    def request(self, script, *, image=None, **fields):
        request = super().request(script, **fields)
        request["AlgorithmSpecification"]["TrainingImage"] = image or self.image
        return request

    def estimator_arguments(self):
        return {**super().estimator_arguments(), "image_uri": self.image}

    def kill_host(self, name, host):
        subprocess.run(("docker", "kill", self.container(name, host)), check=True, timeout=600, capture_output=True)

    def remains(self, name):
        label = f"{self.job_folder(name).path}"
        return [*super().remains(name), *(line for line in self.left() if line.startswith(label))]

    def container(self, name, host):
        """What Docker calls a host of a job."""
        label = f"{LABEL}={self.job_folder(name).path}"
        (found,) = listed("ps", "--filter", f"label={label}", "--filter", f"name={name}-{host}-", "--format", "{{.ID}}")
        return found

    def network(self, name):
        """What Docker calls the network of a job."""
        (found,) = listed(
            "network", "ls", "--filter", f"label={LABEL}={self.job_folder(name).path}", "--format", "{{.ID}}"
        )
        return found

    def left(self):
        """Every container and network of any of these jobs."""
        entry = f'{{{{.Label "{LABEL}"}}}} {{{{.ID}}}}'
        found = [line for words in LISTS for line in listed(*words, "--filter", f"label={LABEL}", "--format", entry)]
        return [line for line in found if line.startswith(f"{self.data_dir}/")]

    def close(self):
        """Stop what runs; nothing may be left in Docker either."""
        super().close()
        until(lambda: not self.left())


def listed(*words):
    """Return the lines that a command of Docker prints."""
    done = subprocess.run(
        ("docker", *words), check=True, timeout=600, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.splitlines()
