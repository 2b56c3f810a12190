"""Check out source code from a Git repository with the ``git`` program."""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from scriptmode.clock import SYSTEM, Clock
from scriptmode.errors import SourceError
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.spec.git_source import GitSource


#: An empty --template skips the user's templates, which may contain hooks.
_CLONE = ("clone", "--quiet", "--template=", "--no-recurse-submodules")
_CHECKOUT = ("-C", "tree", "checkout", "--quiet", "--detach")
#: Environment variables that bind git to another repository (git rev-parse --local-env-vars); git hooks set them.
_REPOSITORY_VARIABLES = frozenset(
    {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_PREFIX",
     "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"}
)  # fmt: skip


class _HistoryNeededError(SourceError):
    """Git failed without history, and may succeed with history."""


@contextmanager
def checkout(source: GitSource, *, timeout: float = 600.0, clock: Clock = SYSTEM) -> Iterator[Path]:
    """Yield a temporary directory with the tree, without submodules; it is removed when the context ends.

    ``commit`` takes precedence over ``branch``. History is omitted if the server supports that. Without credentials in
    ``source``, git uses its own (a credential helper, SSH keys), but never prompts for any. Raises `SourceError` with
    git's own message, also if all of it takes longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="scriptmode-git-") as directory:
        git = _Git(source, directory, timeout, clock)
        tree = Path(directory, "tree")
        attempts = list(_attempts(source))
        for commands in attempts[:-1]:
            with suppress(_HistoryNeededError):
                git.run(*commands)
                break
            beneath.remove_tree(tree)
        else:
            git.run(*attempts[-1])
        yield tree


def _attempts(source: GitSource) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield the commands that create ``tree``: first without history where that is possible, then with history."""
    if source.commit is None:
        branch = (f"--branch={source.branch}",) if source.branch else ()
        for depth in (("--depth=1",), ()):
            yield ((*_CLONE, "--single-branch", *branch, *depth, "--", source.repo, "tree"),)
        return
    if re.fullmatch("[0-9a-f]{40}", source.commit):
        fetch = ("-C", "tree", "fetch", "--quiet", "--no-tags", "--depth=1", "--", source.repo, source.commit)
        yield ("init", "--quiet", "--template=", "tree"), fetch, (*_CHECKOUT, "FETCH_HEAD", "--")
    yield (*_CLONE, "--no-checkout", "--", source.repo, "tree"), (*_CHECKOUT, source.commit, "--")


class _Git:
    """The ``git`` program in a directory, with one deadline for all its calls."""

    def __init__(self, source: GitSource, directory: str, timeout: float, clock: Clock) -> None:
        self._program = shutil.which("git") or ""
        if not self._program:
            raise SourceError(
                f"git_config needs the git program to fetch {source.repo!r}, but PATH does not contain it",
                argument="git_config",
                advice="install it (apt install git, dnf install git, brew install git, https://git-scm.com)",
            )
        self._source = source
        self._directory = directory
        self._timeout = timeout
        self._clock = clock
        self._deadline = clock.now() + timeout
        self._environment = {name: text for name, text in os.environ.items() if name not in _REPOSITORY_VARIABLES}
        self._environment.update(GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL="https:http:ssh:file", LC_ALL="C")
        if source.login is not None:
            self._check_version()
            self._environment.update(_login_variables(source, self._environment))

    def run(self, *commands: tuple[str, ...]) -> str:
        """Run git's commands; return the last one's output. Raise `SourceError` if one fails or at the deadline."""
        from scriptmode.programs import run_program

        output = ""
        for arguments in commands:
            argv = (self._program, "-c", "submodule.recurse=false", *arguments)
            try:
                done = run_program(argv, self._deadline - self._clock.now(), cwd=self._directory, env=self._environment)
            except TimeoutError as error:
                raise SourceError(
                    f"git did not fetch {self._source.repo!r} within {self._timeout:g} s and was stopped",
                    argument="git_config",
                    advice="try again, or clone it yourself and pass source_dir",
                ) from error
            output = done.output + done.errors
            if done.code:
                is_shallow = "--depth=1" in arguments
                kind = _HistoryNeededError if is_shallow and _needs_history(self._source, output) else SourceError
                raise kind(_failure_message(self._source, output))
        return output

    def _check_version(self) -> None:
        version = self.run(("version",)).strip()
        numbers = re.search(r"(\d+)\.(\d+)", version)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < (2, 31):
            raise SourceError(
                f"credentials in git_config need git 2.31 or newer, but {self._program} is {version!r}",
                argument="git_config",
                advice="upgrade git, or leave them out and store them with git (git help credentials)",
            )


def _login_variables(source: GitSource, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials as git settings in variables: other users can read arguments, but not these."""
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
    return added


def _encoded(source: GitSource) -> str:
    return base64.b64encode(":".join(source.login or ()).encode()).decode()


def _without_secrets(text: str, source: GitSource) -> str:
    for secret in (source.token, source.password, source.login and _encoded(source)):
        if secret:
            text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
    return text


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


def _needs_history(source: GitSource, output: str) -> bool:
    """Return whether git may have failed because the server does not support fetching without history."""
    if source.commit is None:
        # The "dumb" HTTP protocol.
        return "does not support shallow" in output
    # Each kind of server refuses single commits in its own words. Rejected credentials are not sent again.
    return not _REFUSED.search(output)


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
