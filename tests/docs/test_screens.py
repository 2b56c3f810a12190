"""The screens in the documents match the commands' output, and show no paths of the machine that generated them."""

import importlib.util
import re
import sys
import xml.etree.ElementTree as ET

import click
import pytest
from docs.documents import DOCS, WITH_CODE, blocks
from outside.comparison import normalized
from outside.reader import commands

from scriptmode_cli import scriptmode

SCREENS = {block.screen: block for document in WITH_CODE for block in blocks(document) if block.screen}
#: Paths of a machine, of a user and of tests; the launcher's own paths are the same everywhere.
OF_A_MACHINE = re.compile(r"/tmp/(?!scriptmode/)|/(work|root|srv|mnt)\b|/home/(?!me/)|pytest-")


@pytest.fixture(scope="module")
def program():
    """The program that generates the screens."""
    spec = importlib.util.spec_from_file_location("screens", DOCS / "screens.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "screens", module)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def terminal(program, tmp_path_factory):
    """A terminal for generating screens."""
    return program.terminal_in(tmp_path_factory.mktemp("screens"))


def test_the_documents_and_the_program_have_the_same_screens(program):
    assert set(SCREENS) == set(program.SCREENS)


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_has_no_paths_of_the_machine_that_generated_it(name):
    text = SCREENS[name].text
    assert len(text.splitlines()) >= 4
    assert not [line for line in text.splitlines() if OF_A_MACHINE.search(line)]


@pytest.mark.parametrize("name", SCREENS)
def test_the_commands_of_a_screen_exist(name):
    for command, _ in commands(SCREENS[name].text):
        words = command.replace("\\\n", " ").split()
        if words[0] == "scriptmode":
            verb = scriptmode.get_command(click.Context(scriptmode), words[1])
            assert verb is not None, command
            options = {option for parameter in verb.params for option in (*parameter.opts, *parameter.secondary_opts)}
            assert {word for word in words[2:] if word.startswith("-")} <= options


@pytest.mark.slow
def test_the_list_in_the_guide_is_what_the_command_prints(program, terminal):
    found = program.SCREENS["list"](terminal)
    assert [normalized(line) for line in found] == [normalized(line) for line in SCREENS["list"].text.splitlines()]


@pytest.mark.slow
def test_the_failure_in_the_guide_is_what_the_command_prints(program, terminal):
    # The order of the hosts' lines varies, and the end of the other host depends on how far it got.
    found, expected = (
        [normalized(line) for line in lines if not line.startswith("algo-1 |") and line.strip("~^ ")]
        for lines in (program.SCREENS["failure"](terminal), SCREENS["failure"].text.splitlines())
    )
    assert sorted(found) == sorted(expected)
    assert found[-7:] == expected[-7:]


@pytest.mark.slow
def test_the_plan_in_the_guide_has_the_rows_of_the_one_that_the_command_prints(program, terminal):
    def rows(lines):
        return [found[0] for line in lines if (found := re.match(r" {0,4}[\w.`$-]+:?(?= |$)", line))]

    assert rows(program.SCREENS["plan"](terminal)) == rows(SCREENS["plan"].text.splitlines())


def test_a_terminal_has_the_programs_that_the_documents_show(program, terminal):
    files = {block.file: block.text for document in program.WITH_PROGRAMS for block in blocks(document) if block.file}
    assert {name: (terminal.folder / name).read_text() for name in files} == files
    assert {"train.py", "line.py", "words.py", "slow.py"} <= set(files)


def test_the_animation_in_the_readme_is_of_the_command_that_it_shows(program):
    drawing = ET.parse(program.ANIMATION)
    texts = ["".join(text.itertext()) for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    command = " ".join(" ".join(texts[:3]).replace("\\", " ").split())
    assert command.startswith("$ scriptmode run train.py --instance-count 2")
    assert any("Completed" in text for text in texts)
    assert not [text for text in texts if OF_A_MACHINE.search(text)]
    assert program.ANIMATION.stat().st_size <= 300_000
