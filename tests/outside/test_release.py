"""`make release` refuses a version that cannot be, and makes files that agree with each other."""

import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from fakes.git_server import PLAIN
from outside.installations import ROOT
from outside.package_index import check_platform_tag

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [7.8.9] - 2026-01-01\n\n### Added\n\n- All of it.\n"
VERSION = "sed -i 's/^version = .*/version = \"7.8.9\"/' pyproject.toml"


def git(checkout, *arguments):
    return subprocess.run(
        ("git", "-C", checkout, *arguments), env=PLAIN, check=True, capture_output=True, text=True
    ).stdout


def commit(checkout):
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--message", "a commit")


def release_script(checkout, *arguments):
    """Run the script of a checkout."""
    return subprocess.run(
        (sys.executable, checkout / ".ci" / "release.py", *arguments),
        check=False, capture_output=True, text=True,
    )  # fmt: skip


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit of what the script needs to prepare a release."""
    for name in (".ci/release.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git" / "info" / "exclude").write_text("__pycache__\n")
    commit(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("version", "before", "reason"),
    [
        ("", "", "VERSION='' is not a version; give one such as 0.1.0 or 1.0.0rc1"),
        ("v1.0", "", "VERSION='v1.0' is not a version; give one such as 0.1.0 or 1.0.0rc1"),
        ("7.8.9", "git tag v7.8.9", "the tag v7.8.9 exists; give the next version"),
        ("7.8.9", "touch new", "the checkout has changes; commit or remove them:\n?? new"),
        ("7.8.9", "true", "CHANGELOG.md has no section 7.8.9, or pyproject.toml another version; write both"),
        ("7.8.9", VERSION + "; sed -i '4i - late' CHANGELOG.md; git commit -qam late",
         "CHANGELOG.md has entries below [Unreleased]; move them to the section of this version"),
    ],
    ids=["none", "no version", "a tag", "changes", "another version", "late entries"],
)  # fmt: skip
def test_what_cannot_be_released_is_refused_with_the_reason(version, before, reason, checkout):
    subprocess.run(("bash", "-ec", before), check=True, cwd=checkout, env=PLAIN)
    state = git(checkout, "status", "--porcelain")
    done = release_script(checkout, version)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"release: {reason}\n")
    assert git(checkout, "status", "--porcelain") == state


@pytest.fixture(scope="module")
def release(builder, outside):
    """The files of a release: the given ones, or those of one made of the source distribution."""
    if builder.given:
        return builder.given
    shutil.unpack_archive(builder.sdist, outside / "release")
    (checkout,) = (outside / "release").iterdir()
    (checkout / "CHANGELOG.md").write_text(CHANGELOG)
    subprocess.run(("bash", "-ec", VERSION), check=True, cwd=checkout)
    git(checkout, "init", "--quiet")
    commit(checkout)
    done = release_script(checkout, "7.8.9", "--unchecked")
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(checkout, "tag") == git(checkout, "status", "--porcelain") == ""
    return checkout / "dist" / "7.8.9"


FILES = r"""
SHA256SUMS
scriptmode-VERSION-documentation\.tar\.xz
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
        check_platform_tag(wheel)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_the_documentation_is_an_archive_of_pages(release, tmp_path):
    name = f"scriptmode-{release.name}-documentation"
    with tarfile.open(release / f"{name}.tar.xz") as archive:
        pages = {each for each in archive.getnames() if each.endswith(".html")}
    assert {f"{name}/{page}.html" for page in ("index", "changelog", "guides/getting_started")} <= pages
