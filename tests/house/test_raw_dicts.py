"""Jobs are values: outside the modules that read and write JSON, annotations name classes."""

import pytest
from tests.house import raw_dicts, sources

#: How many there are; lower it when you convert one, never raise it.
LIMIT = 159


def test_dicts_of_anything_do_not_spread():
    found = list(raw_dicts.annotations(sources.product()))
    assert len(found) <= LIMIT, "\n".join(["read `spec.job_request` and annotate the class:", *found])


@pytest.mark.parametrize("module", raw_dicts.JSON_MODULES)
def test_every_exempt_module_exists_and_has_untyped_json(module):
    files = [source for source in sources.product() if source.path.startswith(module)]
    assert any(", Any]" in source.text for source in files)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(x: dict[str, Any], y: Mapping[str, Any] | None) -> list[dict[str, Any]]: ...", 3),
        ("def f(x: dict[str, str], y: tuple[str, Any]): ...", 0),
    ],
)
def test_annotations_are_counted_at_any_depth(text, count):
    found = raw_dicts.annotations([sources.Source("sdk/scriptmode/x.py", text)])
    assert len(list(found)) == count
