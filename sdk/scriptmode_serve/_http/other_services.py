"""Services that are not SageMaker's: S3, STS, IAM and the rest. moto has them in this process.

moto keeps everything in memory. Its S3 is replaced by a server that keeps objects on disk, see `seaweedfs`. In its IAM
every role exists, and may do everything: clients look for one before they start a job. The SageMaker SDK v3 looks at a
role's trust policy, and simulates its policies. In its STS a client that has assumed no role has that of this machine:
`get_execution_role` of every SageMaker SDK asks for it.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, quote

from scriptmode._core.machine.installation import install_command, missing_package
from scriptmode._core.spec.hosts import LOCAL_ACCOUNT, LOCAL_ROLE
from scriptmode_serve._http.error_answers import render_query_answer
from scriptmode_serve._http.s3_requests import FORM, is_for_s3, is_query_call
from scriptmode_serve._http.wsgi import Environ, Service, StartResponse, read_body, respond

_IAM_NAMESPACE = "https://iam.amazonaws.com/doc/2010-05-08/"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


def require_packages() -> None:
    """Raise `MissingPackageError` where the packages of the extra are not installed."""
    import importlib.util

    for package in ("waitress", "moto", "flask", "cbor2"):
        if importlib.util.find_spec(package) is None:
            raise missing_package("the server", package, command=install_command("serve"))


class OtherServices:
    """The WSGI application of all other services; ``objects`` is that of S3, None for moto's own, in memory.

    moto is imported by the first request, which takes a second.
    """

    def __init__(self, objects: Service | None = None) -> None:
        self._objects = objects
        self._moto: Service | None = None
        self._lock = threading.Lock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Pass one request to its service, and return the body of its answer."""
        if self._objects is not None and is_for_s3(environ):
            return self._objects(environ, start_response)
        if environ.get("CONTENT_TYPE", "").startswith(FORM) and not is_query_call(environ):
            # moto looks for a call in a form, whatever its method is, and loses one that is not text.
            environ["CONTENT_TYPE"] = "binary/octet-stream"
        if is_query_call(environ):
            fields = parse_qs(read_body(environ).decode("utf-8", "replace"))
            action = fields.get("Action", [""])[0]
            if action == "SimulatePrincipalPolicy":
                return respond(start_response, _simulate(fields), content_type="text/xml")
            if action == "GetRole":
                return self._get_role(fields, environ, start_response)
            if action == "GetCallerIdentity":
                return self._get_caller(environ, start_response)
        return self._load(environ)(environ, start_response)

    def _get_role(
        self, fields: Mapping[str, list[str]], environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Return moto's answer, or that of a role that exists: jobs of this machine need none."""
        status, headers, body = self._ask(environ)
        if status.startswith("404"):
            role = _render_role(fields.get("RoleName", [""])[0])
            return respond(start_response, role, content_type="text/xml")
        start_response(status, headers)
        return [body]

    def _get_caller(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Return moto's answer, with a role in place of the user that moto has by default."""
        status, _, body = self._ask(environ)
        body = body.replace(b":user/moto<", f":assumed-role/{LOCAL_ROLE}/client<".encode())
        return respond(start_response, body, status=int(status[:3]), content_type="text/xml")

    def _ask(self, environ: Environ) -> tuple[str, list[tuple[str, str]], bytes]:
        """Return status, headers and body of moto's answer."""
        answers: list[tuple[str, list[tuple[str, str]]]] = []
        body = b"".join(self._load(environ)(environ, lambda status, headers, *_: answers.append((status, headers))))
        return (*answers[-1], body)

    def _load(self, environ: Environ) -> Service:
        with self._lock:
            if self._moto is None:
                # Read when moto is imported: the account of the jobs' ARNs.
                os.environ.setdefault("MOTO_ACCOUNT_ID", LOCAL_ACCOUNT)
                # The tasks of a state machine call the services of this server, at localhost.
                os.environ["MOTO_PORT"] = environ["SERVER_PORT"]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of packages that moto uses
                    from moto.core.config import default_user_config
                    from moto.server import DomainDispatcherApplication, create_backend_app

                    default_user_config["stepfunctions"]["execute_state_machine"] = True
                    self._moto = DomainDispatcherApplication(create_backend_app)
            return self._moto


def _simulate(fields: Mapping[str, list[str]]) -> bytes:
    """Return the answer to SimulatePrincipalPolicy that every action is allowed."""
    actions = [values[0] for key, values in fields.items() if key.startswith("ActionNames.member.")]
    results = [{"EvalActionName": action, "EvalResourceName": "*", "EvalDecision": "allowed"} for action in actions]
    answer = {"IsTruncated": "false", "EvaluationResults": results}
    return render_query_answer("SimulatePrincipalPolicy", _IAM_NAMESPACE, answer)


def describe_role(arn: str) -> dict[str, str]:
    """Return the role of GetRole's answer without its times and its policies, which protocols have in several forms."""
    path, _, name = arn.partition(":role")[2].rpartition("/")
    return {"Path": f"{path}/", "RoleName": name, "RoleId": "AROASCRIPTMODESERVED", "Arn": arn}


def _render_role(name: str) -> bytes:
    """Return the answer to GetRole for a role that SageMaker may assume."""
    role = describe_role(f"arn:aws:iam::{LOCAL_ACCOUNT}:role/{name}")
    made = {"CreateDate": "2020-01-01T00:00:00Z", "AssumeRolePolicyDocument": quote(json.dumps(_TRUST))}
    return render_query_answer("GetRole", _IAM_NAMESPACE, {"Role": {**role, **made}})
