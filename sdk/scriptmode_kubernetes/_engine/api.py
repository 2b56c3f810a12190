"""The API of a Kubernetes cluster over HTTPS, with the credentials of a pod or of a kubeconfig file.

Plain HTTPS by urllib3, which boto3 has: the official client takes 126 MB, and twice the time of botocore to import.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
import yaml

from scriptmode.errors import ConfigError, PlatformError

#: Where a pod has the credentials of its service account (Kubernetes documentation, "Accessing the API from a Pod").
_POD_FILES = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CONNECT_SECONDS, _ANSWER_SECONDS = 10.0, 30.0
#: Seconds after which a watch ends, so that a connection is missed that vanished; the server may end it earlier.
WATCH_SECONDS = 60
_LONGEST_TEXT = 300
#: What `ApiError.code` is where no server answered.
UNREACHABLE = 0
#: The status of an object whose name another one has.
CONFLICT = 409


class ApiError(PlatformError):
    """Error of the API server, with its HTTP status, or `UNREACHABLE`."""

    def __init__(self, message: str, code: int, *, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.code = code
        #: Whether the same call may be answered later: after too many requests, and a server's own failures, too.
        self.may_pass = code in (UNREACHABLE, 429) or code >= 500  # noqa: PLR2004


class Access(NamedTuple):
    """How the API is reached: the server's address, PEM texts, and what returns the bearer token ("" for none)."""

    server: str
    namespace: str
    authority: str = ""
    #: That of the client, and its key.
    certificate: tuple[str, str] = ("", "")
    token: str = ""
    token_file: str = ""
    command: tuple[str, ...] = ()
    command_environment: tuple[tuple[str, str], ...] = ()
    is_verified: bool = True

    def find_token(self) -> str:
        """Return the token, which a file or a command may renew; raise `PlatformError`."""
        if self.token_file:
            try:
                return Path(self.token_file).read_text(encoding="utf-8").strip()
            except (OSError, ValueError) as error:
                what = f"the token file {self.token_file} of the service account cannot be read: {error}"
                raise PlatformError(what, advice="see that kubectl get pods works as the same user") from error
        if not self.command:
            return self.token
        environment = {**os.environ, **dict(self.command_environment)}
        try:
            done = subprocess.run(self.command, env=environment, capture_output=True, check=True, timeout=60)
            return str(json.loads(done.stdout)["status"]["token"])
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
            what = f"the kubeconfig's command {self.command[0]!r} gives no token: {error}"
            raise PlatformError(what, advice="see that kubectl get pods works in the same shell") from error


def find_access(context: str = "") -> Access:
    """Return the access of this pod, else that of the kubeconfig's context, by default the current one.

    Raises `ConfigError` where there is neither.
    """
    host = os.environ.get("KUBERNETES_SERVICE_HOST")
    if host and not context and not os.environ.get("KUBECONFIG") and (_POD_FILES / "token").exists():
        address = f"[{host}]" if ":" in host else host
        return Access(
            f"https://{address}:{os.environ.get('KUBERNETES_SERVICE_PORT', '443')}",
            (_POD_FILES / "namespace").read_text(encoding="utf-8").strip(),
            authority=(_POD_FILES / "ca.crt").read_text(encoding="utf-8"),
            token_file=str(_POD_FILES / "token"),
        )
    path = Path(os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0] or Path.home() / ".kube" / "config")
    if not path.is_absolute():
        # A job's agent is in another directory.
        raise ConfigError(
            f"KUBECONFIG is {str(path)!r}", advice=f"give its absolute path: export KUBECONFIG={path.absolute()}"
        )
    if not path.exists():
        what = f"there is no Kubernetes cluster: this is no pod, and {path} does not exist"
        raise ConfigError(what, advice="set KUBECONFIG, or run scriptmode in the cluster: scriptmode serve manifests")
    try:
        return _parse_kubeconfig(yaml.safe_load(path.read_text(encoding="utf-8")), context, path.parent)
    except (OSError, yaml.YAMLError, LookupError, TypeError, ValueError, AttributeError) as error:
        what = repr(error) if isinstance(error, (LookupError, TypeError, AttributeError)) else str(error)
        raise ConfigError(f"{path} is no kubeconfig file that can be used: {what}", advice="correct it") from error


def _parse_kubeconfig(content: Mapping[str, Any], wanted: str, folder: Path) -> Access:
    def named(kind: str, name: str) -> Mapping[str, Any]:
        entries: dict[str, Mapping[str, Any]] = {entry["name"]: entry[kind] for entry in content[f"{kind}s"]}
        if name not in entries:
            raise ValueError(f"it has no {kind} {name!r}, only {', '.join(map(repr, entries)) or 'none'}")
        return entries[name]

    if not wanted and not (content or {}).get("current-context"):
        raise ValueError("it has no current-context: kubectl config use-context NAME")
    context = named("context", wanted or content["current-context"])
    cluster, user = named("cluster", context["cluster"]), named("user", context["user"])
    if not cluster["server"].startswith(("https://", "http://")):
        raise ValueError(f"its server is {cluster['server']!r}, which is no URL such as 'https://10.0.0.1:6443'")
    command = user.get("exec")
    return Access(
        cluster["server"].rstrip("/"),
        context.get("namespace", "default"),
        authority=_read(cluster, "certificate-authority", folder),
        certificate=(_read(user, "client-certificate", folder), _read(user, "client-key", folder)),
        token=user.get("token", ""),
        token_file=user.get("tokenFile", ""),
        command=(command["command"], *(command.get("args") or ())) if command else (),
        command_environment=tuple((entry["name"], entry["value"]) for entry in (command or {}).get("env") or ()),
        is_verified=not cluster.get("insecure-skip-tls-verify", False),
    )


def _read(entry: Mapping[str, Any], key: str, folder: Path) -> str:
    """Return the text that the kubeconfig has, or the file that it names; "" for none."""
    if content := entry.get(f"{key}-data"):
        return base64.b64decode(content).decode()
    return (folder / entry[key]).read_text(encoding="utf-8") if entry.get(key) else ""


def _tls_context(access: Access) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=access.authority or None)
    if all(access.certificate):
        # OpenSSL reads files only. The directory is of this process's user alone.
        with tempfile.TemporaryDirectory(prefix="scriptmode-kubernetes-") as folder:
            paths = Path(folder, "certificate"), Path(folder, "key")
            for path, text in zip(paths, access.certificate):
                path.write_text(text, encoding="utf-8")
            context.load_cert_chain(*paths)
    if not access.is_verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class Api:
    """Calls of the API in one namespace; a forked child needs an object of its own."""

    def __init__(self, access: Access, namespace: str = "") -> None:
        self.namespace = namespace or access.namespace
        self._access = access
        try:
            self._pool = urllib3.PoolManager(ssl_context=_tls_context(access), retries=False)
        except (OSError, ValueError) as error:
            what = f"the certificates for {access.server} cannot be used: {error}"
            raise ConfigError(what, advice="correct them in the kubeconfig file") from error

    def create(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object of a kind such as ``pods``; return it. One with an unknown field is refused from 1.25 on."""
        return self._call("POST", f"{self._path(kind)}?fieldValidation=Strict", body)

    def list(self, kind: str, **query: str) -> dict[str, Any]:
        """Return the list of the objects that ``labelSelector`` or ``fieldSelector`` select."""
        return self._call("GET", f"{self._path(kind)}?{urlencode(query)}")

    def delete(self, kind: str, name: str, **options: object) -> None:
        """Delete an object, if it exists."""
        try:
            self._call("DELETE", f"{self._path(kind)}/{name}", {"kind": "DeleteOptions", "apiVersion": "v1", **options})
        except ApiError as error:
            if error.code != 404:  # noqa: PLR2004 - not found
                raise

    def delete_all(self, kind: str, selector: str, **options: object) -> None:
        """Delete the objects that labels select."""
        path = f"{self._path(kind)}?{urlencode({'labelSelector': selector})}"
        self._call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})

    def watch(self, kind: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the changes of objects until the server ends the watch."""
        query = {"watch": "1", "timeoutSeconds": str(WATCH_SECONDS), **query}
        response = self._request("GET", f"{self._path(kind)}?{urlencode(query)}", None, WATCH_SECONDS + _ANSWER_SECONDS)
        received = b""
        try:
            for chunk in response.stream(decode_content=True):
                *lines, received = (received + chunk).split(b"\n")
                yield from map(json.loads, lines)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise ApiError(f"the watch of {kind} ended: {error}", UNREACHABLE) from error
        finally:
            response.close()

    def version(self) -> str:
        """Return the version of the API server."""
        return str(self._call("GET", "/version")["gitVersion"])

    def may(self, verb: str, kind: str) -> bool:
        """Return whether this user may do something with objects of a kind in the namespace."""
        asked = {"namespace": self.namespace, "verb": verb, "resource": kind}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return bool(self._call("POST", path, {**body, "spec": {"resourceAttributes": asked}})["status"]["allowed"])

    def _path(self, kind: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{kind}"

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        response = self._request(method, path, body, _ANSWER_SECONDS)
        try:
            answer: dict[str, Any] = json.loads(response.data)
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise ApiError(f"the API server answers {method} {path} with no JSON: {error}", UNREACHABLE) from error
        return answer

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "scriptmode"}
        if token := self._access.find_token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            response = self._pool.request(
                method,
                self._access.server + path,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=seconds),
                preload_content=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            what = f"the API server {self._access.server} does not answer: {error}"
            raise ApiError(what, UNREACHABLE, advice="see: kubectl cluster-info") from error
        if response.status >= 400:  # noqa: PLR2004 - errors
            raise _error(method, path, response)
        return response


def _error(method: str, path: str, response: Any) -> ApiError:
    text = response.data.decode("utf-8", "replace")
    try:
        text = str(json.loads(text)["message"])
    except (ValueError, LookupError, TypeError):
        text = text[:_LONGEST_TEXT]
    advice = ""
    if response.status == 401:  # noqa: PLR2004 - without an identity
        advice = "see that kubectl get pods works with the same kubeconfig"
    elif "exceeded quota" in text:
        advice = "ask for fewer hosts or Kubernetes(resources=...) with less, or raise the ResourceQuota"
    elif "violates PodSecurity" in text:
        advice = "use Kubernetes(restricted=True)"
    elif "namespaces" in text and response.status == 404:  # noqa: PLR2004 - not found
        advice = "create it, or correct Kubernetes(namespace=...)"
    elif re.search("is forbidden: User .* cannot ", text):
        advice = "give the user the rights of: scriptmode serve manifests"
    elif "/pods" in path and method == "POST":
        advice = "correct the arguments of Kubernetes(...): patch, resources and others; scriptmode plan shows the pods"
    what = f"the API server refuses {method} {path.partition('?')[0]}: {text} ({response.status})"
    return ApiError(what, response.status, advice=advice)
