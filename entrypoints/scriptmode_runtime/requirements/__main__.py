"""Install a source's requirements for one host: ``requirements OVERLAY CODE CACHE MODE ARGUMENTS_OF_PIP...``.

``CACHE`` is the directory of cached environments, or "" for none; ``MODE`` is ``1``, or ``refresh`` to replace what
is cached.
"""

from __future__ import annotations

import os
import sys
import time

from scriptmode_runtime import contract
from scriptmode_runtime.processes import system
from scriptmode_runtime.requirements import LINK, content, overlay
from scriptmode_runtime.requirements.environment_cache import (
    WAIT_SECONDS,
    CachedEnvironment,
    EnvironmentCache,
    InstallationError,
)

#: How long an environment is used whose requirements do not name one version each.
_UNPINNED_SECONDS = 24 * 3600.0
_UNITS = (("day", 24 * 3600), ("hour", 3600), ("minute", 60), ("second", 1))
_ALONE = "installing the requirements for this host alone"


def main(folder: str, code: str, cache: str, mode: str, *arguments: str) -> int:
    """Create the overlay ``folder`` with the requirements; return pip's exit code, or minus a signal's number."""
    if not cache:
        return overlay.install(folder, code, arguments)
    try:
        wanted = content.read_content(code, arguments)
    except content.NoDigestError as error:
        _log(f"{_ALONE}: {error}")
        return overlay.install(folder, code, arguments)
    try:
        found = _obtain(EnvironmentCache(cache), wanted, code, arguments, refresh=mode == contract.REFRESH)
    except InstallationError as error:
        return error.exit_code
    except TimeoutError:
        reason = f"another host or job is not done after {WAIT_SECONDS / 60:.0f} minutes"
    except OSError as error:
        reason = f"{cache} cannot be written: {error.strerror or error}"
    else:
        overlay.create_above(folder, found.path)
        os.symlink(found.path, os.path.join(folder, LINK))
        return 0
    _log(f"{_ALONE}: {reason}")
    return overlay.install(folder, code, arguments)


def _obtain(
    cache: EnvironmentCache, wanted: content.Content, code: str, arguments: tuple[str, ...], *, refresh: bool
) -> CachedEnvironment:
    """Return the environment of the requirements, installed now or before."""
    asked = time.time()
    is_new = False

    def is_usable(found: CachedEnvironment) -> bool:
        # Another host of the job may have installed it in the meantime.
        is_stale = refresh or (not wanted.is_pinned and asked - found.made >= _UNPINNED_SECONDS)
        if is_stale and found.made < asked:
            why = "" if refresh else f": some name no version, and they were installed {_age(found.made)}"
            _log(f"installing the requirements again{why}")
            return False
        if not cache.is_unchanged(found):
            _log("installing the requirements again: the cached environment was changed after it was installed")
            return False
        return True

    def install(path: str) -> None:
        nonlocal is_new
        is_new = True
        _log("installing the requirements into an environment that later jobs use")
        if exit_code := overlay.install(path, code, arguments):
            raise InstallationError(exit_code)

    def on_wait() -> None:
        _log("waiting for another host or job, which installs the same requirements")

    found = cache.obtain(wanted.digest, is_usable, install, on_wait)
    if not is_new:
        hint = (
            "" if wanted.is_pinned else f"; {contract.REQUIREMENTS_CACHE_VARIABLE}={contract.REFRESH} installs it again"
        )
        _log(f"using the cached environment of requirements.txt (made {_age(found.made)}{hint})")
    return found


def _age(made: float) -> str:
    seconds = int(max(time.time() - made, 0.0))
    for unit, size in _UNITS:
        if count := seconds // size:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _log(text: str) -> None:
    sys.stdout.write(f"scriptmode: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    if status < 0:
        system.end_by_signal(-status)
    sys.exit(status)
