"""The pods of one job, for the job's agent: a relay to each of them, and a watch of their statuses."""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scriptmode.engines import CREDENTIALS, Fleet, Problem, Sandbox, StartedAgent, StreamKeys, replace_file, start_relay
from scriptmode.errors import DataError, PlatformError
from scriptmode_kubernetes._engine import pods, status
from scriptmode_kubernetes._engine.api import CONFLICT, WATCH_SECONDS, Api, ApiError, find_access
from scriptmode_kubernetes._engine.engine import (
    OBJECTS_FILE,
    await_deletion,
    describe_rest,
    find_termination,
    host_variables,
    open_api,
    record_end,
    remove_left_objects,
    remove_objects,
    with_address,
)
from scriptmode_kubernetes._engine.pods import names_of
from scriptmode_kubernetes._engine.settings import settings_from_json
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.engines import Job, JobFolder, Tasks

_INTERFACE = "eth0"
#: What a call of the API raises that may be answered later, as it should.
_UNANSWERED = (PlatformError, OSError, LookupError, TypeError)
#: Seconds between two lists of pods, which make ten calls in a minute at most, and after which one is too old.
_CYCLE_SECONDS, _STALE_SECONDS = 12.0, WATCH_SECONDS + 30.0
#: Seconds between two tries, and that the end of a container has to be told in.
_RETRY_SECONDS, _STATUS_SECONDS = 2.0, 5.0
#: Seconds in which the objects of an earlier run, of the same names, are deleted, and in which an API server that does
#: not answer has to be back to delete those of a job that ends.
_CONFLICT_SECONDS, _REMOVAL_SECONDS = 30.0, 60.0
#: Seconds in which a registry that does not answer may do so again.
_REGISTRY_SECONDS = 120.0
#: Seconds in which a pod may have become known to be lost; a shell's code is more where a signal ended its program.
_LOSS_SECONDS, _SIGNALS = 3.0, 128


class KubernetesFleet(Fleet):
    """All hosts of a job, each of them a pod."""

    def __init__(self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str]) -> None:
        super().__init__(folder, job, tasks, inherited)
        self._settings = settings_from_json(job.engine)
        self._keys = StreamKeys.create()
        self._secret = secrets.token_hex(32)
        self._listeners: dict[str, socket.socket] = {}
        #: The pods as they were created, and what selects them.
        self._made: list[Mapping[str, Any]] = []
        self._selector = names_of(folder).selector
        #: When some pods and not all were found to have a node, and how long they may hold it; Kueue has its own limit.
        self._partial_since, limit = math.inf, self._settings.schedule_timeout
        self._longest_partial = math.inf if self._settings.queue or not limit else limit
        #: The files of the hosts' addresses, and of why the pods were deleted to be created again.
        self._addresses, self._released_file = folder.channels / "addresses", folder.channels / "released"
        #: When the image of the host of this process, a relay, was found to be away.
        self._away_since = math.inf
        #: The file of the pods' statuses, its version that was read last, and the content of that.
        self._pods_file = folder.channels / "pods.json"
        self._pods: tuple[tuple[int, int], dict[str, Any]] = (0, 0), {}
        self.sandboxes = {
            name: Sandbox(name, folder.host(name), contract.DEFAULT_BASE_DIR, _INTERFACE)
            for name in job.request.resources.hosts
        }

    def _prepare(self) -> None:
        """Create the sandboxes' directories, and the job's objects, the pods last."""
        for sandbox in self.sandboxes.values():
            sandbox.base.mkdir(parents=True, exist_ok=True)
        try:
            api = open_api(self._settings)
            address = self._settings.address or _own_address(find_access(self._settings.context).server)
            self._listeners = {host: self._tasks.open_listener(address) for host in self.sandboxes}
            deadline = time.monotonic() + _CONFLICT_SECONDS
            while not self._create_objects(api, address, is_last=time.monotonic() > deadline):
                remove_objects(api, self._folder, waits=True)
                time.sleep(_RETRY_SECONDS)
        except PlatformError as error:
            raise DataError(error.message, advice=error.advice) from error

    def _create_objects(self, api: Api, address: str, *, is_last: bool) -> bool:
        """Create the job's objects; return False for one that an earlier run still has, unless it ``is_last``."""
        names = names_of(self._folder)
        variables = with_address(host_variables(self._job, self._inherited), address)
        own = {key: variables[key] for key in CREDENTIALS if key in variables}
        own["SCRIPTMODE_JOB"] = self._job.request.name
        (self._folder.path / OBJECTS_FILE).touch()
        try:
            owner = api.create("secrets", pods.secret(names, self._keys.host, variables))
            api.create("services", pods.service(names, owner))
            self._made = []
            for host, listener in self._listeners.items():
                own["SCRIPTMODE_AGENT"] = f"{address}:{listener.getsockname()[1]}"
                self._made.append(pods.pod(self._job, host, names, tuple(variables), own, owner))
                api.create("pods", self._made[-1])
        except ApiError as error:
            if error.code != CONFLICT or is_last:
                raise
            return False
        return True

    def start_agents(self, serve: object) -> Sequence[StartedAgent]:  # noqa: ARG002 - no agent is a fork
        """Create the job's objects, start the watch of the pods, and a relay to each of them."""
        self._prepare()
        self._addresses.mkdir(exist_ok=True)
        replace_file(self._pods_file, b"{}", durable=False)
        self._tasks.start(self._watch, "the watch of the pods", stays=True)
        job = self._folder, self._job
        return [
            start_relay(job, host, listener, self._keys, self, self._tasks)
            for host, listener in self._listeners.items()
        ]

    def _watch(self) -> None:
        """Keep the file of the pods' statuses, for the relays, until this process is killed."""
        while True:
            begun = time.monotonic()
            self._try(self._watch_once)
            time.sleep(max(0.0, begun + _CYCLE_SECONDS - time.monotonic()))

    def _list_pods(self, api: Api) -> tuple[dict[str, Any], str]:
        """Write the pods' statuses; return them, and their version."""
        listed = api.list("pods", labelSelector=self._selector)
        by_host = {pod["metadata"]["labels"][pods.HOST_LABEL]: pod for pod in listed["items"]}
        self._write_pods(by_host)
        return by_host, listed["metadata"]["resourceVersion"]

    def _try(self, call: Callable[[Api], object]) -> None:
        """Make a call of the API: what it does not answer now, or not as it should, it may answer later."""
        with suppress(*_UNANSWERED):
            call(open_api(self._settings))

    def _watch_once(self, api: Api) -> None:
        by_host, version = self._list_pods(api)
        if time.monotonic() - self._partial_since >= self._longest_partial:
            self._release(api)
            return
        query = {"resourceVersion": version, "timeoutSeconds": str(min(WATCH_SECONDS, self._longest_partial))}
        for change in api.watch("pods", labelSelector=self._selector, **query):
            if change["type"] == "ERROR":
                return
            host = change["object"]["metadata"]["labels"][pods.HOST_LABEL]
            by_host[host] = None if change["type"] == "DELETED" else change["object"]
            self._write_pods(by_host)

    def _release(self, api: Api) -> None:
        """Delete the pods, whose nodes another job may wait for, and create them again after a random time."""
        why = f"not all pods had a node in {self._longest_partial} s: they were deleted, and are created again later"
        again, text = time.monotonic() + secrets.SystemRandom().uniform(0, self._longest_partial), why
        while text:
            # Before the first pod ends: no host starts while it is there.
            replace_file(self._released_file, why.encode(), durable=False)
            # The relays write a file that is too old.
            self._write_file(dict.fromkeys(self.sandboxes, status.deleted_to_wait(text)))
            try:
                api.delete_all("pods", self._selector, gracePeriodSeconds=1)
            except ApiError as error:
                if not error.may_pass:
                    self._released_file.unlink()
                    self._longest_partial = math.inf
                    sys.stderr.write(f"scriptmode: pods keep nodes that others may wait for: {error}\n")
                    return
            time.sleep(min(_CYCLE_SECONDS, max(0.0, again - time.monotonic())))
            if time.monotonic() >= again:
                text, again = self._create_again(api), time.monotonic() + _CYCLE_SECONDS
        self._partial_since = math.inf

    def _create_again(self, api: Api) -> str:
        """Create the pods once the earlier ones are gone, and their relays know it; return why not yet, else ""."""
        try:
            # The first one may not have been answered.
            api.delete_all("pods", self._selector, gracePeriodSeconds=1)
            await_deletion(api, self._selector)
            os.utime(self._pods_file)
            if any(self._addresses.iterdir()):
                return "the connections of the earlier pods have not ended"
            self._released_file.unlink()
            for pod in self._made:
                api.create("pods", pod)
                os.utime(self._pods_file)
        except _UNANSWERED as error:
            return str(error) or type(error).__name__
        return ""

    def _write_pods(self, found: Mapping[str, Any]) -> None:
        is_partial = status.is_partly_scheduled(found.values())
        self._partial_since = min(self._partial_since, time.monotonic()) if is_partial else math.inf
        self._write_file(found)
        with suppress(OSError):
            known = self._folder.read_places()
            places = {**known, **{host: status.describe_place(pod) for host, pod in found.items() if pod}}
            if places != known:
                self._folder.write_places(places)

    def _write_file(self, found: Mapping[str, Any]) -> None:
        with suppress(OSError):
            content = json.dumps({host: found.get(host) for host in self.sandboxes})
            replace_file(self._pods_file, content.encode(), durable=False)

    def read_pods(self) -> dict[str, Any]:
        """Return the last status of each pod by its host, None for a deleted one; nothing before they were listed."""
        with suppress(OSError, ValueError, RuntimeError):
            if time.time() - self._pods_file.stat().st_mtime > _STALE_SECONDS:
                # The watch was killed. The other relays do not list them, too, and this one serves its host meanwhile.
                os.utime(self._pods_file)
                Thread(target=self._try, args=(self._list_pods,), daemon=True).start()
            # It is asked for several times a second, and large for many hosts.
            version = self._pods_file.stat().st_ino, self._pods_file.stat().st_mtime_ns
            if version != self._pods[0]:
                self._pods = version, dict(json.loads(self._pods_file.read_text(encoding="utf-8")))
        return self._pods[1]

    def write_sandbox(self, host: str, address: str) -> bool:
        """Write a host's sandbox once all addresses are known; return whether it is written."""
        if not (self._addresses / host).exists():
            replace_file(self._addresses / host, address.encode(), durable=False)
        if self._released_file.exists() or not all((self._addresses / name).exists() for name in self.sandboxes):
            return False
        hosts = {name: {"address": (self._addresses / name).read_text(encoding="utf-8")} for name in self.sandboxes}
        content = {"hosts": hosts, "single_machine": False, "isolate_requirements": True, "secret": self._secret}
        sandbox = self.sandboxes[host]
        sandbox.prepare(self._job.request, content, copies_source=True)
        sandbox.open_to_all_users(files=True)
        return True

    def waits_for(self, host: str) -> str:
        """Return what the pod waits for; raise `PlatformError` for one that never runs."""
        pod = self.read_pods().get(host)
        text = status.describe_wait(host, pod) if pod else f"the pod of {host}"
        error = status.find_image_error(pod) if pod else None
        self._away_since = math.inf if error is None else min(self._away_since, time.monotonic())
        if error and time.monotonic() - self._away_since > _REGISTRY_SECONDS:
            raise PlatformError(f"no image in {_REGISTRY_SECONDS:.0f} s: {text}", "see that nodes reach its registry")
        return text

    def describe_loss(self, host: str) -> str:
        """Return how the cluster ended the pod; "" where it did not, or nothing is known."""
        by_host = self.read_pods()
        return status.describe_loss(host, by_host[host]) if by_host else ""

    def why_replaced(self, host: str) -> str:
        """Return why the pods were deleted to be created again; "" where they were not."""
        if not self._released_file.exists():
            return ""
        (self._addresses / host).unlink(missing_ok=True)
        return self._released_file.read_text(encoding="utf-8")

    def explain_end(self, host: str, code: int) -> str:
        """Return that the container ran out of memory; the kubelet tells its end after some moments."""
        if code not in (-9, 128 + 9):
            return ""
        deadline = time.monotonic() + _STATUS_SECONDS
        while time.monotonic() < deadline:
            explained = status.describe_out_of_memory(self.read_pods().get(host))
            if explained is not None:
                return explained
            time.sleep(0.1)
        return ""

    def find_disconnected(self, code: int | None = None) -> Problem | None:
        """Return which pod the cluster ended; it may take a moment until it says so of one whose host was killed."""
        # A host that exits because another pod is gone does so after the cluster's record of it.
        is_killed = code is None or code < 0 or code > _SIGNALS
        deadline = time.monotonic() + (_LOSS_SECONDS if is_killed else 0)
        with suppress(PlatformError):
            api = open_api(self._settings)
            while True:
                if termination := find_termination(api, self._folder, self._job):
                    return Problem(termination.text)
                if time.monotonic() > deadline:
                    return None
                time.sleep(0.5)
        return None

    def remove_hosts(self) -> list[str]:
        """Record why the cluster ended a pod, if it did, and delete the job's objects; try again for a minute."""
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while error := self._try_to_remove():
            if not (isinstance(error, ApiError) and error.may_pass) or time.monotonic() > deadline:
                return [str(describe_rest(self._folder, self._settings, error))]
            time.sleep(_RETRY_SECONDS)
        with suppress(PlatformError, OSError):
            # Of jobs of the data directory that ended while the API did not answer.
            for left in self._folder.path.parent.glob(f"*/{OBJECTS_FILE}"):
                folder = type(self._folder)(left.parent)
                if folder.read_state().ended and not folder.has_agent():
                    remove_left_objects(folder)
        return []

    def _try_to_remove(self) -> PlatformError | None:
        try:
            if (self._folder.path / OBJECTS_FILE).exists():
                api = open_api(self._settings)
                remove_objects(api, self._folder, waits=record_end(api, self._folder, self._job))
        except PlatformError as error:
            return error
        return None


def _own_address(server: str) -> str:
    """Return the address of this machine's interface towards the API server; nothing is sent."""
    parts = urlsplit(server)
    with socket.socket(socket.AF_INET6 if ":" in str(parts.hostname) else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname, parts.port or 443))
        return str(probe.getsockname()[0])
