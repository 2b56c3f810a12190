"""This machine's settings for pip, apt, proxies and certificates, for the build stages that install packages."""

from __future__ import annotations

import configparser
import os
import re
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from scriptmode._core.machine.programs import run_program

#: pip's options for the location of packages and the connection to it (pip documentation, "Configuration").
_PIP_OPTIONS = ("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "proxy", "timeout", "retries")
#: apt's options of the same kind (apt.conf(5), apt-transport-https(1)).
_APT_OPTIONS = ("Acquire::http::", "Acquire::https::", "Acquire::Check-", "Acquire::Retries", "Acquire::ForceIPv4")
_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
_APT_SECONDS = 30.0
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
#: A URL with a user's name or password in it. (RFC 3986, "userinfo")
_USER_INFORMATION = re.compile(rb"://[^/\s\"]*@")


def index_settings(environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files that ``settings/use.sh`` of the recipe reads. Settings that are not set are left out."""
    texts = {"pip.conf": _pip(environ), **_apt()}
    written = {name: text.encode() for name, text in texts.items() if text}
    candidates = (environ.get("SSL_CERT_FILE"), ssl.get_default_verify_paths().cafile)
    authorities = next((Path(path) for path in candidates if path and os.path.isfile(path)), _AUTHORITIES)  # noqa: PTH113
    with suppress(OSError):
        written["ca-certificates.crt"] = authorities.read_bytes()
        if "apt.conf" in written:
            written["apt.conf"] += b'Acquire::https::CaInfo "/settings/ca-certificates.crt";\n'
    return written


def have_credentials(files: Mapping[str, bytes]) -> bool:
    """Return whether files of `index_settings` contain credentials."""
    return bool(files.get("auth.conf")) or any(_USER_INFORMATION.search(content) for content in files.values())


def proxy_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy variables. Docker builders accept them as arguments that are not stored in the image."""
    return {name: value for name, value in environ.items() if value and name.lower() in _PROXIES}


def _pip(environ: Mapping[str, str]) -> str:
    """Return a pip configuration with this machine's indexes, without directories, which a build cannot read."""
    home, parsed = Path(environ.get("HOME") or "/"), configparser.RawConfigParser()
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    # pip's files, in the order of rising precedence.
    for path in (
        "/etc/xdg/pip/pip.conf", "/etc/pip.conf", home / ".pip" / "pip.conf", user / "pip" / "pip.conf",
        Path(sys.prefix) / "pip.conf", environ.get("PIP_CONFIG_FILE", ""),
    ):  # fmt: skip
        with suppress(configparser.Error, UnicodeDecodeError):
            parsed.read(path)
    sections = [parsed[name] for name in ("global", "install") if parsed.has_section(name)]
    options = {name: value for section in sections for name, value in section.items()}
    lines = []
    for name in _PIP_OPTIONS:
        value = environ.get(f"PIP_{name.upper().replace('-', '_')}", options.get(name, ""))
        if words := [word for word in value.split() if not word.startswith(("/", "~", ".", "file:"))]:
            lines.append(f"{name} = {' '.join(words)}")
    return "\n".join(("[global]", *lines, "")) if lines else ""


def _apt() -> dict[str, str]:
    """Return apt's configuration, sources and credentials; nothing if this machine is not a Debian or Ubuntu."""
    listed = _output("apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(CODENAME)",
                     "Created-By: Packages")  # fmt: skip
    # Third-party sources need keys that the base image does not have.
    own = [line.split("|") for line in listed.splitlines() if "|Debian|" in line or "|Ubuntu|" in line]
    codename = next((target[4] for target in own if "-" not in target[4]), "")
    if not codename:
        return {}
    lines = ['Dir::Etc::SourceList "/settings/sources.list";', 'Dir::Etc::SourceParts "/dev/null";']
    options = _output("apt-config", "dump").splitlines()
    lines += [line for line in options if line.startswith(_APT_OPTIONS) and not line.endswith('"";')]
    credentials = ""
    for path in (Path("/etc/apt/auth.conf"), *sorted(Path("/etc/apt/auth.conf.d").glob("*.conf"))):
        with suppress(OSError):
            credentials += path.read_text().strip() + "\n"
    if credentials:
        lines.append('Dir::Etc::Netrc "/settings/auth.conf";')
    return {
        "apt.conf": "\n".join((*lines, "")),
        "codename": codename + "\n",
        "sources.list": "".join(f"deb {uri} {release} {component}\n" for uri, release, component, *_ in own),
        "auth.conf": credentials,
    }


def _output(*argv: str) -> str:
    try:
        done = run_program(argv, _APT_SECONDS)
    except OSError:  # TimeoutError is one
        return ""
    return "" if done.code else done.output
