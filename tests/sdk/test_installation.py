"""The command that installs scriptmode, by where the installed one came from."""

import json

import pytest

from scriptmode.installation import install_command


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install scriptmode from an origin: a package's metadata that comes before the real one."""

    def install(origin):
        information = tmp_path / "scriptmode-1.0.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: scriptmode\nVersion: 1.0\n")
        if origin is not None:
            (information / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
        monkeypatch.syspath_prepend(str(tmp_path))

    return install


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'scriptmode[container]'"),
        ({"url": "file:///home/ada/my%20clone", "dir_info": {"editable": True}},
         "pip install -e '/home/ada/my clone[container]'"),
        ({"url": "file:///home/ada/clone", "dir_info": {}}, "pip install '/home/ada/clone[container]'"),
        ({"url": "file:///tmp/scriptmode-1.0-py3-none-any.whl", "archive_info": {}},
         "pip install 'scriptmode[container] @ file:///tmp/scriptmode-1.0-py3-none-any.whl'"),
        ({"url": "https://example.com/team/scriptmode.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
         "pip install 'scriptmode[container] @ git+https://example.com/team/scriptmode.git@abc'"),
        ("not JSON", "pip install 'scriptmode[container]'"),
        ("[]", "pip install 'scriptmode[container]'"),
    ],
    ids=["index", "editable", "directory", "wheel", "repository", "damaged", "not an object"],
)  # fmt: skip
def test_the_command_names_where_scriptmode_came_from(installed, origin, command):
    installed(origin)
    assert install_command("container") == command


def test_the_interpreter_and_options_are_in_the_command(installed):
    installed(None)
    command = install_command(python="/opt/my python/bin/python", options="--force-reinstall --no-deps")
    assert command == "'/opt/my python/bin/python' -m pip install --force-reinstall --no-deps scriptmode"
