"""Docstrings begin with standard verbs, and no text has idioms without an ordinary use: `tests.house.language`."""

from tests.house import language, sources
from tests.house.offenders import expect_none


def offences(kind, files):
    return [offence for source in files for offence in language.of_source(source) if offence.kind == kind]


def test_docstrings_begin_with_standard_verbs():
    expect_none(
        offences("docstring", sources.product()), "write an imperative that readers know, or add it to verbs.txt"
    )


def test_docstrings_comments_and_texts_have_no_idioms():
    files = (*sources.product(), *sources.read(sources.ROOT, "tests"))
    expect_none(
        offences("idiom", [file for file in files if file.path != "tests/house/language.py"]),
        "write what a colleague would say aloud",
    )


def test_offences_are_found_in_all_kinds_of_text():
    text = '''
"""Say what the module does."""
class A:
    """Tell it."""
    @property
    def size(self):
        """Bytes."""
    def kept(self) -> bool:
        """Return the answer."""
    def get(self):
        """Look up and return it."""
    def f(self):
        """Give it."""
        # To nobody
        raise ValueError(f"{self} is no "
                         "number")
    def nobody_asks(self):
        """Return whether there is no reader."""
'''
    found = language.of_source(sources.Source("sdk/x.py", text))
    assert [offence.line for offence in found if offence.kind == "docstring"] == [1, 3, 8, 12]
    assert [offence.line for offence in found if offence.kind == "idiom"] == [14, 15, 17]
    in_tests = [offence.line for offence in language.of_source(sources.Source("tests/x.py", text))]
    assert in_tests == [14, 17]
