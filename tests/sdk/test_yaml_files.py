"""YAML of the user's own files: what PyYAML makes of it."""

import pytest
import yaml

from scriptmode import ConfigError
from scriptmode._core.machine.yaml_files import parse_yaml


@pytest.mark.parametrize("text", ["", "a: &a {x: 1, y: [2, 3]}\nb: {<<: *a, z: *a}\nc: [*a, *a]"])
def test_a_document_is_what_pyyaml_makes_of_it(text):
    assert parse_yaml("f", text) == yaml.safe_load(text)
    assert parse_yaml("f", text.encode()) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 5_000, "recursion"),
        ("a: *b", "^job.yaml is not valid YAML: line 1, column 4: found undefined alias 'b'; correct"),
        ("a: [", "is not valid YAML: line 1"),
        (b"\xff\xfe\xfa", "is not valid YAML"),
        ("a: 2020-13-45", "is not valid YAML: month must be in 1..12"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_other_documents_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_yaml("job.yaml", text)
