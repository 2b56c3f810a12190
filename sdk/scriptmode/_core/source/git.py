"""Check out source code from a Git repository with the ``git`` program."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scriptmode.errors import SourceError
from scriptmode_runtime._files import beneath

if TYPE_CHECKING:
    from scriptmode._core.spec.git_source import GitSource
    from scriptmode._core.spec.training_job import Script

#: An empty --template skips the user's templates, which may contain hooks. Most servers leave out what is not checked
#: out, which is most of the history.
_CLONE = ("clone", "--quiet", "--template=", "--no-recurse-submodules", "--filter=blob:none", "--no-checkout")
_CHECKOUT = ("-C", "tree", "checkout", "--quiet", "--detach", "--no-recurse-submodules")
#: Git asks this helper alone for a login, and for the repository's host alone: its files may name others. It has it of
#: variables: other users can read arguments, but not these. Git would ask for the target of a redirect, too.
_HELPER = """!f() { printf 'username=%s\\npassword=%s\\n' "$SCRIPTMODE_GIT_USERNAME" "$SCRIPTMODE_GIT_PASSWORD"; }; f"""
#: Environment variables that bind git to another repository (git rev-parse --local-env-vars); git hooks set them.
_REPOSITORY_VARIABLES = frozenset(
    {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_PREFIX",
     "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"}
)  # fmt: skip


@contextmanager
def checkout(source: GitSource, *, timeout: float = 600.0) -> Iterator[Path]:
    """Yield a temporary directory with the tree, without submodules; it is removed when the context ends.

    ``commit`` takes precedence over ``branch``. Without credentials in ``source``, git uses its own (a credential
    helper, SSH keys), but never prompts for any. Raises `SourceError` with git's own message, also if one of
    its two calls takes longer than ``timeout`` seconds.
    """
    from scriptmode._core.machine.programs import run_program

    url = urlsplit(source.repo)
    helper = f"credential.{url.scheme}://{url.netloc}.helper={_HELPER}"
    login = ("-c", "credential.helper=", "-c", helper, "-c", "http.followRedirects=false") if source.login else ()
    environment = {name: text for name, text in os.environ.items() if name not in _REPOSITORY_VARIABLES}
    environment.update(GIT_TERMINAL_PROMPT="0", GIT_ALLOW_PROTOCOL="https:http:ssh:file", LC_ALL="C")
    environment["SCRIPTMODE_GIT_USERNAME"], environment["SCRIPTMODE_GIT_PASSWORD"] = source.login or ("", "")
    branch = (f"--branch={source.branch}",) if source.branch and not source.commit else ()
    with tempfile.TemporaryDirectory(prefix="scriptmode-git-") as directory:
        for arguments in (*_CLONE, *branch, "--", source.repo, "tree"), (*_CHECKOUT, source.commit or "HEAD", "--"):
            try:
                done = run_program(("git", *login, *arguments), timeout, cwd=directory, env=environment)
            except OSError as error:  # it is not installed, or was stopped
                raise _error(source, str(error)) from error
            if done.code:
                raise _error(source, done.output + done.errors)
        yield Path(directory, "tree")


def script_within(folder: Path, script: Script) -> Script:
    """Return the script with paths in the checked out ``folder``; raise `SourceError` for one outside."""
    names = (*script.dependencies, script.source_dir or script.entry_point)
    try:
        with beneath.Directory(folder) as directory:
            for name in names:
                directory.stat(name)
    except OSError as error:
        what = f"{name!r} is not in the Git repository"
        raise SourceError(what, "give a path within it", argument="git_config") from error
    *dependencies, place = (str(folder / name) for name in names)
    entry_point, source_dir = (place, None) if script.source_dir is None else (script.entry_point, place)
    return replace(script, entry_point=entry_point, source_dir=source_dir, dependencies=tuple(dependencies), git=None)


def _error(source: GitSource, output: str) -> SourceError:
    """Return the error of a call that failed, without secrets."""
    username, password = source.login or ("", "")
    if secret := password or username:
        output = output.replace(secret, "***")
    # Between // and @ of a URL may be one, too.
    output, repo = (re.sub(r"(?<=://)\S*@", "***@", text) for text in (output, source.repo))
    reason = " | ".join(filter(None, map(str.strip, output.splitlines()[-5:])))
    at = f" at {source.commit or source.branch!r}" if source.commit or source.branch else ""
    what = f"git could not fetch {repo!r}{at}: {reason or 'it gave no reason'}"
    step = "correct git_config, or the settings of git: git ls-remote in a terminal must reach the repository"
    return SourceError(what, step, argument="git_config")
