"""Real jobs of the local platform whose hosts are containers, and what Docker has of them."""

import subprocess

from fakes.local_jobs import LocalJobs
from fakes.processes import until

#: Docker's lists, in which "{}" is what is wanted of each entry.
LISTS = (("ps", "--all", "--no-trunc"), ("network", "ls", "--no-trunc"))
LABEL = "scriptmode.job"


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
        entry = '{{.Label "%s"}} {{.ID}}' % LABEL
        found = [line for words in LISTS for line in listed(*words, "--filter", f"label={LABEL}", "--format", entry)]
        return [line for line in found if line.startswith(f"{self.data_dir}/")]

    def close(self):
        """Stop what runs; nothing may be left in Docker either."""
        super().close()
        until(lambda: not self.left(), 5.0)


def listed(*words):
    """The lines that docker says."""
    said = subprocess.run(
        ("docker", *words), check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    return said.stdout.splitlines()
