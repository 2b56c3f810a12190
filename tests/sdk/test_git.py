import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest
from fakes.git_server import GitServer, Repository
from fakes.processes import until
from fakes.promptness import soon

from scriptmode._core.source.git import checkout
from scriptmode._core.source.source_archive import read_source
from scriptmode._core.spec.git_source import GitSource, parse_git_config
from scriptmode._core.spec.training_job import Script
from scriptmode.errors import SourceError, SpecError

pytestmark = pytest.mark.slow

TOKEN = "tok/en+secret"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    """An empty home, so that no setting of this machine's git counts."""
    home = tmp_path / "home"
    home.mkdir()
    for name in list(os.environ):
        if name.startswith(("GIT_", "SSH_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home / ".gitconfig"


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path / "repository")


@pytest.fixture
def serve(tmp_path, repository):
    servers = []

    def start(login=None):
        repository.publish(tmp_path / "served" / "r.git")
        servers.append(GitServer(tmp_path / "served", login))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def program(tmp_path, monkeypatch):
    def put(name, text):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return path

    return put


def fetched(**config):
    with checkout(parse_git_config(config)) as tree:
        count = subprocess.run(["git", "-C", str(tree), "rev-list", "--count", "HEAD"], capture_output=True, check=True)
        return (tree / "train.py").read_text(), int(count.stdout)


def error_of(**config):
    with pytest.raises(SourceError) as caught, checkout(parse_git_config(config)):
        pass
    assert type(caught.value) is SourceError
    return str(caught.value)


@pytest.mark.parametrize(
    ("config", "text", "commits"),
    [
        ({}, "second", 3), ({"branch": "trunk"}, "second", 3), ({"branch": "other"}, "other", 2),
        ({"branch": "v1"}, "first", 1), ({"commit": "{first}"}, "first", 1),
        ({"commit": "{other}", "branch": "trunk"}, "other", 2), ({"commit": "{other:.9}"}, "other", 2),
    ],
    ids=["default", "branch", "another branch", "tag", "commit", "commit and branch", "short commit"],
)  # fmt: skip
def test_what_is_asked_for_is_fetched(repository, config, text, commits):
    wanted = {name: value.format_map(vars(repository)) for name, value in config.items()}
    assert fetched(repo=repository.url, **wanted) == (text, commits)


@pytest.mark.parametrize("config", [{}, {"commit": "{first}"}], ids=["default", "commit"])
def test_older_contents_are_not_fetched_from_a_server_that_can_leave_them_out(repository, config):
    repository.git("config", "uploadpack.allowFilter", "true")
    wanted = {name: value.format_map(vars(repository)) for name, value in config.items()}
    with checkout(GitSource(repository.url, **wanted)) as tree:
        listed = ["git", "-C", str(tree), "rev-list", "--objects", "--all", "--missing=print"]
        objects = subprocess.run(listed, capture_output=True, check=True, text=True).stdout
    assert sum(line.startswith("?") for line in objects.splitlines()) == 3


def test_nothing_is_left_afterwards(repository, tmp_path, monkeypatch):
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with checkout(GitSource(repository.url)) as tree:
        assert place in tree.parents
    with pytest.raises(KeyError), checkout(GitSource(repository.url)):
        raise KeyError
    error_of(repo=repository.url, branch="gone")
    assert list(place.iterdir()) == []


def test_submodules_are_not_followed(repository, tmp_path, settings):
    settings.write_text("[submodule]\n\trecurse = true\n\tstickyRecursiveClone = true\n")
    inner = Repository(tmp_path / "inner")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.url, "inner")
    commit = repository.commit("third")
    for config in ({}, {"commit": commit}, {"commit": commit[:9]}):
        with checkout(GitSource(repository.url, **config)) as tree:
            assert list((tree / "inner").iterdir()) == []


def test_hooks_of_the_users_templates_do_not_run(repository, tmp_path, settings, program):
    hook = program("post-checkout", f"touch '{tmp_path}/ran'")
    (tmp_path / "template" / "hooks").mkdir(parents=True)
    shutil.move(hook, tmp_path / "template" / "hooks")
    settings.write_text(f"[init]\n\ttemplateDir = {tmp_path}/template\n")
    assert fetched(repo=repository.url) == ("second", 3)
    assert not (tmp_path / "ran").exists()


def test_the_script_is_one_of_the_repository(repository, tmp_path):
    (tmp_path / "other.py").touch()
    (repository.folder / "link.py").symlink_to(tmp_path / "other.py")
    repository.commit("third")
    git = GitSource(repository.url)
    assert read_source(Script("train.py", git=git)).files.keys() == {"train.py"}
    for name in ("link.py", "../other.py", str(tmp_path / "other.py"), "gone.py"):
        with pytest.raises(SourceError, match=r"is not in the Git repository"):
            read_source(Script(name, git=git))
        with pytest.raises(SourceError, match=r"is not in the Git repository"):
            read_source(Script("train.py", dependencies=(name,), git=git))


def test_inside_a_hook_of_another_repository_that_one_is_left_alone(repository, tmp_path, monkeypatch):
    another = Repository(tmp_path / "another")
    monkeypatch.setenv("GIT_DIR", str(another.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(another.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(another.folder / ".git" / "index"))
    for config in ({}, {"commit": repository.second}):
        with checkout(GitSource(repository.url, **config)) as tree:
            assert (tree / "train.py").read_text() == "second"
    assert another.git("status", "--porcelain") == ""


def test_a_missing_git_is_named(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.search("^git could not fetch 'file:///.*': .*No such file.*'git'", error_of(repo=repository.url))


def test_a_transport_that_runs_commands_is_refused(tmp_path):
    assert "transport 'ext' not allowed" in error_of(repo=f"ext::touch {tmp_path}/ran")
    assert not (tmp_path / "ran").exists()


def test_a_malformed_url_does_not_show_its_password():
    with pytest.raises(SpecError, match="contains credentials") as caught:
        parse_git_config({"repo": "http://u:s/ecret@h/r"})
    assert "ecret" not in str(caught.value)


def test_ssh_never_prompts_on_a_terminal(tmp_path, monkeypatch, program):
    record = tmp_path / "session"
    ssh = program("my ssh", f"'{sys.executable}' -c 'import os; print(os.getsid(0))' > '{record}'\n"
                  "echo 'git@h: Permission denied (publickey).' >&2; exit 255")  # fmt: skip
    monkeypatch.setenv("GIT_SSH_COMMAND", f"'{ssh}'")
    message = error_of(repo="git@h:o/r")
    assert "git@h: Permission denied (publickey)." in message
    assert int(record.read_text()) != os.getsid(0)


@pytest.mark.parametrize(
    ("credentials", "login"),
    [
        ({"token": TOKEN}, f"{TOKEN}:"),
        ({"username": "us er", "password": "pass:wörd"}, "us er:pass:wörd"),
        ({"username": "u", "password": "p", "token": TOKEN, "2FA_enabled": True}, f"{TOKEN}:"),
    ],
    ids=["a token", "a password", "a token before a password"],
)
def test_a_server_is_given_the_login(serve, repository, credentials, login):
    server = serve(login)
    repo = f"{server.url}/r.git"
    assert fetched(repo=repo, **credentials) == ("second", 3)
    assert fetched(repo=repo, branch="other", **credentials) == ("other", 2)
    assert fetched(repo=repo, commit=repository.first, **credentials) == ("first", 1)
    # Git asks first whether the server wants one.
    assert {given for _, answer in server.requests for given in answer} == {server.expected}


def test_a_login_is_for_the_host_of_the_repository_alone(serve, settings, tmp_path):
    """A filter asks for that of another host, as git-lfs does for a host that a file of the repository names."""
    server, answer = serve(f"{TOKEN}:"), tmp_path / "answer"
    asks = f"printf 'protocol=https\\nhost=other.example\\n\\n' | git credential fill >{answer} 2>&1; cat"
    settings.write_text(f'[filter "asks"]\n\tsmudge = "{asks}"\n[core]\n\tattributesFile = {tmp_path}/attributes\n')
    (tmp_path / "attributes").write_text("* filter=asks\n")
    assert fetched(repo=f"{server.url}/r.git", token=TOKEN) == ("second", 3)
    assert answer.exists()
    assert TOKEN not in answer.read_text()


def test_a_login_is_neither_in_arguments_nor_in_files(serve):
    server = serve(f"{TOKEN}:")
    seen = []
    server.on_request = lambda: seen.extend(_arguments_of_all())
    with checkout(GitSource(f"{server.url}/r.git", login=(TOKEN, ""))) as tree:
        seen.extend(path.read_bytes() for path in tree.parent.rglob("*") if path.is_file())
    assert any(b"/r.git" in each for each in seen)
    assert not any(TOKEN.encode() in each or server.expected.split()[1].encode() in each for each in seen)


def _arguments_of_all():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_bytes()


@pytest.mark.parametrize("credentials", [{"token": TOKEN}, {"username": "u", "password": TOKEN}])
def test_the_error_for_rejected_credentials_does_not_contain_them(serve, settings, tmp_path, program, credentials):
    helper = program("helper", f"touch '{tmp_path}/asked'")
    settings.write_text(f"[credential]\n\thelper = {helper}\n")
    server = serve("another:")
    message = error_of(repo=f"{server.url}/r.git", **credentials)
    assert "Authentication failed" in message or "could not read Username" in message
    assert TOKEN not in message
    assert not (tmp_path / "asked").exists()


def test_rejected_credentials_are_sent_once(serve):
    server = serve("another:")
    assert "Authentication failed" in error_of(repo=f"{server.url}/r.git", token=TOKEN)
    assert [len(given) for _, given in server.requests] == [0, 1]


def test_without_credentials_git_uses_its_own(serve, settings, program):
    server = serve("mine:secret")
    message = error_of(repo=f"{server.url}/r.git")
    assert "could not read Username" in message
    helper = program("helper", "printf 'username=mine\\npassword=secret\\n'")
    settings.write_text(f"[credential]\n\thelper = {helper}\n")
    assert fetched(repo=f"{server.url}/r.git") == ("second", 3)


def test_a_redirect_is_followed_only_without_credentials(serve):
    server = serve()
    assert fetched(repo=f"{server.url}/moved/r.git") == ("second", 3)
    server.requests.clear()
    assert "error: 301" in error_of(repo=f"{server.url}/moved/r.git", token=TOKEN)
    assert all(path.startswith("/moved/") for path, _ in server.requests)


def test_git_does_not_prompt_and_secrets_in_its_output_are_masked(program):
    output = f"{TOKEN} https://{quote(TOKEN, '')}@h"
    program("git", f"echo '{output}' GIT_TERMINAL_PROMPT=$GIT_TERMINAL_PROMPT; exit 1")
    message = error_of(repo="https://h/r", token=TOKEN)
    assert "'https://h/r': *** https://***@h GIT_TERMINAL_PROMPT=0; correct" in message


@pytest.mark.prompt
def test_a_server_that_never_answers_is_not_waited_for_longer_than_said(serve):
    server = serve()
    begin = time.monotonic()
    message = f"git could not fetch '{server.url}/stuck/r.git': it did not end within 1 s"
    with pytest.raises(SourceError, match=message), checkout(GitSource(f"{server.url}/stuck/r.git"), timeout=1):
        pass
    soon(time.monotonic() - begin, 10)
    until(lambda: not any(b"/stuck/r.git" in arguments for arguments in _arguments_of_all()))


@pytest.mark.prompt
def test_a_child_that_git_leaves_in_the_background_is_not_waited_for(program, tmp_path):
    program("git", "sleep 20 &\necho fatal: no >&2\nexit 1")
    begin = time.monotonic()
    with pytest.raises(SourceError, match="fatal: no|: no"), checkout(GitSource(tmp_path.as_uri())):
        pass
    soon(time.monotonic() - begin, 15)


def test_a_git_that_ignores_its_end_is_killed_with_its_children(program, tmp_path):
    # As long as no other process of this machine sleeps.
    sleep = f"sleep {100_000 + os.getpid()}"
    program("git", f"trap '' TERM\n{sleep} &\n{sleep}")
    with pytest.raises(SourceError, match="within 0.3 s"), checkout(GitSource(tmp_path.as_uri()), timeout=0.3):
        pass
    until(lambda: not any(sleep.split()[1].encode() in arguments for arguments in _arguments_of_all()))
