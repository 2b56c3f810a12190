"""Check out source code from a Git repository with the ``git`` program."""

from __future__ import annotations

import base64
import os
import re
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from scriptmode.clock import SYSTEM, Clock
from scriptmode.errors import SourceError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

    from scriptmode.spec.git_source import GitSource


@contextmanager
def checkout(source: GitSource, *, timeout: float = 600.0, clock: Clock = SYSTEM) -> Iterator[Path]:
    """Yield a temporary directory with the tree, without submodules; it is removed when the context ends.

    ``commit`` takes precedence over ``branch``. History is omitted if the server supports that. Without credentials in
    ``source``, git uses its own (a credential helper, SSH keys), but never prompts for any. Raises `SourceError` with
    git's own message, also if all of it takes longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="scriptmode-git-") as directory:
        git = _Git(source, timeout, clock)
        fetch = _clone_branch if source.commit is None else _checkout_commit
        try:
            tree = fetch(git, source, Path(directory))
        except _GitError as error:
            raise SourceError(str(error)) from error
        yield tree


def _clone_branch(git: _Git, source: GitSource, directory: Path) -> Path:
    tree = directory / "tree"
    branch = (f"--branch={source.branch}",) if source.branch else ()
    arguments = ("--single-branch", *branch, "--", source.repo, str(tree))
    with suppress(_NoShallowError):
        git.run(*_CLONE, "--depth=1", *arguments)
        return tree
    git.run(*_CLONE, *arguments)
    return tree


def _checkout_commit(git: _Git, source: GitSource, directory: Path) -> Path:
    """Fetch one commit if its hash is complete and the server allows it, else clone the whole repository."""
    if re.fullmatch("[0-9a-f]{40}", str(source.commit)):
        tree = directory / "tree"
        with suppress(_GitError):
            git.run("init", "--quiet", "--template=", str(tree))
            git.run(
                "-C", str(tree), "fetch", "--quiet", "--no-tags", "--depth=1", "--", source.repo, str(source.commit)
            )
            git.run("-C", str(tree), "checkout", "--quiet", "--detach", "FETCH_HEAD", "--")
            return tree
    tree = directory / "whole"
    git.run(*_CLONE, "--no-checkout", "--", source.repo, str(tree))
    git.run("-C", str(tree), "checkout", "--quiet", "--detach", str(source.commit), "--")
    return tree


#: An empty --template skips the user's templates, which may contain hooks.
_CLONE = ("clone", "--quiet", "--template=", "--no-recurse-submodules")
#: Environment variables that bind git to another repository (git rev-parse --local-env-vars); git hooks set them.
_REPOSITORY_VARIABLES = frozenset(
    {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_PREFIX",
     "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"}
)  # fmt: skip
#: Seconds between SIGTERM and SIGKILL.
_STOP_GRACE = 5.0


class _GitError(SourceError):
    """Git exited with an error."""


class _NoShallowError(_GitError):
    """The server does not support shallow clones (the "dumb" HTTP protocol)."""


class _Git:
    """The ``git`` program for one source, with one deadline for all its calls."""

    def __init__(self, source: GitSource, timeout: float, clock: Clock) -> None:
        program = shutil.which("git")
        if program is None:
            raise SourceError(
                f"git_config needs the git program to fetch {source.repo!r}, but PATH does not contain it; "
                "install it (apt install git, dnf install git, brew install git, https://git-scm.com)"
            )
        self._program = program
        self._source = source
        self._timeout = timeout
        self._clock = clock
        self._deadline = clock.now() + timeout
        self._environment = _git_environment(os.environ)
        if source.login is not None:
            self._check_version()
            self._environment = _with_login(self._environment, source)

    def run(self, *arguments: str) -> str:
        """Run git, and return its output; raise `SourceError` if it fails or exceeds the deadline."""
        import subprocess

        command = (self._program, "-c", "submodule.recurse=false", *arguments)
        # A new session has no terminal on which ssh could prompt, and all its processes can be stopped together.
        # The output goes to a file: background processes of git, such as ssh, would keep a pipe open.
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
            try:
                process.wait(timeout=max(self._deadline - self._clock.now(), 0.0))
            except subprocess.TimeoutExpired as error:
                raise SourceError(
                    f"git did not fetch {self._source.repo!r} within {self._timeout:g} s and was stopped; "
                    "try again, or clone it yourself and pass source_dir"
                ) from error
            finally:
                _stop(process)
            log.seek(0)
            output = log.read().decode(errors="replace")
        if process.returncode:
            kind = _NoShallowError if "does not support shallow" in output else _GitError
            raise kind(_failure_message(self._source, output))
        return output

    def _check_version(self) -> None:
        version = self.run("version").strip()
        numbers = re.search(r"(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < (2, 31):
            raise SourceError(
                f"credentials in git_config need git 2.31 or newer, but {self._program} is {version!r}; "
                "upgrade git, or leave them out and store them with git (git help credentials)"
            )


def _git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    environment = {name: value for name, value in environ.items() if name not in _REPOSITORY_VARIABLES}
    environment.update(GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL="https:http:ssh:file", LC_ALL="C")
    return environment


def _with_login(environment: Mapping[str, str], source: GitSource) -> dict[str, str]:
    """Return the environment with the credentials as git settings: other users can read arguments, but not these."""
    url = urlsplit(source.repo)
    settings = (
        (f"http.{url.scheme}://{url.netloc}/.extraHeader", f"Authorization: Basic {_encoded(source)}"),
        # Git would send the header to the target of a redirect too.
        ("http.followRedirects", "false"),
        # Only the given credentials are used.
        ("credential.helper", ""),
    )
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdigit() else 0
    added = {"GIT_ASKPASS": "", "GIT_CONFIG_COUNT": str(first + len(settings))}
    for position, (key, value) in enumerate(settings, first):
        added[f"GIT_CONFIG_KEY_{position}"], added[f"GIT_CONFIG_VALUE_{position}"] = key, value
    return {**environment, **added}


def _encoded(source: GitSource) -> str:
    return base64.b64encode(":".join(source.login or ()).encode()).decode()


def _without_secrets(text: str, source: GitSource) -> str:
    for secret in (source.token, source.password, source.login and _encoded(source)):
        if secret:
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
    return text


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop git and its children: SIGTERM, then SIGKILL after the grace period, then reap."""
    import signal
    import subprocess

    if process.returncode is not None:
        return
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(OSError, subprocess.TimeoutExpired):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(_STOP_GRACE)
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


_REFUSED = re.compile(r"Authentication failed|could not read (Username|Password)|returned error: 40[13]")
#: Patterns of git's error messages, and the next step for each.
_ADVICE = {
    r"Remote branch .* not found": "git_config['branch'] must be a branch or a tag of the repository; correct it",
    r"not a tree|did not match any|unable to read tree|unknown revision|invalid reference": (
        "git_config['commit'] must be a commit of the repository; push it, or correct it"
    ),
    r"returned error: 30\d|redirect": (
        "use the URL that it redirects to, often the one with .git at the end: credentials are not sent to a redirect"
    ),
    r"Permission denied \(|Host key verification failed": (
        "SSH must connect without a prompt: add the host's key to known_hosts, and your key to ssh-agent"
    ),
}


def _failure_message(source: GitSource, output: str) -> str:
    at = f" at commit {source.commit!r}" if source.commit else f" at {source.branch!r}" if source.branch else ""
    lines = [line.strip() for line in _without_secrets(output, source).splitlines() if line.strip()]
    reason = " | ".join(lines[-5:]) or "git printed no reason"
    return f"git could not fetch {source.repo!r}{at}: {reason}; {_advice(source, output)}"


def _advice(source: GitSource, output: str) -> str:
    if _REFUSED.search(output):
        if source.login is None:
            return "add a token, or username and password, to git_config, or store them with git (git help credentials)"
        if source.token is not None:
            return "check that the token may read it; hosts such as GitLab need the token as password, with a username"
        return "check username and password; many hosts need a token as the password"
    for pattern, advice in _ADVICE.items():
        if re.search(pattern, output):
            return advice
    return f"check whether 'git ls-remote {source.repo}' works in a terminal"
