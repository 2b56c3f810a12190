"""The directories of the environments that containers of an image share."""

import os
import time

import pytest

from scriptmode.platforms.local.hosts.image_environments import ImageEnvironments, image_of, release

FIRST, SECOND = ("sha256:" + digit * 64 for digit in "ab")
DAY = 24 * 3600


@pytest.fixture
def images(tmp_path):
    return ImageEnvironments(tmp_path / "environments")


def use(images, identifier, *, days_ago=0):
    """Let a job use the directory of an image and end; return the directory."""
    shared, lock = images.use(identifier)
    release(lock)
    then = time.time() - days_ago * DAY
    os.utime(shared.parent / "in_use", (then, then))
    return shared


def test_each_image_has_a_directory_that_any_user_of_its_containers_may_write(images):
    first, second = use(images, FIRST), use(images, SECOND)
    assert first != second
    assert first == use(images, FIRST)
    assert FIRST.startswith(image_of(first))
    assert first.stat().st_mode & 0o777 == 0o777
    assert first.parent.stat().st_mode & 0o077 == 0


def test_directories_that_a_job_uses_are_neither_given_away_nor_removed(images):
    first, second = use(images, FIRST), use(images, SECOND)
    _, lock = images.use(FIRST)
    _, other = images.use(FIRST)
    with images.unused_folders() as found:
        assert found == [second]
    release(lock)
    assert [name for name, _ in images.remove_unused(0)] == ["b" * 20]
    release(other)
    with images.unused_folders() as found:
        assert found == [first]
    assert [name for name, _ in images.remove_unused(0)] == ["a" * 20]


def test_what_no_job_used_for_long_is_removed_as_a_whole(images):
    old, young = use(images, FIRST, days_ago=31), use(images, SECOND, days_ago=29)
    (old / "environment").mkdir()
    (old / "environment" / "module.py").write_bytes(b"#" * 50_000)
    (old / "environment").chmod(0o555)
    (old / "link").symlink_to(young)
    ((name, size),) = images.remove_unused(30 * DAY, dry_run=True)
    assert (name, size > 50_000) == ("a" * 20, True)
    assert old.exists()
    assert images.remove_unused(30 * DAY) == [(name, size)]
    assert [path.name for path in old.parent.parent.iterdir()] == ["b" * 20]
    assert young.is_dir()


def test_what_an_interrupted_removal_left_is_removed_by_the_next_one(images):
    left = use(images, FIRST).parent
    left.rename(left.with_name(f".removed-{left.name}"))
    assert images.remove_unused(DAY) == []
    assert list(left.parent.iterdir()) == []
