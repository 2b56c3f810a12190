"""The wheel and the source distribution are what a package index accepts, and the same code."""

import zipfile

import pytest
from outside.package_index import check_platform_tag, run_tool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def content(wheel):
    """Return the checksums of a wheel's files by their names; those that depend on the compiler are not compared."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            each.filename: each.CRC if not each.filename.endswith((".so", "/WHEEL", "/RECORD")) else None
            for each in archive.infolist()
        }


def test_the_package_page_is_rendered_without_warnings(builder):
    printed = run_tool("twine", "--no-color", "check", "--strict", *builder.wheels, builder.sdist)
    assert printed.count("PASSED") == len(builder.wheels) + 1, printed


def test_the_source_distribution_is_a_quick_download(builder):
    assert builder.sdist.stat().st_size < 2.5e6


def test_the_wheels_have_the_content_of_the_one_built_from_the_sdist(builder):
    expected = content(builder.wheel_of_sdist)
    assert [wheel.name for wheel in builder.wheels if content(wheel) != expected] == []


def test_the_wheel_has_a_platform_tag_that_a_package_index_accepts(builder):
    assert len(builder.wheels) == (2 if builder.given else 1)
    for wheel in builder.wheels:
        check_platform_tag(wheel)
