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
    """Fetch the tree into a folder that is there until the context ends; submodules are not followed.

    With ``commit`` the branch is not looked at. History is left out where the server allows it. Without credentials in
    ``source``, git's own (a credential helper, SSH keys) are used; git never prompts. Raises `SourceError`, with
    git's own words, also when it takes longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="scriptmode-git-") as folder:
        git = _Git(source, timeout, clock)
        fetch = _at_tip if source.commit is None else _at_commit
        try:
            tree = fetch(git, source, Path(folder))
        except _GitError as error:
            raise SourceError(str(error)) from error
        yield tree


def _at_tip(git: _Git, source: GitSource, folder: Path) -> Path:
    tree = folder / "tree"
    branch = (f"--branch={source.branch}",) if source.branch else ()
    arguments = ("--single-branch", *branch, "--", source.repo, str(tree))
    with suppress(_NoShallowError):
        git.run(*_CLONE, "--depth=1", *arguments)
        return tree
    git.run(*_CLONE, *arguments)
    return tree


def _at_commit(git: _Git, source: GitSource, folder: Path) -> Path:
    """Fetch one commit, which needs its whole name and a server that gives it; else everything."""
    if re.fullmatch("[0-9a-f]{40}", str(source.commit)):
        tree = folder / "tree"
        with suppress(_GitError):
            git.run("init", "--quiet", "--template=", str(tree))
            git.run(
                "-C", str(tree), "fetch", "--quiet", "--no-tags", "--depth=1", "--", source.repo, str(source.commit)
            )
            git.run("-C", str(tree), "checkout", "--quiet", "--detach", "FETCH_HEAD", "--")
            return tree
    tree = folder / "whole"
    git.run(*_CLONE, "--no-checkout", "--", source.repo, str(tree))
    git.run("-C", str(tree), "checkout", "--quiet", "--detach", str(source.commit), "--")
    return tree


#: Without the user's templates, which may hold hooks.
_CLONE = ("clone", "--quiet", "--template=", "--no-recurse-submodules")
#: Variables that tie git to another repository (git rev-parse --local-env-vars), as they are set inside a git hook.
_OF_ANOTHER_REPOSITORY = frozenset(
    {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_PREFIX",
     "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"}
)  # fmt: skip
_STOP_GRACE = 5.0


class _GitError(SourceError):
    """Git ended with an error."""


class _NoShallowError(_GitError):
    """The server gives out plain files, and those only with all history."""


class _Git:
    """The ``git`` program for one source, with one deadline for all its calls."""

    def __init__(self, source: GitSource, timeout: float, clock: Clock) -> None:
        program = shutil.which("git")
        if program is None:
            raise SourceError(
                f"git_config needs the git program to fetch {source.repo!r}, and there is none in PATH; "
                "install it (apt install git, dnf install git, brew install git, https://git-scm.com)"
            )
        self._program = program
        self._source = source
        self._timeout = timeout
        self._clock = clock
        self._deadline = clock.now() + timeout
        self._environment = _plain_environment(os.environ)
        if source.login is not None:
            self._check_version()
            self._environment = _with_login(self._environment, source)

    def run(self, *arguments: str) -> str:
        """Run git to its end and give what it said."""
        import subprocess

        command = (self._program, "-c", "submodule.recurse=false", *arguments)
        # A session of its own has no terminal, on which ssh would ask; and it is stopped as a whole.
        # What it says goes into a file: a pipe would be held open by what git leaves in the background, as ssh may.
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
            try:
                process.wait(timeout=max(self._deadline - self._clock.now(), 0.0))
            except subprocess.TimeoutExpired as error:
                raise SourceError(
                    f"git did not fetch {self._source.repo!r} within {self._timeout:g} s and was stopped; "
                    "try again, or clone it yourself and give source_dir"
                ) from error
            finally:
                _stop(process)
            said.seek(0)
            output = said.read().decode(errors="replace")
        if process.returncode:
            kind = _NoShallowError if "does not support shallow" in output else _GitError
            raise kind(_complaint(self._source, output))
        return output

    def _check_version(self) -> None:
        said = self.run("version").strip()
        numbers = re.search(r"(\d+)\.(\d+)", said)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < (2, 31):
            raise SourceError(
                f"credentials in git_config need git 2.31, and {self._program} is {said!r}; "
                "upgrade git, or leave them out and let git keep them (git help credentials)"
            )


def _plain_environment(environ: Mapping[str, str]) -> dict[str, str]:
    environment = {name: value for name, value in environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    environment.update(GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL="https:http:ssh:file", LC_ALL="C")
    return environment


def _with_login(environment: Mapping[str, str], source: GitSource) -> dict[str, str]:
    """Add the credentials as git's settings: arguments and files are open to others, the environment is not."""
    url = urlsplit(source.repo)
    settings = (
        (f"http.{url.scheme}://{url.netloc}/.extraHeader", f"Authorization: Basic {_encoded(source)}"),
        # The header would go with a redirect, to whatever host.
        ("http.followRedirects", "false"),
        # Others than those given are not tried.
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
    """Stop git and the processes it started: SIGTERM, a grace period, SIGKILL, reap."""
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
#: What git says, and what to do about it.
_ADVICE = {
    r"Remote branch .* not found": "git_config['branch'] must be a branch or a tag of the repository; correct it",
    r"not a tree|did not match any|unable to read tree|unknown revision|invalid reference": (
        "git_config['commit'] must be a commit of the repository; push it, or correct it"
    ),
    r"returned error: 30\d|redirect": (
        "give the URL that it leads to, often one with .git at its end: credentials do not follow a redirect"
    ),
    r"Permission denied \(|Host key verification failed": (
        "SSH must get there without a question: the host's key in known_hosts, yours in ssh-agent"
    ),
}


def _complaint(source: GitSource, output: str) -> str:
    at = f" at commit {source.commit!r}" if source.commit else f" at {source.branch!r}" if source.branch else ""
    lines = [line.strip() for line in _without_secrets(output, source).splitlines() if line.strip()]
    said = " | ".join(lines[-5:]) or "it did not say why"
    return f"git could not fetch {source.repo!r}{at}: {said}; {_advice(source, output)}"


def _advice(source: GitSource, output: str) -> str:
    if _REFUSED.search(output):
        if source.login is None:
            return "give git_config a token, or username and password, or let git keep them (git help credentials)"
        if source.token is not None:
            return "check that the token may read it; hosts such as GitLab want it as the password beside a username"
        return "check username and password; many hosts want a token as the password"
    for pattern, advice in _ADVICE.items():
        if re.search(pattern, output):
            return advice
    return f"see whether 'git ls-remote {source.repo}' works in a terminal"
