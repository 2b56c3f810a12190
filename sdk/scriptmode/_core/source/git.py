"""Check out source code from a Git repository with the ``git`` program."""

from __future__ import annotations

import base64
import os
import re
import shutil
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from scriptmode._core.text.messages import did_you_mean_path
from scriptmode.errors import SourceError
from scriptmode_runtime._files import beneath, directory_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scriptmode._core.spec.git_source import GitSource
    from scriptmode._core.spec.training_job import Script

    #: The arguments of several calls of git.
    Commands = Sequence[tuple[str, ...]]

#: An empty --template skips the user's templates, which may contain hooks.
_CLONE = ("clone", "--quiet", "--template=", "--no-recurse-submodules")
_CHECKOUT = ("-C", "tree", "checkout", "--quiet", "--detach")
#: Environment variables that bind git to another repository (git rev-parse --local-env-vars); git hooks set them.
_REPOSITORY_VARIABLES = frozenset(
    {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_PREFIX",
     "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"}
)  # fmt: skip
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


@contextmanager
def checkout(source: GitSource, *, timeout: float = 600.0) -> Iterator[Path]:
    """Yield a temporary directory with the tree, without submodules; it is removed when the context ends.

    ``commit`` takes precedence over ``branch``. History is omitted if the server supports that. Without credentials in
    ``source``, git uses its own (a credential helper, SSH keys), but never prompts for any. Raises `SourceError` with
    git's own message, also if all of it takes longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="scriptmode-git-") as directory:
        deadline, tree = time.monotonic() + timeout, Path(directory, "tree")
        for commands in _attempts(source):
            try:
                code, output = _run(source, commands, directory, deadline)
            except TimeoutError as error:
                what = f"git did not fetch {source.repo!r} within {timeout:g} s and was stopped"
                step = "try again, or clone it yourself and pass source_dir"
                raise SourceError(what, step, argument="git_config") from error
            if code == 0:
                break
            # Each kind of server refuses single commits in its own words. Rejected credentials are not sent again.
            if "does not support shallow" not in output and (source.commit is None or _REFUSED.search(output)):
                raise _error(source, output)
            directory_tree.remove_tree(tree)
        else:
            raise _error(source, output)
        yield tree


def script_within(folder: Path, script: Script) -> Script:
    """Return the script with paths in the checked out ``folder``; raise `SourceError` for one outside."""

    def inside(argument: str, value: str) -> str:
        path = folder / value
        try:
            with beneath.Directory(folder) as directory:
                directory.stat(value)
        except beneath.EscapeError as error:
            raise SourceError(
                f"{argument} {value!r} is outside the Git repository", "give a path within it", argument=argument
            ) from error
        except OSError as error:
            raise SourceError(
                f"{argument} {value!r} is not in the Git repository", did_you_mean_path(path), argument=argument
            ) from error
        return str(path)

    dependencies = tuple(inside("dependency", dependency) for dependency in script.dependencies)
    if script.source_dir is None:
        entry_point = inside("entry_point", script.entry_point)
        return replace(script, entry_point=entry_point, dependencies=dependencies, git=None)
    source_dir = inside("source_dir", script.source_dir)
    inside("entry_point", f"{script.source_dir}/{script.entry_point}")
    return replace(script, source_dir=source_dir, dependencies=dependencies, git=None)


def _attempts(source: GitSource) -> Iterator[Commands]:
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


def _run(source: GitSource, commands: Commands, directory: str, deadline: float) -> tuple[int, str]:
    """Run git until a call fails; return its exit code and output; raise ``TimeoutError`` at the deadline."""
    from scriptmode._core.machine.programs import run_program

    program = shutil.which("git")
    if program is None:
        what = f"git_config needs the git program to fetch {source.repo!r}, but PATH does not contain it"
        step = "install it (apt install git, dnf install git, brew install git, https://git-scm.com)"
        raise SourceError(what, step, argument="git_config")
    environment = {name: text for name, text in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    environment.update(GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL="https:http:ssh:file", LC_ALL="C")
    if source.login is not None:
        environment.update(_login_variables(source, environment))
    code, output = 0, ""
    for arguments in commands:
        argv = (program, "-c", "submodule.recurse=false", *arguments)
        done = run_program(argv, deadline - time.monotonic(), cwd=directory, env=environment)
        code, output = done.code, done.output + done.errors
        if code:
            break
    return code, output


def _login_variables(source: GitSource, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials as git settings in variables: other users can read arguments, but not these."""
    url = urlsplit(source.repo)
    # Git would send the header to the target of a redirect too. Only the given credentials are used.
    settings = {
        f"http.{url.scheme}://{url.netloc}/.extraHeader": f"Authorization: Basic {_encoded(source)}",
        "http.followRedirects": "false",
        "credential.helper": "",
    }
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdigit() else 0
    added = {"GIT_ASKPASS": "", "GIT_CONFIG_COUNT": str(first + len(settings))}
    for position, (key, value) in enumerate(settings.items(), first):
        added[f"GIT_CONFIG_KEY_{position}"], added[f"GIT_CONFIG_VALUE_{position}"] = key, value
    return added


def _encoded(source: GitSource) -> str:
    return base64.b64encode(":".join(source.login or ()).encode()).decode()


def _error(source: GitSource, output: str) -> SourceError:
    """Return the error of a call that failed, without secrets."""
    for secret in (source.token, source.password, source.login and _encoded(source)):
        if secret:
            output = output.replace(secret, "***").replace(quote(secret, safe=""), "***")
    at = f" at commit {source.commit!r}" if source.commit else f" at {source.branch!r}" if source.branch else ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    reason = " | ".join(lines[-5:]) or "git printed no reason"
    message = f"git could not fetch {source.repo!r}{at}: {reason}"
    return SourceError(message, _advice(source, output), argument="git_config")


def _advice(source: GitSource, output: str) -> str:
    if _REFUSED.search(output):
        if source.login is None:
            return "add a token, or username and password, to git_config, or store them with git (git help credentials)"
        if source.token is not None:
            return "check that the token may read it; hosts such as GitLab need the token as password, with a username"
        return "check username and password; many hosts need a token as the password"
    matching = (advice for pattern, advice in _ADVICE.items() if re.search(pattern, output))
    return next(matching, f"check whether 'git ls-remote {source.repo}' works in a terminal")
