"""Git repositories of the tests, and a real web server that serves them to authenticated clients."""

import base64
import os
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from fakes.answering_server import Quiet

PLAIN = {
    "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
}  # fmt: skip


class Repository:
    """A repository whose default branch is ``trunk``: three commits there, a tag on the first, one on ``other``."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=trunk")
        self.first = self.commit("first")
        self.git("tag", "v1")
        self.git("checkout", "--quiet", "-b", "other")
        self.other = self.commit("other")
        self.git("checkout", "--quiet", "trunk")
        self.between = self.commit("between")
        self.second = self.commit("second")

    @property
    def url(self):
        return self.folder.as_uri()

    def git(self, *arguments):
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, env=PLAIN, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, text):
        (self.folder / "train.py").write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")

    def publish(self, folder):
        """Create a bare copy that a static file server can serve."""
        self.git("clone", "--quiet", "--bare", str(self.folder), str(folder))
        subprocess.run(["git", "-C", str(folder), "update-server-info"], env=PLAIN, check=True)


class GitServer:
    """Gives a folder's files to who has the login (or to all), and keeps what it was asked.

    ``/moved/...`` redirects to ``/...``; ``/stuck/...`` never answers.
    """

    def __init__(self, folder, login=None):
        self.expected = login and "Basic " + base64.b64encode(login.encode()).decode()
        self.requests = []
        self.on_request = lambda: None
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(str(folder)))
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self, folder):
        server = self

        class Handler(Quiet, SimpleHTTPRequestHandler):
            def __init__(self, *arguments):
                super().__init__(*arguments, directory=folder)

            def do_GET(self):
                given = self.headers.get_all("Authorization", [])
                server.requests.append((self.path, given))
                server.on_request()
                if self.path.startswith("/stuck/"):
                    server._released.wait()
                elif self.path.startswith("/moved/"):
                    self._answer(301, "Location", self.path[len("/moved") :])
                elif server.expected and given != [server.expected]:
                    self._answer(401, "WWW-Authenticate", 'Basic realm="tests"')
                else:
                    super().do_GET()

            def _answer(self, code, header, value):
                self.send_response(code)
                self.send_header(header, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

        return Handler
