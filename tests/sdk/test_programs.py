"""Programs that the SDK runs to their end."""

import sys

import pytest

from scriptmode.core.machine.programs import ProgramError, stream_program


def test_every_line_of_a_program_is_yielded_with_the_last_one_that_has_no_end():
    assert list(stream_program((sys.executable, "-c", "print('one'); print('two', end='')"), 30)) == ["one", "two"]


def test_a_line_in_which_a_program_fails_is_a_part_of_the_error():
    lines = stream_program((sys.executable, "-c", "print('one'); print('tw', end=''); raise SystemExit(7)"), 30)
    assert next(lines) == "one"
    with pytest.raises(ProgramError, match="it ended with exit code 7: tw"):
        next(lines)
