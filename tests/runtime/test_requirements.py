"""When two jobs have the same requirements, and the cache of their environments, with installations of a few bytes."""

import os
import shutil
import time
from pathlib import Path

import pytest
from fakes import plain_user
from fakes.host_folders import write_files

from scriptmode_runtime.requirements import __main__ as requirements
from scriptmode_runtime.requirements import environment_cache
from scriptmode_runtime.requirements.content import NoDigestError, read_content
from scriptmode_runtime.requirements.environment_cache import EnvironmentCache, InstallationError

COMMIT = "0123456789" * 4


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A code directory with a package, wheels and files to include; pip has no settings."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    files = {
        "extra-1.whl": "wheel",
        "package/setup.py": "setup",
        "package/deep/module.py": "code",
        "wheels/other-1.whl": "wheel",
        "parts/more.txt": "-r most.txt\n",
        "parts/most.txt": "flask==2\n",
        "limits.txt": "numpy==1.26\n",
    }
    return write_files(tmp_path / "code", files)


def content(code, text):
    (code / "requirements.txt").write_text(text)
    return read_content(str(code), ["-r", str(code / "requirements.txt")])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "numpy[all] == 1.26.4 ; python_version > '3'",
        "numpy===1.26.4+local --hash=sha256:12",
        "numpy>=1,==1.26.4",
        "numpy==1.26.4  # not numpy>=1",
        "numpy \\\n  == 1.26",
        "extra-1.whl",
        "./package[all]",
        "extra @ file:./package",
        "-r parts/more.txt",
        "-rparts/more.txt",
        "numpy\n-c limits.txt",
        "NumPy>=1\n--constraint limits.txt",
        "--index-url https://host/simple --extra-index-url=https://other/simple\n--no-index\n--pre\nnumpy==1.26",
        "--find-links wheels\nother==1",
        f"git+https://github.com/a/b@{COMMIT}",
        f"b @ git+https://github.com/a/b@{COMMIT}#egg=b",
        "https://host/extra-1.whl#sha256=" + "0" * 64,
    ],
)
def test_requirements_of_one_version_each_are_pinned(code, text):
    assert content(code, text).is_pinned


@pytest.mark.parametrize(
    "text",
    [
        "numpy",
        "numpy>=1.26",
        "numpy==1.*",
        "numpy  # numpy==1.26",
        "# a comment that goes on \\\nnumpy",
        "pandas\n-c limits.txt",
        "https://host/extra-1.whl",
        "flask==2\n-r parts/loose.txt",
    ],
)
def test_requirements_that_leave_a_version_open_are_not_pinned(code, text):
    (code / "parts" / "loose.txt").write_text("numpy")
    assert not content(code, text).is_pinned


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("-e ./package", "'-e ./package' cannot be shared by jobs"),
        ("git+https://user:tok@github.com/a/b@main", "'git\\+https://github.com/a/b@main' names no commit"),
        (".", "'.' is the source itself"),
        ("missing.whl", "'missing.whl' does not exist"),
        ("-r missing.txt", "missing.txt' cannot be read: No such file or directory"),
        ("-c https://host/limits.txt", "'https://host/limits.txt' is not a file of this machine"),
        ("-r https://user:tok@host/more.txt", "'https://host/more.txt' is not a file of this machine"),
        ("--unknown", "'--unknown' cannot be shared by jobs"),
        ("--index-url 'https://host", "cannot be parsed: No closing quotation"),
    ],
)
def test_requirements_without_a_known_content_say_why(code, text, reason):
    with pytest.raises(NoDigestError, match=reason):
        content(code, text)


def test_requirements_without_a_known_content_are_installed_for_the_host_alone(code, cache, monkeypatch, capsys):
    (code / "requirements.txt").write_text("-e ./package")
    arguments, installed = ("-r", f"{code}/requirements.txt"), []
    monkeypatch.setattr(requirements.overlay, "install", lambda *given: installed.append(given) or 0)
    assert requirements.main("overlay", str(code), str(cache.folder), "1", *arguments) == 0
    assert installed == [("overlay", str(code), arguments)]
    assert "installing the requirements for this host alone: '-e ./package' " in capsys.readouterr().out
    assert cache.real.environments() == []


@pytest.mark.parametrize(
    "line",
    [
        "git+https://host/${HELD}/b",
        "-r https://host/${HELD}/more.txt",
        "--unknown ${HELD} '",
        "./${HELD}.whl",
    ],
)
def test_a_message_has_the_names_of_variables_and_not_their_values(code, monkeypatch, line):
    monkeypatch.setenv("HELD", "s3cr3t")
    with pytest.raises(NoDigestError) as caught:
        content(code, line)
    assert "${HELD}" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


FILES = ["extra-1.whl", "package/deep/module.py", "wheels/other-1.whl", "parts/most.txt", "limits.txt"]


@pytest.mark.parametrize("name", FILES)
def test_the_content_of_every_file_that_is_named_counts_and_the_folder_does_not(code, tmp_path, name):
    text = "./extra-1.whl\n./package\n-f wheels\n-r parts/more.txt\n-c limits.txt\n"
    first = content(code, text)
    (code / "train.py").write_text("changed")
    code = code.rename(tmp_path / "another")
    assert content(code, text) == first
    with (code / name).open("a") as file:
        file.write("\n")
    assert content(code, text).digest != first.digest


def test_what_the_interpreter_has_counts(code, tmp_path, monkeypatch):
    first = content(code, "numpy")
    monkeypatch.syspath_prepend(str(tmp_path / "added"))
    (tmp_path / "added" / "numpy-1.dist-info").mkdir(parents=True)
    second = content(code, "numpy")
    (tmp_path / "added" / "numpy-1.dist-info").rename(tmp_path / "added" / "numpy-2.dist-info")
    assert len({first, second, content(code, "numpy")}) == 3


def test_settings_of_pip_count_but_no_credentials(code, tmp_path, monkeypatch):
    digests = [content(code, "numpy").digest]
    for variable in ("https://user:one@host/simple", "https://user:two@host/simple", "https://other/simple"):
        monkeypatch.setenv("PIP_INDEX_URL", variable)
        digests.append(content(code, "numpy").digest)
    assert digests[1] == digests[2]
    (tmp_path / "config" / "pip").mkdir(parents=True)
    (tmp_path / "config" / "pip" / "pip.conf").write_text("[global]\nno-binary = :all:\n")
    digests.append(content(code, "numpy").digest)
    assert len(set(digests)) == 4


def test_variables_in_the_text_count_but_no_credentials(code, monkeypatch):
    monkeypatch.setenv("TOKEN", "one")
    monkeypatch.setenv("VERSION", "1")
    text = "--index-url https://${TOKEN}@host/simple\nnumpy==${VERSION}\n"
    first = content(code, text)
    monkeypatch.setenv("TOKEN", "two")
    assert content(code, text) == first
    monkeypatch.setenv("VERSION", "2")
    assert content(code, text).digest != first.digest


@pytest.mark.parametrize("name", ["PIP_TARGET", "PIP_CONSTRAINT", "PIP_REQUIREMENT"])
def test_variables_of_pip_that_name_files_and_a_source_that_is_a_package_prevent_a_digest(code, monkeypatch, name):
    (code / "requirements.txt").write_text("numpy==1")
    with pytest.raises(NoDigestError, match="the source is a package"):
        read_content(str(code), ["-r", str(code / "requirements.txt"), str(code)])
    monkeypatch.setenv(name, "/somewhere")
    with pytest.raises(NoDigestError, match=f"{name} is set"):
        content(code, "numpy")


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


def complete(path):
    Path(path, "bin").mkdir(parents=True)
    Path(path, "bin", "python").write_text("")


def test_an_environment_is_installed_once_and_replaced_where_it_is_not_usable(cache):
    first = cache.obtain(KEYS[0])
    assert cache.obtain(KEYS[0]).path == first.path
    assert cache.installed == [KEYS[0]]
    second = cache.obtain(KEYS[0], usable=False)
    assert second.path != first.path
    assert cache.obtain(KEYS[0]).path == second.path
    assert cache.installed == [KEYS[0]] * 2
    # The replaced one stays until the job that got it can hold it.
    published = {each.path: each.is_published for each in cache.real.environments()}
    assert published == {first.path: False, second.path: True}
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


@pytest.mark.parametrize(
    "content", ["", "[]", '{"directory": "../../home", "made": 1, "bytes": 1}', '{"made": 1}', None], ids=str
)
def test_a_damaged_record_or_a_directory_that_was_removed_by_hand_is_as_none(cache, content):
    first = cache.obtain(KEYS[0])
    if content is None:
        Path(first.path).chmod(0o700)
        Path(first.path).rename(cache.folder.with_name("elsewhere"))
    else:
        (cache.folder / f"{KEYS[0]}.json").write_text(content)
    assert Path(cache.obtain(KEYS[0]).path).parent == cache.folder
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
    # An installation removes what no job has used for a month; nothing is left of it.
    for left in cache.real.environments():
        cache.use(left, 31 * days)
    cache.obtain(KEYS[0])
    assert [each.key for each in cache.real.environments()] == KEYS[:1]
    cache.use(cache.real.environments()[0], 100)
    assert len(cache.real.remove_unused(0)) == 1
    assert list(cache.folder.iterdir()) == []


def test_environments_that_were_given_to_a_job_a_moment_ago_or_are_being_installed_stay(cache):
    cache.obtain(KEYS[0])
    seen = []

    def install(path):
        assert not (cache.folder / f"{KEYS[1]}.json").exists()  # the record names a complete directory alone
        complete(path)
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
        complete(path)

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


def _write_in_place(module):
    """Change a file without any trace in its size, mode and modification time."""
    before = module.stat()
    module.chmod(0o644)
    module.write_text("!" * before.st_size)
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    module.chmod(before.st_mode)


def _replace(module):
    before = module.stat()
    module.parent.chmod(0o755)
    module.with_name("new").write_text("!" * before.st_size)
    os.utime(module.with_name("new"), ns=(before.st_atime_ns, before.st_mtime_ns))
    module.with_name("new").rename(module)
    module.parent.chmod(0o555)


def _add(module):
    module.parent.chmod(0o755)
    module.with_name("sitecustomize.py").write_text("")
    module.parent.chmod(0o555)


def _link(module):
    module.parent.chmod(0o755)
    module.rename(module.with_name("moved"))
    module.symlink_to("moved")


def _remove(module):
    module.parent.chmod(0o755)
    module.unlink()


def _change_interpreter(module):
    python = module.parents[1] / "bin" / "python"
    python.parent.chmod(0o755)
    python.unlink()
    python.symlink_to("/bin/true")


CHANGES = [_write_in_place, _replace, _add, _link, _remove, _change_interpreter]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__[1:])
def test_an_environment_that_was_changed_is_told_from_one_that_was_not(cache, change):
    found, other = cache.obtain(KEYS[0]), cache.obtain(KEYS[1])
    cache.use(found, 10)
    assert cache.real.is_unchanged(found)
    change(Path(found.path, "lib", "module.py"))
    assert not cache.real.is_unchanged(found)
    assert cache.real.is_unchanged(other)


def test_an_environment_that_was_copied_is_unchanged_and_its_times_are_recorded_again(cache, monkeypatch):
    found = cache.obtain(KEYS[0])
    shutil.copytree(found.path, cache.folder / "copy", symlinks=True)
    Path(found.path).chmod(0o755)
    Path(found.path).rename(cache.folder / "moved")
    (cache.folder / "copy").rename(found.path)
    assert cache.real.is_unchanged(found)
    monkeypatch.setattr(environment_cache.fingerprint, "content_digest", lambda *_, **__: pytest.fail("read again"))
    assert cache.real.is_unchanged(found)


@pytest.mark.root
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
