"""What a terminal, and a page, may show of lines that anybody wrote; and figures as text."""

import math
import re
import sys

import pytest

from scriptmode import messages
from scriptmode.display import formatting
from scriptmode.display.downsampled_series import MAX_POINTS, DownsampledSeries, sparkline
from scriptmode.display.html_charts import line_chart
from scriptmode.terminal_text import render_line

RED, BOLD, RESET = "\x1b[31m", "\x1b[1m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        pytest.param("step 1: loss=0.5 ß grün 图 😀", "step 1: loss=0.5 ß grün 图 😀", id="plain"),
        pytest.param("a\tb", "a       b", id="tab"),
        pytest.param(" 10%\r 50%\r100%", "100%", id="progress bar"),
        pytest.param("loading 100%\rdone", "doneing 100%", id="shorter text over a longer one"),
        pytest.param("loading 100%\r\x1b[Kdone", "done", id="erased before"),
        pytest.param("loading\x1b[2K\rdone", "done", id="erased after"),
        pytest.param("1/10 [=>..]\b\b\b\b\b\b\b\b\b\b\b2/10 [==>.]", "2/10 [==>.]", id="keras's bar"),
        pytest.param("windows\r", "windows", id="carriage return at the end"),
        pytest.param("a\x1b[2Jb\x1b[10;10Hc\x1b[5Ad\x1b[?25le\x1bcf\x1b7g", "abcdefg", id="moves, clears, resets"),
        pytest.param("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq#0\x1b\\c", "abc", id="titles, links, pictures"),
        pytest.param("a\x1b]0;never ended", "a", id="a title that does not end"),
        pytest.param("a\x1b[", "a", id="a sequence that does not end"),
        pytest.param("a\x9b2Jb\x00\x07\x7f", "a2Jb", id="single controls"),
        pytest.param("user\u202egnp.exe\u2066", "usergnp.exe", id="turned around"),
        pytest.param("one\u2028two\x85three", "onetwothree", id="line ends of other kinds"),
    ],
)
def test_a_line_is_what_a_terminal_would_show_last(line, seen):
    assert render_line(line) == seen
    assert render_line(line, colours=True) == seen


def test_colours_stay_where_they_are_wanted_and_end_with_the_line():
    line = f"{RED}bad{RESET} good {BOLD}{RED}worse"
    assert render_line(line) == "bad good worse"
    assert render_line(line, colours=True) == f"{RED}bad{RESET} good {BOLD}{RED}worse{RESET}"


def test_what_is_overwritten_keeps_no_colour():
    assert render_line(f"{RED}xxxx{RESET}\rab", colours=True) == f"ab{RED}xx{RESET}"


@pytest.mark.parametrize("colours", [True, False])
def test_all_of_a_long_line_is_shown_where_it_was_not_redrawn(colours):
    line = f"start\t{RED}" + "x" * 200_000 + "\x1b]0;title\x07 end"
    text = render_line(line, colours=colours)
    assert text.replace(RED, "").replace(RESET, "") == "start\t" + "x" * 200_000 + " end"
    assert (RED in text, text.endswith(RESET)) == (colours, colours)


def test_a_line_that_was_redrawn_for_days_takes_little_time():
    line = "".join(f"\x1b[3{n % 8}m{n} of many\r" for n in range(200_000))
    assert render_line(line, colours=True).endswith(RESET)
    assert len(render_line(line)) < 30


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (42.9, "42 s"),
        (185, "3 min 5 s"),
        (120, "2 min"),
        (7800, "2 h 10 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_times_are_said_in_two_units_at_most(seconds, said):
    assert messages.format_duration(seconds) == said


@pytest.mark.parametrize(
    ("done", "total", "said"),
    [
        (10**9, None, "1.0 GB"),
        (1, 4 * 10**9, "1 bytes of 4.0 GB"),
        (10**9, 4 * 10**9, "1.0 of 4.0 GB"),
        (7, 7, "7 bytes"),
    ],
)
def test_amounts_say_their_unit_once(done, total, said):
    assert formatting.format_amount(done, total) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.123456, "0.1235"), (12000.0, "12,000"), (1.5e-7, "1.5e-07"), (math.inf, "inf"), (math.nan, "nan")],
)
def test_numbers_are_said_in_few_digits(value, said):
    assert formatting.format_number(value) == said


def test_a_sparkline_goes_from_the_least_to_the_most():
    assert sparkline([0, 1, 2, 7], 10) == "▁▂▃█"
    assert sparkline([0, 1, 2, 7], 10, ascii_only=True) == "_.-@"
    assert sparkline([3, 3, 3], 10) == "▁▁▁"
    assert sparkline([], 10) == ""


def test_a_sparkline_of_many_values_is_as_wide_as_it_may_be():
    assert len(sparkline(range(1000), 40)) <= 40
    assert sparkline(range(64), 8) == "▁▂▃▄▅▆▇█"


def test_very_many_values_are_kept_in_little_room_and_none_is_passed_over():
    series = DownsampledSeries(float(number) for number in range(100_000))
    assert series.count == 100_000
    assert series.last == 99_999
    points = series.points()
    assert MAX_POINTS / 2 <= len(points) <= MAX_POINTS
    assert list(points) == sorted(points)
    assert sum(points) / len(points) == pytest.approx(50_000, rel=0.02)


def test_values_whose_sum_is_not_a_number_are_drawn():
    most = sys.float_info.max
    assert DownsampledSeries([most] * 130).points() == (most,) * 65
    assert DownsampledSeries([1e308, -1e308] * 130).points()[:2] == (0.0, 0.0)
    assert sparkline([most, -most, 0], 3, ascii_only=True) == "@_+"
    assert re.search('points="1.0,2.0 159.0,20.0"', line_chart([most, -most], "loss"))


def test_a_value_that_is_not_a_number_is_counted_and_not_drawn():
    series = DownsampledSeries([1.0, math.nan, math.inf, 2.0])
    assert (series.count, series.points()) == (4, (1.0, 2.0))
