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
        with socket.create_server(("", 7777)) as server:
            server.settimeout(100)
            return server.accept()[0]
    deadline = time.monotonic() + 100
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

    def __init__(self, folder, image, **platform):
        super().__init__(folder, **platform)
        self.image = image

    def request(self, script, *, image=None, more=None, files=None, **fields):
        """A request; ``more`` is put in the place of its fields, ``files`` beside the script."""
        request = super().request(script, **fields)
        if files:
            self.source(script, **files)
        request["AlgorithmSpecification"]["TrainingImage"] = image or self.image
        request["ResourceConfig"]["InstanceType"] = "local"
        return {**request, **(more or {})}

    def container(self, name, host):
        """What Docker calls a host of a job."""
        label = f"{LABEL}={self.job_folder(name).path}"
        (found,) = listed("ps", "--filter", f"label={label}", "--filter", f"name={name}-{host}-", "--format", "{{.ID}}")
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
    """The lines that docker says."""
    said = subprocess.run(
        ("docker", *words), check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    return said.stdout.splitlines()
