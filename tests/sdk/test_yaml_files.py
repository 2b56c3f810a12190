"""YAML of the user's own files: what PyYAML makes of it, but for keys that occur twice."""

import pytest
import yaml

from scriptmode import ConfigError
from scriptmode._core.machine.yaml_files import parse_yaml


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: &a {x: 1, y: [2, 3]}\nb: {<<: *a, z: *a}\nc: [*a, *a]",
        "&a a: *a",
        "text: |\n  [[[[{{{{ *not &an alias",
        "a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4, x: 5}\nd: [*b, *b]",
        "a: &a {x: 1}\nb: &b {y: 1}\nc: {<<: *a, <<: *b}",
        "1: a\n'1': b",
    ],
    ids=["empty", "aliases", "a key", "text", "overridden", "two merges", "number and text"],
)
def test_a_document_is_what_pyyaml_makes_of_it(text):
    assert parse_yaml("f", text) == yaml.safe_load(text)
    assert parse_yaml("f", text.encode()) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\n'a': 3", "^job.yaml is refused: the key 'a' in line 3 is in line 1 already; remove one"),
        ("x:\n- {b: 1, c: {d: 1, d: 2}}", "'d' in line 2 is in line 2"),
        ("1: a\n1: b", "'1' in line 2"),
        ("a: &a {x: [*a]}", "the alias \\*a is within the value that it repeats; write it out"),
        ("[" * 5_000, "nested too deeply; use fewer levels"),
        ("a: *b", "^job.yaml is not valid YAML: line 1, column 4: found undefined alias"),
        ("a: [", "is not valid YAML: line 1"),
        (b"\xff\xfe\xfa", "is not valid YAML"),
        ("a: 2020-13-45", "is not valid YAML: month must be in 1..12"),
    ],
)
def test_other_documents_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_yaml("job.yaml", text)
