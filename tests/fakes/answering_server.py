"""An HTTP server that answers each call of a program as a test wants."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet:
    def log_message(self, *_):
        """Write nothing."""


@contextmanager
def served(handler, address=("127.0.0.1", 0)):
    """Have a class of handlers answer requests, each in a thread; yield the server, which has ended afterwards."""
    with ThreadingHTTPServer(address, handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(answer):
    """Answer every POST by ``answer(headers, body)``, a status and bytes; yield the server, whose ``paths`` were asked for.

    Where it returns None, the connection is closed without an answer.
    """

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.paths.append(self.path)
            if (given := answer(self.headers, self.rfile.read(int(self.headers["Content-Length"])))) is None:
                return
            status, content = given
            self.send_response_only(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with served(Handler) as server:
        server.paths = []
        yield server
