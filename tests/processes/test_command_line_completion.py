"""Completion of ``scriptmode`` in real shells."""

import os
import subprocess
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM
from fakes.installed import require
from fakes.processes import until
from fakes.terminal import Terminal


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """The folder and the variables of a user who has a script, two jobs, one more that is broken, and no settings."""
    folder = tmp_path_factory.mktemp("completion")
    settings = ("PS1", "PROMPT", "ZDOTDIR", "XDG_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(settings)},
        "SCRIPTMODE_DATA_DIR": str(folder / "data"),
        "PATH": f"{Path(PROGRAM).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
    }
    (folder / "train.py").write_text("print(1)")
    for name in ("mnist-1", "mnist-2"):
        subprocess.run(
            [PROGRAM, "run", "train.py", "--job-name", name], check=True, capture_output=True, cwd=folder, env=environment,
            timeout=600,
        )  # fmt: skip
    (folder / "data" / "jobs" / "mnist-0").mkdir()
    (folder / "data" / "jobs" / "mnist-0" / "state.json").write_text("broken")
    return folder, environment


#: How each shell is begun without its user's settings, and what it is told to complete by.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile"], "source <(_SCRIPTMODE_COMPLETE=bash_source scriptmode)"),
    "zsh": (
        ["zsh", "--no-rcs"],
        "autoload -U compinit; compinit -u -D; source <(_SCRIPTMODE_COMPLETE=zsh_source scriptmode)",
    ),
    "fish": (["fish", "--no-config"], "_SCRIPTMODE_COMPLETE=fish_source scriptmode | source"),
}


class Shell(Terminal):
    """An interactive shell in a pseudo-terminal."""

    def __init__(self, name, folder, variables):
        command, loading = SHELLS[name]
        require(name)
        # It controls jobs, or says that it cannot, and so is to have the terminal for its own.
        super().__init__(100, 30, ["setsid", "--ctty", "--wait", *command], variables, cwd=folder)
        self._loading = loading

    def load(self):
        self.type(f"{self._loading}; basename /it/is/loaded\n")
        self.until(lambda lines: "loaded" in lines)

    def clear(self):
        """Have an empty line on an empty screen."""
        self.type("\x15clear\n")  # Ctrl-U empties the line
        self.until(lambda lines: sum(bool(line) for line in lines) == 1)

    def until(self, holds):
        """Wait until it shows what is waited for."""

        def ask():
            self.read()
            return holds(self.shown())

        try:
            until(ask)
        except AssertionError:
            pytest.fail("\n".join(self.shown()).rstrip())


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, user):
    typed_in = Shell(request.param, *user)
    try:
        typed_in.load()
        yield typed_in
    finally:
        typed_in.close()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("descr", "describe"), ("model down", "model download"), ("describe mn", "describe mnist-"),
        ("run --instance-c", "run --instance-count"), ("run tra", "run train.py"),
        ("run train.py --source-dir dat", "run train.py --source-dir data/"),
    ],
)  # fmt: skip
def test_the_tab_key_completes_typed_words(shell, typed, completed):
    shell.clear()
    shell.type(f"scriptmode {typed}\t")
    shell.until(lambda lines: any(line.endswith(f" scriptmode {completed}") for line in lines))
