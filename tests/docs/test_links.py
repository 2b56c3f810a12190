"""The target of every link exists."""

import re
from urllib.parse import unquote, urlsplit

import pytest
from docs.documents import WITH_LINKS, anchors, label, links


@pytest.mark.parametrize("document", WITH_LINKS, ids=label)
def test_the_target_of_every_link_exists(document):
    for target in links(document):
        parts = urlsplit(target)
        if parts.scheme:
            assert parts.scheme == "https", target
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), target
            continue
        place = (document.parent / unquote(parts.path)).resolve() if parts.path else document
        assert place.exists(), f"{target}: there is no {place}"
        if parts.fragment:
            assert parts.fragment in anchors(place), f"{target}: {place.name} has no such heading"


def test_links_are_found_in_lists_and_tables(tmp_path):
    document = tmp_path / "a.md"
    document.write_text("# A `b` c\n\n## Two\n\n## Two\n\n* [x](y.md)\n\n| a |\n|---|\n| [`z`](z.md#q) ![p](p.png) |\n")
    assert list(links(document)) == ["y.md", "z.md#q", "p.png"]
    assert anchors(document) == {"a-b-c", "two", "two-1"}
