"""A server of SageMaker's training API: its settings, its services and its life."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, SERVER_FILE, make_private, unwritable_error
from scriptmode._core.machine.installation import install_command
from scriptmode._core.spec.service_values import ENDED
from scriptmode.errors import PlatformError, ScriptmodeError, invalid
from scriptmode_local import LocalPlatform
from scriptmode_local._hosts.local_agent import AGENT_IMPORTS, AGENT_MODULE, FORK_SERVER, SERVER_END_FILE, TUNING_MODULE
from scriptmode_local._store.job_store import JobStore
from scriptmode_local._system.directory_lock import try_lock
from scriptmode_local._system.fork_server import ForkServer
from scriptmode_runtime._processes import proc, process_tree
from scriptmode_serve._http import page, seaweedfs
from scriptmode_serve._http.access_keys import AccessKeys, random_key
from scriptmode_serve._http.application import Application, check_headers
from scriptmode_serve._http.cloudwatch import CloudWatch
from scriptmode_serve._http.error_answers import render_error
from scriptmode_serve._http.guard import Guard, is_loopback
from scriptmode_serve._http.http_server import create_http_server
from scriptmode_serve._http.other_services import OtherServices, require_packages
from scriptmode_serve._http.s3_proxy import S3Proxy
from scriptmode_serve._http.seaweedfs import ObjectStore
from scriptmode_serve._http.wsgi import Environ, StartResponse, respond
from scriptmode_serve._operations.allowed_paths import check_paths
from scriptmode_serve._operations.aws_json import ApiError, Operation
from scriptmode_serve._operations.job_details import job_details
from scriptmode_serve._operations.job_metrics import JobMetrics
from scriptmode_serve._operations.log_operations import log_operations
from scriptmode_serve._operations.log_times import KnownTimes
from scriptmode_serve._operations.metric_operations import Metrics
from scriptmode_serve._operations.request_mapping import HostTable
from scriptmode_serve._operations.search import search
from scriptmode_serve._operations.tag_operations import TagOperations
from scriptmode_serve._operations.training_jobs import TrainingJobs
from scriptmode_serve._operations.tuning_operations import TuningJobs

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 4580
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes:
        host: Address or name at which it listens.
        port: Its port; 0 is one that is free.
        table: The hosts and images that stand for SageMaker's.
        queue: The most jobs that run at once, for which the others wait; 0 is as many as the machine has room for.
        force: Whether jobs start that are too large for this machine.
        quotas: Most instances that jobs use at once by instance type.
        s3: Where S3's objects are: "disk" is a server below the data directory, "memory" is this process, anything else
            the URL of a server.
        allowed: Directories of this machine that a request may name by ``file://`` URIs.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    table: HostTable = field(default_factory=HostTable)
    queue: int = 0
    force: bool = False
    quotas: Mapping[str, int] = field(default_factory=dict)
    s3: str = "disk"
    allowed: tuple[str, ...] = ()


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``HOST:PORT``, ``HOST``, ``[IPV6]:PORT`` or ``IPV6``; raise `SpecError`."""
    is_ipv6 = text.count(":") > 1 and not text.startswith("[")
    try:
        parts = urlsplit(f"//[{text}]" if is_ipv6 else f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or host.isdecimal() or set(text) & set("/@?#"):
        step = f"write an address and a port of at most 65535, such as {DEFAULT_HOST}:{DEFAULT_PORT}"
        raise invalid("--listen", f"is {text!r}", step)
    return host, DEFAULT_PORT if port is None else port


class Server:
    """A server of SageMaker's training API.

    It listens once it is created, with handlers of the process's signals, and answers while `run` runs.

    Args:
        settings: Its settings.
        report: Called with one line for each change, and with unexpected errors.

    Raises:
        MissingPackageError: The packages of the extra ``serve`` are not installed.
        PlatformError: The address cannot be used.
    """

    def __init__(self, settings: Settings, report: Callable[[str], None]) -> None:
        require_packages()
        self._report = report
        self._platform = LocalPlatform(queue=settings.queue or "auto", force=settings.force)
        data_dir = Path(str(self._platform.arguments["data_dir"]))
        self._keys = AccessKeys(data_dir)
        _check(settings, self._keys, data_dir)
        times = KnownTimes(self._platform)
        self._metrics = JobMetrics(self._platform, times)
        self._is_s3_elsewhere = settings.s3 not in ("disk", "memory")
        guard = Guard(settings.host, keys=self._accepted_keys, s3=settings.s3)
        self._lock = _lock(data_dir)
        # Before the S3 server is started, which another server may use; it answers from `run` on.
        check = partial(check_headers, guard, report)
        self._http = create_http_server(self._respond, settings.host, settings.port, check)
        if self._keys.read():
            report("requests must be signed with an access key: scriptmode serve key creates one")
        self._has_ended = threading.Event()
        self._agents = ForkServer(AGENT_MODULE, *AGENT_IMPORTS)
        self._store, self._end_file = JobStore(data_dir), data_dir / SERVER_END_FILE
        self._signal, self._is_interruptible = 0, False
        self._handle_signals()
        self._objects, self._s3_url, others = _create_s3(settings.s3, data_dir, report)
        # Hosts on other machines do not reach a server of this machine's loopback interface.
        self._passes_s3_on = settings.s3 == "memory" or (self._objects and settings.table.is_elsewhere)
        logs = log_operations(self._platform, times)
        self._application = Application(
            {
                "SageMaker": self._sagemaker(settings),
                "Logs_20140328": logs,
                page.TARGET: {
                    **page.page_operations(self._metrics.values, logs["GetLogEvents"]),
                    **job_details(self._platform, self._metrics.values),
                },
            },
            CloudWatch(Metrics(self._metrics.values, time.time).operations, others),
            guard,
            report,
        )

    def _handle_signals(self) -> None:
        """Let SIGTERM, SIGINT and SIGHUP end `run`; nohup ignores the last, a container has no terminal that closes."""
        signal.signal(signal.SIGTERM, self._end)
        for number in (signal.SIGINT,) if os.getpid() == 1 else (signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._end)

    def _accepted_keys(self) -> dict[str, str]:
        """Return the access keys, and that of the S3 server, which jobs use."""
        keys = self._keys.read()
        return {**keys, **dict([self._objects.access.key])} if keys and self._objects else keys

    def _sagemaker(self, settings: Settings) -> dict[str, Operation]:
        check = partial(check_paths, allowed=settings.allowed, has_all_keys=self._objects is None)
        tuning, metrics = self._platform.tuning, self._metrics.final_values
        jobs = TrainingJobs(self._platform, settings.table, final_metrics=metrics, check=check, quotas=settings.quotas)
        tags = TagOperations(self._platform, tuning)
        return {
            **jobs.operations,
            "Search": lambda arguments: search(jobs.describe_all(), tags.of_training_job, jobs.metrics, arguments),
            **TuningJobs(tuning, settings.table, check=check).operations,
            **tags.operations,
        }

    def _respond(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if self._has_ended.is_set() and ".Create" in environ.get("HTTP_X_AMZ_TARGET", ""):
            content, kind = render_error(environ, ApiError("ServiceUnavailable", "This server ends; try again.", 503))
            return respond(start_response, content, status=503, content_type=kind)
        FORK_SERVER.set(self._agents)
        return self._application(environ, start_response)

    @property
    def url(self) -> str:
        """The URL for AWS_ENDPOINT_URL."""
        host = self._http.effective_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._http.effective_port}"

    @property
    def _client_variables(self) -> dict[str, str]:
        """The environment variables with which an AWS client that has no settings uses the server, but for its key."""
        always = {"AWS_ENDPOINT_URL": self.url, "AWS_DEFAULT_REGION": self._platform.region}
        # Where the server has no access key, it accepts any; clients send nothing without one.
        return always if self._keys.read() else {**always, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}

    def run(self, announce: Callable[[str, str], None]) -> None:
        """Call ``announce`` with the URL and the command of clients, and run until a signal; jobs go on."""
        try:
            try:
                self._is_interruptible = True
                self._end(self._signal)
                announce(self.url, _export_command(self._client_variables))
                variables = {"AWS_ENDPOINT_URL_S3": self._s3_url} if self._is_s3_elsewhere else self._client_variables
                _record(self._lock, _export_command(variables))
                os.environ.update(self._job_settings())
                self._agents.start()
                # An interrupted job reads what the S3 server has; raises `PlatformError` where that does not answer.
                if self._objects and any(self._store.versions(self._store.names())):
                    self._objects.wait_until_ready()
                for name in self._platform.resume():
                    self._report(f"training job {name} was interrupted, and starts again")
                threading.Thread(target=self._look_at_jobs, name="jobs", daemon=True).start()
                if self._objects:
                    self._objects.watch(self._report)
                self._http.run()
            finally:
                self._is_interruptible = False
        finally:
            # No signal interrupts this; a terminal that closes may send several.
            self._has_ended.set()
            self._http.close()
            self._agents.close()
            self._stop_objects()
            if self._signal == signal.SIGHUP:
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGHUP)

    def _end(self, number: int, _: object = None) -> None:
        """End `run`, as the handler of signals; before `run` a signal is noted, and during its end it does nothing.

        The first process of a container ends after its jobs, whose agents would be killed with it: it still has S3.
        """
        self._signal = self._signal or number
        if not (self._signal and self._is_interruptible):
            return
        if os.getpid() != 1 or self._has_ended.is_set():
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(0)
        self._end_file.touch()
        self._has_ended.set()

    def _look_at_jobs(self) -> None:
        """Look at the jobs that run, which starts a lost one again, also while no client asks."""
        ended: set[int] = set()
        while not self._has_ended.wait(_LOOK_SECONDS):
            with suppress(Exception):
                self._platform.select(lambda _: {"TrainingJobSummaries": []})
            ended = _reap_orphans(ended) if os.getpid() == 1 else ended
        if is_left := self._end_file.exists():
            while is_left:
                with suppress(ScriptmodeError):
                    is_left = _terminate_agents(self._store)
                time.sleep(_LOOK_SECONDS)
            os.kill(os.getpid(), signal.SIGTERM)

    def _stop_objects(self) -> None:
        if self._is_s3_elsewhere:
            return
        names = [job["TrainingJobName"] for job in self._platform.list() if job["TrainingJobStatus"] not in ENDED]
        users = ", ".join(filter(self._names_objects, names))
        if self._objects is None:
            if users:
                lost = "jobs in progress have lost them, and fail when they deliver"
                self._report(f"S3's objects were in memory and are gone; {lost}: {users}")
        elif users:
            until = "until scriptmode serve is started again and ends without such jobs"
            self._report(f"jobs that use S3 are in progress: the S3 server runs on for them, {until}")
            self._objects.leave()
        else:
            self._objects.stop()

    def _names_objects(self, job: str) -> bool:
        """Return whether anything of a job's request is in S3; True for one that cannot be read."""
        with suppress(ScriptmodeError):
            return "s3://" in str(self._store.find(job).read_job().request)
        return True

    def _job_settings(self) -> Iterator[tuple[str, str]]:
        """Yield the variables with which jobs, and the server itself, find the services."""
        yield "AWS_ENDPOINT_URL", self.url
        yield "AWS_ENDPOINT_URL_S3", self.url if self._passes_s3_on else self._s3_url
        if self._objects:
            # It accepts no other key, and is the S3 of all jobs.
            for name in ("PROFILE", "DEFAULT_PROFILE", "SESSION_TOKEN", "IGNORE_CONFIGURED_ENDPOINT_URLS"):
                os.environ.pop(f"AWS_{name}", None)
            key: tuple[str, str] = self._objects.access.key
        elif {"AWS_ACCESS_KEY_ID", "AWS_PROFILE"} & os.environ.keys():
            return
        else:
            # Without keys any is accepted; a word would be hidden as a secret wherever a job's texts have it.
            key = next(iter(self._keys.read().items()), random_key())
        yield from zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), key)


def _check(settings: Settings, keys: AccessKeys, data_dir: Path) -> None:
    """Raise `SpecError` for settings with which no server may start."""
    try:
        socket.create_server((settings.host, 0), family=socket.getaddrinfo(settings.host, 0)[0][0]).close()
    except (OSError, ValueError) as error:
        step = f"write one, such as {DEFAULT_HOST}:{DEFAULT_PORT}"
        raise invalid("--listen", f"is {settings.host!r}, which is not an address of this machine", step) from error
    if not is_loopback(settings.host) and not keys.read():
        what = f"is {settings.host!r}, which other machines reach, but the server has no access key"
        raise invalid("--listen", what, "create one: scriptmode serve key")
    if settings.s3 == "disk":
        seaweedfs.check_data_dir(data_dir)


def _lock(data_dir: Path) -> int:
    """Return a descriptor with the lock of the only server of a data directory; raise `PlatformError`."""
    file = data_dir / SERVER_FILE
    try:
        make_private(file.parent, data_dir)
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unwritable_error(data_dir, error) from error
    # A client that looks whether there is a server locks it for a moment.
    if not process_tree.wait_until(partial(try_lock, lock), _LOOK_SECONDS):
        owner = os.read(lock, 20).decode(errors="replace").partition("\n")[0]
        what = f"the data directory {data_dir} has a server already, process {owner}"
        raise PlatformError(what, advice=f"end it, or give another directory in {DATA_DIR_VARIABLE}")
    _record(lock, "")
    (data_dir / SERVER_END_FILE).unlink(missing_ok=True)
    return lock


def _terminate_agents(store: JobStore) -> bool:
    """End the jobs before all processes of a container are killed; return whether an agent of a training job is left.

    The next server continues tuning jobs, and jobs that are Pending, of which nothing has run: their agents are killed.
    """
    process_tree.kill_all(pid for pid in proc.processes() if TUNING_MODULE in proc.command_line(pid))
    is_left = False
    for folder in map(store.folder, store.names()):
        with suppress(ScriptmodeError):
            number = signal.SIGKILL if folder.read_state().secondary == "Pending" else signal.SIGTERM
            # One that is not recorded yet is asked in the next turn.
            agent = folder.read_processes().get("agent")
            is_left |= folder.has_agent() and (agent is None or process_tree.send_signal(agent, number))
    return is_left


def _reap_orphans(known: set[int]) -> set[int]:
    """Reap those of the children ``known`` to have ended; return the others. A process's own are reaped at once."""
    ended = {pid for pid, child in proc.processes().items() if child.parent == os.getpid() and not child.running}
    for pid in ended & known:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return ended - known


def _export_command(variables: Mapping[str, str]) -> str:
    return "export " + " ".join(f"{name}={value}" for name, value in variables.items())


def _record(lock: int, command: str) -> None:
    """Write the process and the command of clients to the file of the lock."""
    os.truncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n{command}\n".encode(), 0)


def _create_s3(s3: str, data_dir: Path, report: Callable[[str], None]) -> tuple[ObjectStore | None, str, OtherServices]:
    """Return the S3 server, if one was started, its URL, and the services beside SageMaker; raise `PlatformError`."""
    if s3 == "memory":
        return None, s3, OtherServices()
    if s3 != "disk":
        proxy = S3Proxy(s3)
        try:
            with closing(proxy.connection(seconds=3)) as connection:
                connection.connect()
        except OSError as error:
            report(f"Warning: the S3 server {s3} cannot be reached: {error}; start it, or correct --s3")
        return None, s3, OtherServices(proxy)
    program = seaweedfs.find_program()
    if program is None:
        raise PlatformError(
            "S3's objects cannot be kept on disk, because SeaweedFS is not installed",
            advice=f"{install_command('serve')}, or give --s3 memory, or the URL of an S3 server",
        )
    store = ObjectStore(data_dir, program)
    store.start()
    return store, store.url, OtherServices(S3Proxy(store.url, store.wait_until_ready, key=store.access.key))
