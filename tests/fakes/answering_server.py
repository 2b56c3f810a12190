"""An HTTP server that answers each call of a program as a test wants."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Quiet:
    def log_message(self, *_):
        """Write nothing."""


@contextmanager
def answering(answer):
    """Answer every POST by ``answer(headers)``, a status and bytes; yield the server, whose ``paths`` were asked for."""

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_POST(self):
            self.server.paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            status, content = answer(self.headers)
            self.send_response_only(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.paths = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
