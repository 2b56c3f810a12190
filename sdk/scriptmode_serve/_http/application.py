"""The WSGI application: which service a request is for, its limits, and its answer."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from scriptmode._core.spec.hosts import CLIENT_REGION
from scriptmode._core.text.terminal_text import escape_unprintable
from scriptmode_serve._http.error_answers import find_code, render_error
from scriptmode_serve._http.guard import Guard
from scriptmode_serve._http.page import is_for_page, respond_with_page
from scriptmode_serve._http.signatures import client_region
from scriptmode_serve._http.wsgi import Environ, Service, StartResponse, read_body, respond
from scriptmode_serve._operations import aws_json
from scriptmode_serve._operations.aws_json import ApiError, Operation

_TITLES = {"Logs_20140328": "CloudWatch Logs"}
#: Characters of what a client has sent in a line of the log.
_MOST = 300
#: Operations that the server reports, with the argument that names the job.
_REPORTED = {
    f"{verb}{kind}": f"{kind}Name"
    for kind in ("TrainingJob", "HyperParameterTuningJob")
    for verb in ("Create", "Stop", "Delete")
}


def _sandboxed(start_response: StartResponse) -> StartResponse:
    """Return a function that starts an answer which is a page of no site in a browser.

    An object of S3 may be a page that a job wrote: its script would use the server as the server's own page does.
    """
    policy = ("Content-Security-Policy", "sandbox")
    return lambda status, headers, *rest: start_response(status, [*headers, policy], *rest)


def describe_refusal(environ: Environ, error: ApiError) -> str:
    """Return the log's line of a refused request; of the reason the members, and no value, which may be a secret."""
    call = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2] or "{REQUEST_METHOD} {PATH_INFO}".format(**environ)
    reason = error.message
    if error.status != HTTPStatus.FORBIDDEN:
        members = ",".join(dict.fromkeys(re.findall(r" at '[\w.-]+'(?= failed to | is not )", reason)))
        # An apostrophe in a word, such as "object's", neither begins a value nor ends one.
        reason = re.split("[=:]", re.sub(r"(?s)(?<!\w\w)['\"](.*['\"](?!\w)|.*)", "...", reason))[0] + members
    line = f"{environ['REMOTE_ADDR']}: {call[:_MOST]} is refused: {find_code(environ, error)}: {reason.strip()[:_MOST]}"
    return f"{time.strftime('%Y-%m-%d %H:%M:%S')} {escape_unprintable(line)}"


def check_headers(guard: Guard, report: Callable[[str], None], environ: Environ) -> None:
    """Raise `ApiError` for a request that is refused before its body is read, and report it."""
    try:
        guard.check_headers(environ)
    except ApiError as error:
        report(describe_refusal(environ, error))
        raise


@dataclass(frozen=True)
class Application:
    """The services of one server.

    Attributes:
        services: Operations by the prefix of the header ``X-Amz-Target``, then by their names.
        others: What answers all other requests.
        guard: What a request must meet before it is read.
        report: Called with one line for each change and refusal, and with the traceback of an unexpected error.
    """

    services: Mapping[str, Mapping[str, Operation]]
    others: Service
    guard: Guard
    report: Callable[[str], None]

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Call the operation of one request, and return the body of its answer."""
        service, _, operation = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")
        try:
            if is_for_page(environ):
                self.guard.check_site(environ)
                return respond_with_page(start_response)
            self.guard.check(environ)
            if service in self.services:
                CLIENT_REGION.set(client_region(environ))
                return respond(start_response, self._call(service, operation, environ))
            return self.others(environ, _sandboxed(start_response))
        except ApiError as error:
            self.report(describe_refusal(environ, error))
            refusal = error
        except Exception:  # noqa: BLE001 - one request must not end the server
            self.report(traceback.format_exc())
            refusal = ApiError("InternalFailure", "The log of scriptmode serve has the cause.", 500)
        content, kind = render_error(environ, refusal)
        return respond(start_response, content, status=refusal.status, content_type=kind)

    def _call(self, service: str, operation: str, environ: Environ) -> bytes:
        operations = self.services[service]
        if operation not in operations:
            raise ApiError(
                "UnknownOperationException",
                f"scriptmode serve does not have the operation {operation} of {_TITLES.get(service, service)}; "
                f"it has {', '.join(operations)}.",
            )
        started = time.monotonic()
        arguments = aws_json.parse_request(read_body(environ))
        content = aws_json.render(operations[operation](arguments))
        if operation in _REPORTED:
            name = arguments.get(_REPORTED[operation])
            self.report(f"{operation} {name} ({(time.monotonic() - started) * 1000:.0f} ms)")
        return content
