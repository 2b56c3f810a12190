"""Use of this machine's NVIDIA GPUs through NVML: the package nvidia-ml-py, which is the extra ``gpu``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from scriptmode_runtime._processes import proc


class GpuUsage(NamedTuple):
    """Use of GPUs by some processes.

    ``percent`` is the mean of the GPUs that they use, 0 if they use none; ``memory`` is in bytes. None is unknown.
    """

    percent: float | None
    memory: int | None


class _Device(NamedTuple):
    percent: float | None
    #: The processes on it with their bytes, None where the driver does not tell.
    memory: Mapping[int, int | None]

    @property
    def is_visible(self) -> bool:
        """Whether its processes are known here; a container that has no host's processes does not see them."""
        return bool(self.memory) and all(proc.process(pid) for pid in self.memory) if self.percent else True


def open_gpus() -> Gpus | None:
    """Return this machine's GPUs; None where it has none, or no NVML."""
    try:
        import pynvml
    except ImportError:
        return None
    return Gpus.open(pynvml)


class Gpus:
    """The GPUs of this machine; ``nvml`` is the module ``pynvml``."""

    def __init__(self, nvml: Any, handles: Collection[Any]) -> None:
        self._nvml = nvml
        self._handles = handles

    @classmethod
    def open(cls, nvml: Any) -> Gpus | None:
        """Return the GPUs that NVML knows; None where it knows none or cannot be used."""
        try:
            nvml.nvmlInit()
            handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            return None
        return cls(nvml, handles) if handles else None

    def usage(self, hosts: Mapping[str, Collection[int]]) -> dict[str, GpuUsage]:
        """Return the use by each host, from the process IDs of the hosts."""
        devices = [self._device(handle) for handle in self._handles]
        return {host: _usage(devices, frozenset(pids)) for host, pids in hosts.items()}

    def _device(self, handle: Any) -> _Device:
        nvml, memory, percent = self._nvml, {}, None
        # Each is not supported by some GPUs.
        with suppress(nvml.NVMLError):
            percent = float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        with suppress(nvml.NVMLError):
            memory = {user.pid: user.usedGpuMemory for user in nvml.nvmlDeviceGetComputeRunningProcesses(handle)}
        return _Device(percent, memory)


def _usage(devices: Collection[_Device], pids: frozenset[int]) -> GpuUsage:
    used = [device for device in devices if not pids.isdisjoint(device.memory)]
    if not used:
        # A busy GPU may be the host's, where processes on it are not visible.
        return GpuUsage(0.0, 0) if all(device.is_visible for device in devices) else GpuUsage(None, None)
    percents = [device.percent for device in used if device.percent is not None]
    amounts = [amount for device in used for pid, amount in device.memory.items() if pid in pids]
    known = [amount for amount in amounts if amount is not None]
    percent = round(sum(percents) / len(percents), 1) if percents else None
    return GpuUsage(percent, sum(known) if len(known) == len(amounts) else None)
