"""`make release` makes files that agree with each other, of a checkout without changes."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from fakes.git_server import PLAIN
from outside.installations import ROOT
from outside.package_index import check_platform_tag


def git(checkout, *arguments):
    return subprocess.run(
        ("git", "-C", checkout, *arguments), env=PLAIN, check=True, capture_output=True, text=True
    ).stdout


def commit(checkout):
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "a commit")


def release_script(checkout):
    """Run the script of a checkout, with the environment of the tests."""
    env = {**os.environ, "SCRIPTMODE_VENV": sys.prefix}
    return subprocess.run((checkout / ".ci" / "release",), env=env, check=False, capture_output=True, text=True)


def test_a_checkout_with_changes_is_no_release(tmp_path):
    for name in (".ci/release", ".ci/debian", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    git(tmp_path, "init", "--quiet")
    done = release_script(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the checkout has changes; commit or remove them" in done.stderr
    assert not (tmp_path / "dist").exists()


@pytest.fixture(scope="module")
def release(builder, outside):
    """The files of a release: the given ones, or those of one made of the source distribution."""
    if builder.given:
        return builder.given
    shutil.unpack_archive(builder.sdist, outside / "release")
    (checkout,) = (outside / "release").iterdir()
    git(checkout, "init", "--quiet")
    commit(checkout)
    done = release_script(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(checkout, "tag") == git(checkout, "status", "--porcelain") == ""
    (folder,) = (checkout / "dist").iterdir()
    return folder


FILES = r"""
SHA256SUMS
scriptmode-VERSION-py3-none-manylinux_2_17_aarch64\.whl
scriptmode-VERSION-py3-none-manylinux_2_17_x86_64\.whl
scriptmode-VERSION\.tar\.gz
"""


@pytest.mark.long
@pytest.mark.timeout(3600)  # Zig compiles its libc++ once on a machine
def test_a_release_has_these_files_and_their_checksums(release):
    names = sorted(path.name for path in release.iterdir())
    expected = FILES.replace("VERSION", re.escape(release.name)).split()
    assert [name for name in names if not any(re.fullmatch(each, name) for each in expected)] == []
    assert len(names) == len(expected)
    done = subprocess.run(
        ("sha256sum", "--check", "--strict", "SHA256SUMS"), check=True, capture_output=True, text=True, cwd=release
    )
    assert sorted(line.partition(": OK")[0] for line in done.stdout.splitlines()) == sorted({*names} - {"SHA256SUMS"})


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_wheels_of_a_release_run_where_tensorflow_does(release):
    for wheel in release.glob("*.whl"):
        # Of all libraries, where a wheel of another build may need a later libstdc++.
        assert int(check_platform_tag(wheel)["sym_tag"].split("_")[2]) <= 17
