"""A real JupyterLab in a headless Chromium, which is driven through its debugging port."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import websocket
from fakes.installed import require
from fakes.processes import until

TOKEN = "token-of-a-test"
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"

#: Whether the notebook is open and its kernel answers; a command before that opens a dialogue.
READY = """
[...window.jupyterapp?.shell.widgets('main') ?? []].some(each => each.sessionContext?.session?.kernel?.status === 'idle')
"""


class Page:
    """One page of a browser."""

    def __init__(self, address):
        self._socket = websocket.create_connection(address, timeout=120)
        self._sent = 0

    def open(self, address):
        self._call("Page.navigate", url=address)

    def value(self, expression):
        """Evaluate JavaScript in the page, await a promise, and return its value as JSON tells it."""
        reply = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    def command(self, name, **arguments):
        """Run one of JupyterLab's commands, and wait until it has ended."""
        self.value(f"window.jupyterapp.commands.execute({name!r}, {json.dumps(arguments)}).then(() => true)")

    def _call(self, method, **parameters):
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self._socket.recv())
            if reply.get("id") == self._sent:
                assert "error" not in reply, reply
                return reply["result"]

    def close(self):
        self._socket.close()


@contextmanager
def notebook_page(folder, notebook, environment):
    """Open a notebook of the folder in JupyterLab; end both programs afterwards."""
    own = {**os.environ, **environment, "HOME": str(folder), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    lab = (
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser",
        "--ServerApp.port=0", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    )  # fmt: skip
    with _running(lab, folder, own):
        (server,) = until(lambda: list((folder / "runtime").glob("jpserver-*.json")))
        address = until(lambda: _written(server))["url"]
        with browser_page(folder, own) as page:
            page.open(f"{address}lab/tree/{notebook}?token={TOKEN}")
            until(lambda: page.value(READY))
            page.command("application:toggle-left-area")
            yield page


@contextmanager
def browser_page(folder, environment, size=(1200, 1100)):
    """Start Chromium with one empty page."""
    program = require("chromium")
    profile = folder / "profile"
    command = (
        program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
        "--remote-allow-origins=*", f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "about:blank",
    )  # fmt: skip
    with _running(command, folder, environment):
        port = until(
            lambda: (profile / "DevToolsActivePort").is_file() and (profile / "DevToolsActivePort").read_text()
        )
        request = Request(f"http://127.0.0.1:{port.split()[0]}/json/new?about:blank", method="PUT")
        page = Page(json.loads(urlopen(request, timeout=600).read())["webSocketDebuggerUrl"])
        try:
            yield page
        finally:
            page.close()


@contextmanager
def _running(command, folder, environment):
    with Path(folder, f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        # The kernels end with their server, which ends them within seconds.
        process.terminate()
        try:
            process.wait(600)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _written(file):
    try:
        return json.loads(file.read_text())
    except ValueError:
        return None
