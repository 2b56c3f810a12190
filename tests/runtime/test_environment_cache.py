"""The cache of environments, with installations that write a few bytes."""

import json
import os
import time
from pathlib import Path

import pytest
from fakes import plain_user

from scriptmode_runtime.requirements.environment_cache import EnvironmentCache, InstallationError

KEYS = [f"{number:020x}" for number in range(4)]


#: Prints the environment that it uses, and then the one that replaces it.
AS_ANOTHER_USER = """
import os, sys
from scriptmode_runtime.requirements.environment_cache import EnvironmentCache

def install(path):
    os.makedirs(f"{path}/bin")
    open(f"{path}/bin/python", "w").close()

cache = EnvironmentCache(sys.argv[1])
for is_usable in (True, False):
    print(cache.obtain(sys.argv[2], lambda _: is_usable, install, lambda: None).path)
"""


class Cache:
    """A cache in a directory, and how often each key was installed."""

    def __init__(self, folder):
        self.folder = folder
        self.real = EnvironmentCache(str(folder))
        self.installed = []

    def obtain(self, key, *, usable=True, size=100):
        def install(path):
            self.installed.append(key)
            for name, content in (("bin/python", ""), ("lib/module.py", "#" * size)):
                Path(path, name).parent.mkdir(parents=True, exist_ok=True)
                Path(path, name).write_text(content)

        return self.real.obtain(key, lambda _: usable, install, lambda: None)

    def use(self, found, age):
        """Let an environment be used ``age`` seconds ago."""
        then = time.time() - age
        os.utime(Path(found.path) / "in_use", (then, then))


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "environments")


def test_an_environment_is_installed_once_and_replaced_where_it_is_not_usable(cache):
    first = cache.obtain(KEYS[0])
    assert cache.obtain(KEYS[0]).path == first.path
    assert cache.installed == [KEYS[0]]
    second = cache.obtain(KEYS[0], usable=False)
    assert second.path != first.path
    assert cache.obtain(KEYS[0]).path == second.path
    assert cache.installed == [KEYS[0]] * 2


def test_a_replaced_environment_stays_until_the_job_that_got_it_can_hold_it(cache):
    first = cache.obtain(KEYS[0])
    second = cache.obtain(KEYS[0], usable=False)
    assert {each.path: each.is_published for each in cache.real.environments()} == {
        first.path: False,
        second.path: True,
    }
    cache.use(first, 61)
    assert [each.path for each in cache.real.remove_unused()] == [first.path]
    assert [each.path for each in cache.real.environments()] == [second.path]


def test_a_failed_installation_leaves_nothing(cache):
    def install(path):
        Path(path, "half").mkdir(parents=True)
        raise InstallationError(3)

    with pytest.raises(InstallationError) as caught:
        cache.real.obtain(KEYS[0], lambda _: True, install, lambda: None)
    assert caught.value.exit_code == 3
    assert list(cache.folder.iterdir()) == []


@pytest.mark.parametrize("content", ["", "[]", '{"directory": "../../home", "made": 1, "bytes": 1}', '{"made": 1}'])
def test_a_damaged_record_is_as_none(cache, content):
    cache.obtain(KEYS[0])
    (cache.folder / f"{KEYS[0]}.json").write_text(content)
    found = cache.obtain(KEYS[0])
    assert Path(found.path).parent == cache.folder
    assert cache.installed == [KEYS[0]] * 2


def test_an_environment_whose_directory_was_removed_by_hand_is_installed_again(cache):
    first = cache.obtain(KEYS[0])
    Path(first.path).rename(cache.folder.with_name("elsewhere"))
    cache.obtain(KEYS[0])
    assert cache.installed == [KEYS[0]] * 2


def test_the_unused_and_then_the_least_recently_used_are_removed(cache):
    days = 24 * 3600
    for found, age in zip([cache.obtain(key) for key in KEYS], (40, 30, 20, 10)):
        cache.use(found, age * days)
    assert [each.key for each in cache.real.environments()] == KEYS
    assert cache.real.remove_unused(50 * days) == []
    assert [each.key for each in cache.real.remove_unused(35 * days, dry_run=True)] == KEYS[:1]
    removed = cache.real.remove_unused(35 * days)
    assert [each.key for each in removed] == KEYS[:1]
    assert removed[0].size > 100
    assert [each.key for each in cache.real.remove_unused(50 * days, most_bytes=removed[0].size)] == KEYS[1:3]
    assert [each.key for each in cache.real.environments()] == KEYS[3:]


def test_what_was_removed_leaves_no_file(cache):
    cache.use(cache.obtain(KEYS[0]), 100)
    assert len(cache.real.remove_unused(0)) == 1
    assert list(cache.folder.iterdir()) == []


def test_an_installation_removes_what_no_job_has_used_for_a_month(cache):
    cache.use(cache.obtain(KEYS[0]), 31 * 24 * 3600)
    cache.obtain(KEYS[1])
    assert [each.key for each in cache.real.environments()] == KEYS[1:2]


def test_environments_that_were_given_to_a_job_a_moment_ago_or_are_being_installed_stay(cache):
    cache.obtain(KEYS[0])
    seen = []

    def install(path):
        Path(path, "bin").mkdir(parents=True)
        Path(path, "bin", "python").write_text("")
        seen.append(cache.real.remove_unused(0))

    cache.real.obtain(KEYS[1], lambda _: True, install, lambda: None)
    assert seen == [[]]
    assert {each.key for each in cache.real.environments()} == set(KEYS[:2])


def test_an_installation_that_hangs_is_waited_for_ten_minutes(cache):
    times = iter([0.0, 1.0, 599.0, 600.0])
    waiting = EnvironmentCache(str(cache.folder), clock=lambda: next(times))
    waits = []

    def install(path):
        with pytest.raises(TimeoutError):
            waiting.obtain(KEYS[0], lambda _: True, Path.mkdir, lambda: waits.append(path))
        Path(path, "bin").mkdir(parents=True)
        Path(path, "bin", "python").write_text("")

    found = cache.real.obtain(KEYS[0], lambda _: True, install, lambda: None)
    assert waits == [found.path]
    assert list(times) == []


def test_a_cached_environment_is_used_where_its_refresh_hangs(cache):
    first = cache.obtain(KEYS[0])
    times = iter([0.0, 600.0])
    waiting = EnvironmentCache(str(cache.folder), clock=lambda: next(times))
    seen = []

    def install(path):
        seen.append(waiting.obtain(KEYS[0], lambda _: True, Path.mkdir, lambda: None).path)
        raise InstallationError(3)

    with pytest.raises(InstallationError):
        cache.real.obtain(KEYS[0], lambda _: False, install, lambda: None)
    assert seen == [first.path]


@pytest.mark.skipif(os.geteuid() != 0, reason="the first user has to be root")
def test_another_user_uses_and_replaces_an_environment_in_a_directory_of_all_users():
    with plain_user.folder_of_the_user() as home:
        shared = Cache(home / "shared")
        shared.folder.mkdir()
        shared.folder.chmod(0o777)
        first = shared.obtain(KEYS[0])
        assert [path.stat().st_uid for path in shared.folder.iterdir()] == [0, 0, 0]
        used, replaced = plain_user.run(AS_ANOTHER_USER, str(shared.folder), KEYS[0], home=home).splitlines()
        assert used == first.path
        assert shared.obtain(KEYS[0]).path == replaced != first.path
        assert shared.installed == [KEYS[0]]


def test_the_record_names_a_directory_only_once_it_is_complete(cache):
    def install(path):
        assert not (cache.folder / f"{KEYS[0]}.json").exists()
        Path(path, "bin").mkdir(parents=True)
        Path(path, "bin", "python").write_text("")

    found = cache.real.obtain(KEYS[0], lambda _: True, install, lambda: None)
    assert json.loads((cache.folder / f"{KEYS[0]}.json").read_text())["directory"] == Path(found.path).name
