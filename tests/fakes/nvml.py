"""NVML of a machine with GPUs: the functions of ``pynvml`` that are called, over GPUs that a test defines."""

from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class Gpu:
    """One GPU: its utilization in percent, and the bytes of each process on it; None where the driver does not tell."""

    percent: object = 0
    memory: dict = field(default_factory=dict)


class Nvml:
    """The module ``pynvml``."""

    class NVMLError(Exception):
        """The error of every function."""

    def __init__(self, *gpus, works=True):
        self.gpus = gpus
        self.works = works

    def nvmlInit(self):  # noqa: N802 - NVML's name
        if not self.works:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self):  # noqa: N802 - NVML's name
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802 - NVML's name
        return self.gpus[index]

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802 - NVML's name
        if handle.percent is None:
            raise self.NVMLError("Not Supported")
        return SimpleNamespace(gpu=handle.percent, memory=0)

    def nvmlDeviceGetComputeRunningProcesses(self, handle):  # noqa: N802 - NVML's name
        if handle.memory is None:
            raise self.NVMLError("Not Supported")
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in handle.memory.items()]
