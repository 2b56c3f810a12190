"""TLS in front of the HTTP server, which has none: a relay of bytes, whose listener has the certificate."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import invalid
from scriptmode.serve import wsgi
from scriptmode.serve.http_server import listening_error

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds in which a client has to finish the handshake.
_HANDSHAKE_SECONDS = 10.0
#: Bytes that each side has to take within `wsgi.IDLE_SECONDS`.
_CHUNK = 64 * 1024
_MOST_CONNECTIONS = 1000


def load_certificate(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS of a server with a certificate; None without one.

    Args:
        certificate: PEM file of the certificate, followed by those of its authorities.
        key: PEM file of the private key; None: it is in the certificate's file.

    Raises:
        SpecError: A file cannot be read or used, or there is a key alone.
    """
    if certificate is None:
        if key is not None:
            advice = "give --tls-certificate FILE, too"
            raise invalid("--tls-key", f"is {str(key)!r}, but there is no certificate", advice)
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password Python would ask for that of an encrypted key at the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # SSLError is an OSError
        files = f"{certificate}" + (f" with the key {key}" if key else "")
        raise invalid(
            "--tls-certificate",
            f"is {files}, which cannot be used: {error}",
            "give PEM files of a certificate and of its key without a password",
        ) from error
    return context


class TlsRelay:
    """Listener that passes the decrypted bytes of each connection to a server of this machine, and its answers back.

    ``target`` is the server's address and port; port 0 of the listener is one that is free. Raises `PlatformError`
    where the address cannot be used.
    """

    def __init__(self, context: ssl.SSLContext, host: str, port: int, target: tuple[str, int]) -> None:
        self._context = context
        self._target = target
        #: Addresses of the clients by the ports of their connections to the server.
        self._clients: dict[str, str] = {}
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as error:
            raise listening_error(error, host, port) from error

    @property
    def port(self) -> int:
        """The port at which it listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Serve in a thread of its own until the process ends."""
        threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True).start()

    def find_client(self, port: str) -> str | None:
        """Return the address of the client whose connection to the server has a port; None for no relayed one."""
        return self._clients.get(port)

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._relay, sock=self._listener, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_SECONDS
        )
        await server.serve_forever()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) >= _MOST_CONNECTIONS:
            writer.close()
            return
        with suppress(OSError):
            answers, requests = await asyncio.open_connection(*self._target)
            port = str(requests.get_extra_info("sockname")[1])
            self._clients[port] = writer.get_extra_info("peername")[0]
            # A chunk is written before the next one is read.
            writer.transport.set_write_buffer_limits(1)
            ways = [asyncio.create_task(_copy(reader, requests)), asyncio.create_task(_copy(answers, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                has_failed = any(way.done() and way.exception() for way in ways)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                requests.close()
                # Before the server can have another connection with this port.
                del self._clients[port]
                if has_failed:
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, wsgi.DISCARD)
                    writer.transport.abort()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await asyncio.wait_for(writer.drain(), wsgi.IDLE_SECONDS)
